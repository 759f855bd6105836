"""The format `cbf`: which frames are program counters and which return addresses."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from cbf.plaincbf import read
from profiles import Recording, written
from walkback.cbf.decoding import split
from walkback.export import cbf
from walkback.stacks.stacks import End


def test_callers_are_return_addresses_in_the_kernel_too() -> None:
    recording = Recording(
        ["interrupt", "entry", "main"],
        ["", "", "/bin/program"],
        [("one", [0, 1, 2]), ("one", []), ("one", [2])],
        ends=[End.COMPLETE, End.NO_REGISTERS, End.COMPLETE],
        kernel=[True, True, False],
    )
    # Where they are looked up is where they are: so none of these says that it is a return address.
    batches = [replace(batch, pc=batch.lookup) for batch in recording.batches()]
    data = written(cbf.write, batches)
    found = [read(data[begin:end]) for begin, end in pairwise(split(data).tolist())]
    assert [one.each() for one in found] == [
        [("pc", 0x1000), ("ra", 0x1010), ("pc", 0x1020)],
        [],
        [("pc", 0x1020)],
    ]
    assert [one.truncated for one in found] == [False, True, False]
