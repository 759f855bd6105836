"""The events that can be recorded, by the names that perf has for them.

Each becomes a `perf_event_attr`, as perf_event_open(2) takes it.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, WalkbackError
from walkback.capture.perfdata import layout
from walkback.capture.perfdata.events import HARDWARE, SOFTWARE

OFF_CPU = "off-cpu"
"""What happens to a thread that leaves a processor; its periods are the times until it came back."""
_TYPE_HARDWARE, _TYPE_SOFTWARE, TRACEPOINT = 0, 1, 2
_PMUS = Path("/sys/bus/event_source/devices")
_TRACING = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_TRACEPOINT = re.compile(r"([\w-]+):([\w-]+)")
_MODIFIED = re.compile(rf"({'|'.join((*HARDWARE, *SOFTWARE, OFF_CPU))}):[ukhGHpPSDeI]+")
_UPROBE = re.compile(r"(uprobe|uretprobe):(.+):([^:]+)")
_ATTR = struct.Struct("=IIQQQQQIIQQQQIiQIHH")
_REGISTERS: dict[Machine, Iterable[int]] = {
    AMD64: (*range(9), *range(16, 24)),
    AARCH64: range(33),
    S390X: range(34),
}
"""The registers of the program that a walk can need, as the kernel numbers them."""
_BY_TIME = ("cpu-clock", "task-clock")
_IN_KERNEL = (OFF_CPU, "context-switches", "cpu-migrations", "cgroup-switches")


@dataclass(frozen=True, slots=True)
class EventChoice:
    """One event."""

    name: str
    type: int
    config: int
    config1: int = 0
    config2: int = 0
    kept: tuple[object, ...] = field(default=(), repr=False)
    """What the numbers point to."""

    @property
    def is_by_time(self) -> bool:
        """Whether it happens so often that it is sampled by frequency; of others each is a sample."""
        return self.type == _TYPE_HARDWARE or self.name in _BY_TIME

    @property
    def is_in_kernel(self) -> bool:
        """Whether it happens in the kernel only, also where what the kernel does is not asked for."""
        return self.type == TRACEPOINT or self.name in _IN_KERNEL

    @property
    def is_inherited(self) -> bool:
        """Whether new threads and processes may have it too.

        With a uprobe the kernel would read its path again, in the memory of whoever forks: the fork would fail.
        """
        return _UPROBE.fullmatch(self.name) is None

    @classmethod
    def named(cls, name: str) -> EventChoice:
        """The event with this name.

        >>> from walkback.capture.recorder.events import EventChoice
        >>> EventChoice.named("page-faults")
        EventChoice(name='page-faults', type=1, config=2, config1=0, config2=0)
        """
        for kind, names in ((_TYPE_HARDWARE, HARDWARE), (_TYPE_SOFTWARE, SOFTWARE)):
            if name in names:
                return cls(name, kind, names.index(name))
        if name == OFF_CPU:
            return cls(name, _TYPE_SOFTWARE, SOFTWARE.index("context-switches"))
        if _MODIFIED.fullmatch(name):
            raise ArgumentError(f"{name}: an event has no modifiers here; --no-kernel leaves the kernel out")
        probe = _UPROBE.fullmatch(name)
        if probe:
            return _uprobe(name, *probe.groups())
        point = _TRACEPOINT.fullmatch(name)
        if point:
            return cls(name, TRACEPOINT, _tracepoint(*point.groups()))
        known = ", ".join((*_BY_TIME, "cycles", "page-faults", "context-switches"))
        raise ArgumentError(
            f"no event has the name {name!r}; examples: {known}, sched:sched_switch, uprobe:/bin/bash:readline"
        )


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an event is sampled."""

    frequency: int = 99
    """Samples of each processor in a second, where the event goes by time."""
    period: int | None = None
    """Events to a sample, instead."""
    stack_bytes: int = 16384
    """Of the stack, copied with each sample; 0 if the kernel is to walk stacks itself."""
    deferred: bool = True
    """Whether the kernel may do so on the way back to the program, which it can with SFrame."""
    kernel: bool = True
    """Whether what happens in the kernel counts as well, with the kernel's frames."""
    data: bool = False
    """Whether it is noted what else is mapped beside code, which perf wants to unwind."""


