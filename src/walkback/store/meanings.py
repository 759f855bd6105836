"""What the tables of a store have, for the page about them."""

MEANINGS = r"""
samples: Sorted by time.
samples.time: UTC.
samples.stack: The row of the innermost frame in `nodes`; NULL for a stack without frames.
samples.weight: 1, or the amount that the event counts.
samples.source: A row of `sources`.
samples.end: Why the walk ended: the number of a [`walkback.stacks.End`](python/stacks.md).
sources.host process event: NULL if unknown.
sources.pid tid: NULL if unknown.
sources.labels: The labels by their names.
nodes: The tree of all stacks, outermost frames first, each node before its descendants.
nodes.depth: 0 for outermost frames.
nodes.frame: A row of `frames`.
frames.module: A row of `modules`; NULL for code without a file.
frames.address: The address to look up, as numbered in the file; for a caller, it is inside the call instruction.
    Kernel addresses are relative to the start of the kernel or its module; addresses of named code generated at run
    time are relative to the start of that code.
frames.name: Only if it could not be looked up later.
modules.build_id: In hexadecimal; NULL if there is none.
modules.path: Where the file was.
sums: Of a rollup, in place of its samples; sorted by source and stack.
sums.stack source end: As in `samples`.
sums.weight: Of all samples together.
sums.count: The number of samples.
times: A row for each row of `sources`.
times.first last: When the first sample was taken, and the last. UTC.
names: A row for each file, sorted by build ID: its functions and inlined calls, by rising address.
names.build_id: In hexadecimal.
names.steps: Where each function begins, as numbered in the file, or the address of inlined calls; counted from the
    one before, the first from 0.
names.reaches: How many bytes behind that the function is known to go on; 0 for inlined calls. At least up to the last
    address that was met, and from there to a round number if the function is so long.
names.calls: A line for each: the name of the function, or nothing if it has none; for inlined calls, their names,
    innermost first, and the function's, with tabs between them.
"""
"""A table, or columns of it, and what is in them; text that goes on is indented."""
