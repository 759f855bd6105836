"""The stacks of a live process: each thread stopped for a moment, its registers and stack copied, and let go.

Walking is done afterwards on the copies. Only where a walk needs more than the copy has (another signal stack, a
stack longer than the copy) that thread is stopped once more and walked while it stands still.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.base.arrays import U64
from walkback.base.dataclass import dataclass
from walkback.base.errors import UnreadableError
from walkback.capture.live.looking import Look, RecentBlocks
from walkback.capture.live.mapped import MappedCode
from walkback.capture.live.maps import Maps
from walkback.capture.live.ptrace import Pieces, Remote, Tracer
from walkback.capture.live.status import checked, has_ended, inner_number, name_in, reason
from walkback.capture.live.tracing import NOT_IN_TIME, Tracing
from walkback.capture.registers import FLOATING, GENERAL, empty_rows
from walkback.capture.snapshot import MemoryRange, Snapshot, samples_of
from walkback.naming.modules import Modules
from walkback.runtimes.chains import Looked
from walkback.runtimes.interpreters import Interpreters
from walkback.stacks.stacks import End, Stacks, replaced
from walkback.walking.samples import PC, Samples, Space
from walkback.walking.walker import NotLoadedError, Walker

_MACHINES = {"x86_64": AMD64, "amd64": AMD64, "aarch64": AARCH64, "s390x": S390X}
_STACK_LIMIT = 1 << 20
_PATIENCE = 1.0
_MOST_ROUNDS = 100
"""How often to look for new threads: a program may make them without end."""
_PAUSES = (0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
"""Seconds to wait after each time that a thread is met at a bad moment."""
_WANTS_MEMORY = (End.UNREADABLE, End.STACK_CUT)
_CHUNKS = 1 << 10
"""How many pieces of memory are read for one walk at most."""


@dataclass(slots=True)
class _Taken:
    """What was copied of one thread."""

    tid: int
    registers: bytes
    more_registers: bytes
    pieces: list[MemoryRange]
    cut: int
    stopped: int
    stacks: Stacks | None = None
    looked: list[Looked] = field(default_factory=list)
    """What its interpreters run."""


class Process:
    """A live process, to be sampled once or again and again; from one thread at a time.

    >>> import os
    >>> walkback.Process(os.getpid(), walkback.naming.Modules()).machine.name
    'AMD64'
    """

    def __init__(
        self,
        pid: int,
        modules: Modules,
        *,
        stack_bytes: int = _STACK_LIMIT,
        patience: float = _PATIENCE,
        beside: Process | None = None,
    ) -> None:
        """Of each stack at most `stack_bytes` bytes are copied; a thread has `patience` seconds to stop.

        One that is sampled `beside` another, never at the same time, shares its memory for that, and what it allows.
        """
        machine = _MACHINES.get(os.uname().machine)
        if machine is None:
            raise UnreadableError(f"processes of {os.uname().machine} are not supported", file=f"process {pid}")
        self.machine: Machine = machine
        self.byteorder: ByteOrder = "big" if machine is S390X else "little"
        self.label = f"process {pid}"
        self.pid = checked(pid, self.label)
        self.modules = modules
        self.stops = 0
        """How many times a thread was stopped, over all samples."""
        self._memory: Remote = Remote(1 << 16) if beside is None else beside._memory
        self._tracing: Tracing = Tracing(machine, max(stack_bytes, 0), patience) if beside is None else beside._tracing
        self._maps: Maps | None = None
        self._code = MappedCode(self.pid, modules, self.read, machine)
        self.interpreters: Interpreters | None = None
        """What is asked what each thread runs, while it stands still."""
        self._recent = RecentBlocks()
        self._inner: Callable[[int], int] = (lambda tid: tid) if inner_number(self.pid) == self.pid else inner_number
        self._alive = self.pid
        """A thread that has not ended: the first one may, and the others go on."""

    def __repr__(self) -> str:
        return f"Process({self.pid}, machine={self.machine.name})"

    def read(self, address: int, size: int) -> bytes:
        """Memory of the process, as much of it as can be read from an address on."""
        found = part = self._memory.read(self._alive, address, size)
        while part and len(found) < size:
            part = self._memory.read(self._alive, address + len(found), size - len(found))
            found += part
        return found

    def gather(self, addresses: Sequence[int], size: int) -> bytes:
        """`size` bytes from each address, one after the other, up to the first that cannot be read."""
        parts = []
        while addresses:
            some = addresses[: self._memory.most_gathered(size)]
            part = self._memory.gather(self._alive, some, size)
            parts.append(part)
            if len(part) < size * len(some):
                break
            addresses = addresses[len(some) :]
        return b"".join(parts)

    def threads(self) -> list[int]:
        """The numbers of its threads now."""
        try:
            return sorted(int(name) for name in os.listdir(f"/proc/{self.pid}/task"))
        except OSError:
            raise self._error("it has ended") from None

    def maps(self) -> Maps:
        """What it has mapped now; the same object if that has not changed."""
        text = b""
        for tid in (self._alive, *self.threads()):
            text = self._maps_of(tid)
            if text:
                self._alive = tid
                break
        if not text:
            raise self._error("it has no memory: it has ended, or is a kernel thread")
        if self._maps is None or text != self._maps.text:
            self._maps = Maps(text, self._maps)
        return self._maps

    def _maps_of(self, tid: int) -> bytes:
        try:
            return Path(f"/proc/{self.pid}/task/{tid}/maps").read_bytes()
        except PermissionError:
            raise self._error("its memory may not be read: it belongs to somebody else, or is protected") from None
        except OSError:
            return b""

    def sample(self, walker: Walker | None = None) -> Snapshot:
        """All threads as they are now, one after the other; walked if there is a walker."""
        return self.sample_threads(None, walker)

    def sample_threads(self, tids: Sequence[int] | None, walker: Walker | None = None) -> Snapshot:
        """The same of these threads."""
        maps = self.maps()
        space = self._code.space(maps)
        if self.interpreters is not None:
            self.interpreters.use(space.module, space.bias, self, self.byteorder)
        troubles: list[str] = []
        taken = self._take_all(maps, troubles, tids)
        samples = self._samples(taken)
        if self._is_strange(samples, maps):
            maps = self.maps()
            space = self._code.space(maps)
        snapshot = self._snapshot(taken, samples, space, troubles)
        if walker is not None:
            self._walk(walker, snapshot, taken, maps)
        if self.interpreters is not None:
            looked = [one.looked for one in taken]
            snapshot.chains = self.interpreters.chains(looked, snapshot.stacks)
            snapshot.tasks = self.interpreters.tasks(snapshot.tids, looked, snapshot.troubles)
        return snapshot

    def _take_all(self, maps: Maps, troubles: list[str], tids: Sequence[int] | None) -> list[_Taken]:
        """Every thread that there is, and those that they make meanwhile; or only these."""
        taken: list[_Taken] = []
        refused: dict[int, str] = {}
        seen: set[int] = set()

        def take(tracer: Tracer) -> None:
            for _ in range(_MOST_ROUNDS):
                new = [tid for tid in (self.threads() if tids is None else tids) if tid not in seen]
                if not new:
                    return
                for tid in new:
                    seen.add(tid)
                    one = self._take(tracer, tid, maps)
                    if isinstance(one, str):
                        refused[tid] = one
                    else:
                        taken.append(one)
            troubles.append("it makes threads more quickly than they can be looked at; the last are left out")

        for tid in self._tracing.run(take):
            refused[tid] = NOT_IN_TIME
        taken.sort(key=lambda one: one.tid)
        self._judge(taken, refused, troubles)
        return taken

    def _judge(self, taken: list[_Taken], refused: dict[int, str], troubles: list[str]) -> None:
        """Some threads that cannot be had are reported, but not those that ended; if it is all, that is an error."""
        kept = {tid: why for tid, why in refused.items() if why != "it ended" and not has_ended(tid)}
        if not taken:
            if not Path(f"/proc/{self.pid}").exists():
                raise self._error("it has ended")
            checked(self.pid, self.label)
            raise self._error(
                f"none of its threads can be looked at: {reason(self.pid, next(iter(kept.values()), 'it ended'))}"
            )
        troubles += [f"thread {tid}: {reason(tid, why)}" for tid, why in sorted(kept.items())]

    def _take(self, tracer: Tracer, tid: int, maps: Maps, work: Callable[[], None] | None = None) -> _Taken | str:
        interpreters, look = self.interpreters or None, None
        if interpreters is not None:
            look = Look(interpreters, self._inner(tid), self, self._recent)
        stopped, registers = 0, b""
        for pause in _PAUSES:
            trouble = self._stop(tracer, tid, maps, look, work)
            if trouble is not None:
                return trouble
            stopped += tracer.stopped
            if interpreters is not None and interpreters.is_entering(tracer.pc):
                # If it is where it was, it had no processor meanwhile, or its process is stopped.
                time.sleep(pause if tracer.registers == registers else 0)
                registers = tracer.registers
            elif look is None or look.found is not None:
                break
        piece = tracer.piece()
        end = piece.start + len(piece.contents)
        cut = end if tracer.copied and end < tracer.end else 0
        looked = [] if look is None or look.found is None else look.found
        return _Taken(tid, tracer.registers, tracer.more_registers, [piece], cut, stopped, looked=looked)

    def _stop(
        self, tracer: Tracer, tid: int, maps: Maps, look: Look | None, work: Callable[[], None] | None
    ) -> str | None:
        """Stop a thread once, and do the work and what a look needs; returns what went wrong."""

        def stand() -> None:
            if look is not None:
                look.stand(tracer)
            if work is not None:
                work()

        if look is not None:
            look.begin()
        trouble = self._tracing.begin(tid) or tracer.take(tid, maps.stack_at, stand, look.pieces if look else Pieces())
        if trouble is None:
            self.stops += 1
            if look is not None:
                look.end(tracer)
        return trouble

    def _is_strange(self, samples: Samples, maps: Maps) -> bool:
        """Whether a thread is somewhere that was not mapped before."""
        places = samples.registers[:, (PC, self.machine.sp)].ravel().tolist()
        return any(maps.at(place) is None for place in places)

    def _registers(self, taken: list[_Taken]) -> tuple[U64, list[int]]:
        rows, known = empty_rows(len(taken)), []
        general, floating = GENERAL[self.machine], FLOATING.get(self.machine)
        plain = general.known
        for row, one in zip(rows, taken, strict=True):
            general.fill(row, one.registers, self.byteorder)
            bits = plain
            if floating is not None and one.more_registers:
                floating.fill(row, one.more_registers, self.byteorder)
                bits |= floating.known
            known.append(bits)
        return rows, known

    def _samples(self, taken: list[_Taken]) -> Samples:
        rows, known = self._registers(taken)
        return samples_of(rows, known, [one.pieces for one in taken], [one.cut for one in taken])

    def _snapshot(self, taken: list[_Taken], samples: Samples, space: Space, troubles: list[str]) -> Snapshot:
        return Snapshot(
            machine=self.machine,
            byteorder=self.byteorder,
            pid=self.pid,
            command=name_in(f"/proc/{self.pid}/comm"),
            tids=[one.tid for one in taken],
            names=[name_in(f"/proc/{self.pid}/task/{one.tid}/comm") for one in taken],
            samples=samples,
            spaces=[space],
            stopped=np.array([one.stopped for one in taken], np.int64),
            pac_mask=self._tracing.tracer.pac_mask,
            troubles=[*troubles, *self._code.troubles],
        )

    def _walk(self, walker: Walker, snapshot: Snapshot, taken: list[_Taken], maps: Maps) -> None:
        stacks = walker.walk(snapshot.samples, snapshot.spaces)
        if (stacks.end == End.NOT_CODE).any() and (now := self.maps()) is not maps:
            # Something was loaded while the threads were looked at.
            maps = now
            snapshot.spaces = [self._code.space(maps)]
            stacks = walker.walk(snapshot.samples, snapshot.spaces)
        wanting = np.isin(stacks.end, _WANTS_MEMORY)
        again = [i for i in np.flatnonzero(wanting).tolist() if maps.readable_at(int(stacks.at[i])) is not None]
        if again:
            stacks = self._walk_stopped(walker, snapshot, taken, stacks, maps, again)
        snapshot.stacks = stacks

    def _walk_stopped(
        self, walker: Walker, snapshot: Snapshot, taken: list[_Taken], stacks: Stacks, maps: Maps, again: list[int]
    ) -> Stacks:
        """Walk some threads while they stand still; what cannot be stopped any more stays as it is."""
        others: dict[int, Stacks] = {}
        left = list(again)

        def take(tracer: Tracer) -> None:
            while left:
                i = left.pop()
                found = self._take_and_walk(tracer, walker, snapshot.spaces, taken[i].tid, maps)
                if found is not None and found.stacks is not None:
                    found.stopped += taken[i].stopped
                    taken[i], others[i] = found, found.stacks

        self._tracing.run(take)
        if others:
            snapshot.samples = self._samples(taken)
            snapshot.stopped = np.array([one.stopped for one in taken], np.int64)
        return replaced(stacks, list(others), list(others.values()))

    def _take_and_walk(
        self, tracer: Tracer, walker: Walker, spaces: list[Space], tid: int, maps: Maps
    ) -> _Taken | None:
        """Stop a thread and walk it; tables that this wants are loaded while it runs, and then it is stopped again."""
        for _ in range(_MOST_ROUNDS):
            try:
                return self._try_and_walk(tracer, walker, spaces, tid, maps)
            except NotLoadedError as wanted:
                walker.load(wanted.modules)
        return None

    def _try_and_walk(self, tracer: Tracer, walker: Walker, spaces: list[Space], tid: int, maps: Maps) -> _Taken | None:
        more: list[MemoryRange] = []
        walked: list[Stacks] = []
        wanted: list[NotLoadedError] = []

        def read(_: int, address: int) -> tuple[int, bytes] | None:
            extent = maps.readable_at(address)
            piece = tracer.read_around(tid, address, extent) if extent is not None and len(more) < _CHUNKS else None
            if piece is None:
                return None
            more.append(piece)
            return piece.start, piece.contents

        def walk() -> None:
            more.clear()
            walked.clear()
            now = _Taken(tid, tracer.registers, tracer.more_registers, [tracer.piece()], 0, 0)
            try:
                walked.append(walker.walk(self._samples([now]), spaces, read, at_once=True))
            except NotLoadedError as error:
                wanted.append(error)

        found = self._take(tracer, tid, maps, walk)
        if wanted:
            raise wanted[0]
        if isinstance(found, str) or not walked:
            return None
        found.pieces += more
        found.stacks = walked[0]
        return found

    def _error(self, message: str) -> UnreadableError:
        return UnreadableError(message, file=self.label)
