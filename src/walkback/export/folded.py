"""Folded stacks: a line for each comm and stack, `comm;outermost;...;innermost weight`.

The text that flame graph programs eat; as they have it, the names of calls that are inlined end in `_[i]`. Lines are
sorted, so equal profiles give equal text.
"""

from __future__ import annotations

from typing import BinaryIO

from walkback.base.text import encoded, printable
from walkback.export.tables import outermost_first
from walkback.stacks.functions import FunctionStacks
from walkback.stacks.profile import Profile


def write(profile: Profile, out: BinaryIO, *, kernel: bool = False) -> None:
    """Write folded stacks; with `kernel`, names of the kernel's functions end in `_[k]`."""
    frames = profile.frames
    inlined = frames.is_inlined.tolist()
    labels = [f"{label}_[i]" if its else label for label, its in zip(frames.labels(), inlined, strict=True)]
    if kernel:
        labels = [f"{label}_[k]" if its else label for label, its in zip(labels, frames.kernel.tolist(), strict=True)]
    found = FunctionStacks.of(profile, labels)
    names = [_harmless(str(name)) for name in found.names]
    stacks = [
        b";".join([names[word] for word in stack]) for stack in outermost_first(found.first, found.stacks.tolist())
    ]
    comms = [_harmless(str(comm)) or b"[unknown]" for comm in found.comms]
    lines: dict[bytes, int] = {}
    for comm, stack, weight in zip(found.comm.tolist(), found.stack.tolist(), found.weight.tolist(), strict=True):
        line = b"%b;%b" % (comms[comm], stacks[stack]) if stacks[stack] else comms[comm]
        # Names that differ only in what was made harmless meet here.
        lines[line] = lines.get(line, 0) + weight
    out.writelines(b"%b %d\n" % item for item in sorted(lines.items()))


def _harmless(name: str) -> bytes:
    """A name as it can stand in a line."""
    return encoded(printable(name).replace(";", ":"))
