"""Stacks of many samples as numbers of distinct frames, which have names.

A name is looked up once a distinct frame, and text made once a distinct stack; samples are numbers.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arrays import I64, U8, U64, Bools, Numbers, runs
from walkback.base.dataclass import dataclass
from walkback.naming.names import Names
from walkback.runtimes.chains import RuntimeFrames
from walkback.stacks.distinct import Distinct
from walkback.stacks.inlined import InlinedFrames, LaidOut
from walkback.stacks.profile import NamedFrames
from walkback.stacks.stacks import FrameKind, How, Stacks

SIGNAL_HANDLER = "<signal handler called>"
"""The name of code that handlers return to, where it has none of its own; what gdb shows."""

# The first word of a frame: the module's number and 1, then these bits, then the process where that matters.
_KERNEL, _HANDLER, _RUNTIME, _PID_SHIFT = 1 << 29, 1 << 30, 1 << 31, 32
"""`_RUNTIME` is of frames that an interpreter has, whose second word is their number."""
_MODULE = _KERNEL - 1


@dataclass(frozen=True, slots=True)
class FrameKeys:
    """What distinguishes frames, in columns."""

    module: I64
    """-1 for none."""
    address: U64
    """What to look up."""
    kernel: Bools
    handler: Bools
    """Whether it is code that handlers return to."""
    pid: I64
    """Where there is no module; else 0."""
    runtime: Bools
    """Which are numbers of `RuntimeFrames`, and no addresses."""


class DistinctFrames:
    """The frames that were met, by number; when they get names, what is inlined in each is numbered as well."""

    def __init__(self, names: Names, runtime: RuntimeFrames | None = None) -> None:
        """`runtime` has the frames of interpreters."""
        self._names = names
        self.runtime = runtime if runtime is not None else RuntimeFrames()
        self._distinct = Distinct()
        self._inlined = InlinedFrames()
        self._weight: I64 | None = np.zeros(0, np.int64) if names.may_fetch else None
        """How often each was met, which is counted only if it matters."""

    def add(self, stacks: Stacks, pid: Numbers) -> I64:
        """The number of each frame; `pid` is the process of each stack, whose own names code made at run time has."""
        kernel = stacks.kind == FrameKind.KERNEL
        handler = _handlers(stacks)
        words = np.empty((len(stacks.pc), 2), np.uint64)
        words[:, 0] = (stacks.module.astype(np.int64) + 1).astype(np.uint64)
        words[kernel, 0] |= np.uint64(_KERNEL)
        words[handler, 0] |= np.uint64(_HANDLER)
        its = stacks.how >= How.PYTHON
        words[its, 0] = np.uint64(_RUNTIME)
        own = (stacks.module < 0) & ~kernel & ~its
        if own.any():
            process = np.repeat(pid.astype(np.int64).astype(np.uint64), np.diff(stacks.first))
            words[own, 0] |= process[own] << np.uint64(_PID_SHIFT)
        if (makers := self._names.makers) is not None:
            # As code without a module, but of the process that has made it, which may have started this one since.
            maker = makers[stacks.module].astype(np.uint64)
            made = (maker > 0) & ~its
            words[made, 0] = maker[made] << np.uint64(_PID_SHIFT)
        words[:, 1] = stacks.address
        numbers = self._distinct.add_records(words)
        if self._weight is not None:
            counts = np.bincount(numbers, minlength=len(self._distinct))
            counts[: len(self._weight)] += self._weight
            self._weight = counts
        return numbers

    @property
    def named(self) -> NamedFrames:
        """Those that have names already, with what is inlined there."""
        return self._inlined.named

    @property
    def frames(self) -> NamedFrames:
        """All that were met; what is new since the last time gets its names now, all at once."""
        if len(self._distinct) > len(self._inlined):
            self._name_new()
        return self.named

    def laid_out(self, first: I64, numbers: I64) -> LaidOut:
        """Stacks of numbers of frames that have names, with the calls that are inlined there."""
        return self._inlined.laid_out(first, numbers)

    def of_code(self, first: I64, frame: I64) -> tuple[I64, I64]:
        """The stacks of named frames without inlined calls, as numbers of frames."""
        return self._inlined.of_code(first, frame)

    def keys(self, begin: int = 0) -> FrameKeys:
        """What is known without names of all frames from one on."""
        new = self._distinct.table[begin:]
        if not len(new):
            new = new.reshape(0, 2)
        word = new[:, 0]
        handler = word & np.uint64(_HANDLER) != 0
        runtime = word & np.uint64(_RUNTIME) != 0
        return FrameKeys(
            (word & np.uint64(_MODULE)).astype(np.int64) - 1,
            # Nothing called the code that handlers return to, so it begins at the return address.
            new[:, 1] + handler,
            word & np.uint64(_KERNEL) != 0,
            handler,
            # A damaged recording has any number here, negative ones as well.
            word.view(np.int64) >> _PID_SHIFT,
            runtime,
        )

    def _name_new(self) -> None:
        known = len(self._inlined)
        keys = self.keys(known)
        weight = self._weight[known:] if self._weight is not None else None
        found = self._names.find(keys.module, keys.address, pid=keys.pid, kernel=keys.kernel, weight=weight)
        symbols = [
            SIGNAL_HANDLER if name is None and is_handler else name
            for name, is_handler in zip(found.symbol, keys.handler.tolist(), strict=True)
        ]
        file, line = found.file, found.line
        address = keys.address - keys.handler
        for row in np.flatnonzero(keys.runtime).tolist():
            frame = self.runtime[int(address[row])]
            symbols[row], file[row], line[row] = frame.symbol, frame.file, frame.line
            # Its place in a file is a line.
            found.module[row], address[row] = frame.file or "", frame.line
        lines = (file, line) if found.lines is not None else (None, None)
        named = NamedFrames(symbols, found.module, address, keys.kernel, found.offset, *lines)
        self._inlined.add(named, found.inlined)


def _handlers(stacks: Stacks) -> Bools:
    """The frames that a signal handler returns to: those whose caller was interrupted."""
    found = np.zeros(len(stacks.pc), np.bool_)
    found[:-1] = (stacks.kind[1:] == FrameKind.EXACT) & (stacks.kind[:-1] == FrameKind.RETURN)
    inner = stacks.first[1:-1]
    found[inner[inner > 0] - 1] = False
    return found


def with_inlined(stacks: Stacks, laid: LaidOut) -> Stacks:
    """Stacks as they are laid out with inlined calls."""
    columns = {name: getattr(stacks, name)[laid.source] for name in ("pc", "kind", "module", "address", "sp")}
    how = np.where(laid.inlined, np.uint8(How.INLINED), stacks.how[laid.source])
    return Stacks(first=laid.first, how=how, end=stacks.end, at=stacks.at, **columns)


def with_chains(stacks: Stacks, chain_first: I64, chain_pc: Numbers, chain_kernel: U8 | Bools) -> Stacks:
    """Stacks with the recorded kernel frames before their own."""
    kept = np.asarray(chain_kernel, np.bool_)
    if not kept.any():
        return stacks
    sums = np.concatenate(([0], np.cumsum(kept)))
    counts = sums[chain_first[1:]] - sums[chain_first[:-1]]
    pcs = np.asarray(chain_pc, np.uint64)[kept]
    first = np.concatenate(([0], np.cumsum(np.diff(stacks.first) + counts)))
    place, own = runs(first[:-1], counts), runs(first[:-1] + counts, np.diff(stacks.first))

    def laid(column: np.ndarray, kernel: Numbers | int) -> np.ndarray:
        whole = np.empty(int(first[-1]), column.dtype)
        whole[own], whole[place] = column, kernel
        return whole

    return Stacks(
        first=first,
        pc=laid(stacks.pc, pcs),
        kind=laid(stacks.kind, FrameKind.KERNEL),
        how=laid(stacks.how, How.RECORDED),
        module=laid(stacks.module, -1),
        address=laid(stacks.address, pcs),
        sp=laid(stacks.sp, 0),
        end=stacks.end,
        at=stacks.at,
    )
