"""Folded stacks: a line for each comm and stack, `comm;outermost;...;innermost weight`.

The text that flame graph programs eat. Lines are sorted, so equal profiles give equal text.
"""

from __future__ import annotations

from itertools import pairwise
from typing import BinaryIO

from walkback.export.functions import Functions
from walkback.export.names import encoded
from walkback.export.profile import Profile
from walkback.text import printable


def write(profile: Profile, out: BinaryIO, *, kernel: bool = False) -> None:
    """Write folded stacks; with `kernel`, names of the kernel's functions end in `_[k]`."""
    frames = profile.frames
    labels = frames.labels()
    if kernel:
        labels = [f"{label}_[k]" if its else label for label, its in zip(labels, frames.kernel.tolist(), strict=True)]
    found = Functions.of(profile, labels)
    names = [_harmless(str(name)) for name in found.names]
    words, first = found.stacks.tolist(), found.first.tolist()
    # Innermost first becomes outermost first when everything is turned around.
    words.reverse()
    total = len(words)
    stacks = [b";".join([names[word] for word in words[total - end : total - begin]]) for begin, end in pairwise(first)]
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