def attributes(event: EventChoice, sampling: Sampling, machine: Machine, wake_at: int, *, on_exec: bool) -> bytes:
    """The `perf_event_attr` of an event; with `on_exec` it counts from when its process becomes another program.

    Whoever waits is woken when `wake_at` bytes have come.
    """
    copied, chained = sampling.stack_bytes > 0, sampling.kernel or not sampling.stack_bytes
    kinds = (
        layout.SAMPLE_IP | layout.SAMPLE_TID | layout.SAMPLE_TIME | layout.SAMPLE_CPU | layout.SAMPLE_PERIOD
        | (layout.SAMPLE_REGS_USER | layout.SAMPLE_STACK_USER if copied else 0)
        | (layout.SAMPLE_CALLCHAIN if chained else 0)
    )  # fmt: skip
    bits = {
        layout.ATTR_DISABLED, layout.ATTR_MMAP, layout.ATTR_COMM, layout.ATTR_TASK,
        layout.ATTR_WATERMARK, layout.ATTR_SAMPLE_ID_ALL, layout.ATTR_MMAP2, layout.ATTR_COMM_EXEC,
        layout.ATTR_USE_CLOCKID, layout.ATTR_EXCLUDE_IDLE,
    }  # fmt: skip
    if copied:
        bits.add(layout.ATTR_EXCLUDE_CALLCHAIN_USER)
    elif sampling.deferred:
        bits |= {layout.ATTR_DEFER_CALLCHAIN, layout.ATTR_DEFER_OUTPUT}
    bits |= {layout.ATTR_INHERIT} if event.is_inherited else set()
    by_frequency = event.is_by_time and sampling.period is None
    bits |= {layout.ATTR_FREQ} if by_frequency else set()
    if not sampling.kernel:
        bits |= {layout.ATTR_EXCLUDE_CALLCHAIN_KERNEL}
        bits |= set() if event.is_in_kernel else {layout.ATTR_EXCLUDE_KERNEL, layout.ATTR_EXCLUDE_HV}
    bits |= {layout.ATTR_ENABLE_ON_EXEC} if on_exec else set()
    bits |= {layout.ATTR_CONTEXT_SWITCH} if event.name == OFF_CPU else set()
    bits |= {layout.ATTR_MMAP_DATA} if sampling.data else set()
    little = sys.byteorder == "little"
    flags = sum(1 << (bit if little else 63 - bit) for bit in bits)
    registers = sum(1 << number for number in _REGISTERS[machine]) if copied else 0
    return _ATTR.pack(
        event.type, _ATTR.size, event.config, sampling.frequency if by_frequency else sampling.period or 1, kinds, 0,
        flags, wake_at, 0, event.config1, event.config2, 0, registers,
        sampling.stack_bytes, layout.CLOCK_MONOTONIC, 0, 0, 0, 0,
    )  # fmt: skip


def _tracepoint(system: str, name: str) -> int:
    """The number of a tracepoint, which tracefs has."""
    for folder in _TRACING:
        try:
            return int((folder / "events" / system / name / "id").read_text())
        except PermissionError:
            raise ArgumentError(f"{system}:{name}: {folder} may not be read; root can") from None
        except (OSError, ValueError):
            continue
    if not any((folder / "events").is_dir() for folder in _TRACING):
        raise ArgumentError(f"{system}:{name}: tracefs is not mounted; mount -t tracefs nodev {_TRACING[0]} does that")
    raise ArgumentError(f"this kernel has no tracepoint {system}:{name}; {_TRACING[0]}/events lists all")


def _uprobe(name: str, kind: str, path: str, function: str) -> EventChoice:
    """A place in a file at which every thread that comes by is sampled."""
    pmu = _PMUS / "uprobe"
    try:
        number = int((pmu / "type").read_text())
        form = (pmu / "format/retprobe").read_text().strip().removeprefix("config:")
    except (OSError, ValueError):
        raise ArgumentError(f"{name}: this kernel has no uprobes") from None
    text = ctypes.create_string_buffer(os.fsencode(os.path.realpath(path)))
    config = 1 << int(form) if kind == "uretprobe" else 0
    return EventChoice(name, number, config, ctypes.addressof(text), _place_of(path, function), (text,))


def _place_of(path: str, function: str) -> int:
    """Where a function begins in its file."""
    from walkback.elf import ElfFile
    from walkback.elf.layout import PT_LOAD
    from walkback.symbols import SymbolIndex

    try:
        elf = ElfFile(path)
        places = SymbolIndex(elf).lookup(function)
        loads = elf.segments[elf.segments["type"] == PT_LOAD]
    except WalkbackError as error:
        raise ArgumentError(str(error.within(file=path))) from None
    if not places:
        raise ArgumentError(f"{path} has no function {function!r}")
    address = places[0][1]
    for start, size, offset in zip(*(loads[name].tolist() for name in ("vaddr", "filesz", "offset")), strict=True):
        if start <= address < start + size:
            return int(address - start + offset)
    raise ArgumentError(f"{path}: the code of {function!r} is not in the file")
