"""What the records between the samples say: names of threads, mappings, forks and ends of processes."""

from __future__ import annotations

import struct
from collections import deque
from heapq import heappop, heappush

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I32, I64, changes
from walkback.base.dataclass import dataclass
from walkback.base.owned import owners_of
from walkback.capture.dumps import DumpedCode, Dumps, Layer
from walkback.capture.perfdata import layout, vdso
from walkback.capture.perfdata.header import RecordingHeader, text_of
from walkback.capture.perfdata.mappings import ANONYMOUS, CodeMaps, RecordedProcess, Spaces
from walkback.capture.trampolines import Trampolines
from walkback.elf import FileSearch
from walkback.jitdump.layout import is_dump_name, is_image_name
from walkback.naming.modules import Modules

_DELETED = " (deleted)"
_NO_FILES = ("//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:", "[heap]", "[stack", "[anon", "anon_inode:")
"""How the names of memory begin that is in no file."""
_MOST_THREADS = 1 << 20
_MOST_PROCESSES = 1 << 17
_MOST_MODULES = 1 << 16
_MOST_BIASES = 1 << 18
_MOST_COMMS = 1 << 20
"""The most of each that are followed at once; recordings have thousands, and damaged ones must not fill memory."""
_MOST_ENDED = 256
"""Processes that have ended are kept for a while, because their last samples can come behind their end."""
_MOST_KERNEL_MAPS = 1 << 16
_MOST_MAPPED = 1 << 27
"""To what all layers may come; those of a large server take some millions in an hour."""
_LAYER = 1 << 10
"""What the work for one more layer counts, beside that for its code and for what is mapped."""
_LONGEST_BUILD_ID = 20
_STALE = -2


@dataclass(frozen=True, slots=True)
class KernelMap:
    """A part of the kernel: its image or a module."""

    start: int
    last: int
    name: str
    """`[kernel.kallsyms]`, or the path or the name in brackets of a module."""
    page_offset: int
    build_id: bytes | None


class RecordedState:
    """All processes as they are between two samples."""

    def __init__(self, header: RecordingHeader, machine: Machine, modules: Modules) -> None:
        self.spaces = Spaces()
        self.comms: list[str] = []
        self.kernel: list[KernelMap] = []
        self.damaged = 0
        self.forgotten = False
        """Whether there were more processes, threads, names or files than are followed at once."""
        self._header = header
        self._machine = machine
        self._modules = modules
        self._processes: dict[int, RecordedProcess] = {}
        self._ended: deque[int] = deque()
        self._threads = 0
        self._comm_numbers: dict[str, int] = {}
        self._module_numbers: dict[tuple[str, bytes | None], int] = {}
        self._biases: dict[tuple[int, int], int] = {}
        self._dumps = Dumps(modules, machine)
        self._layers: dict[str, list[Layer]] = {}
        """The code of each dump that was met."""
        self.trampolines = Trampolines(modules, machine)
        self._mapped = 0
        self._due: list[tuple[int, int, int, str]] = []
        """A heap of layers that come next: the time, the process, the number of the layer, the dump."""

    # Records

    def apply(self, kind: int, misc: int, record: memoryview) -> int | None:
        """Take a record in; the process that it changes, if it does."""
        if len(self._processes) > _MOST_PROCESSES:
            self._forget()
        try:
            if kind == layout.COMM:
                return self._comm(misc, record)
            if kind == layout.FORK:
                return self._fork(misc, record)
            if kind == layout.EXIT:
                self._exit(record)
                return None
            return self._mmap(kind, misc, record)
        except struct.error:
            self.damaged += 1
            return None

    def _process(self, pid: int) -> RecordedProcess:
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = RecordedProcess()
        return process

    def _comm(self, misc: int, record: memoryview) -> int:
        pid, tid = struct.unpack_from(self._header.prefix + "ii", record, 8)
        process = self._process(pid)
        if misc & layout.MISC_COMM_EXEC:
            process.maps = CodeMaps()
            process.comms.clear()
        self._name(process, tid, self._comm_number(text_of(record[16:])))
        return int(pid)

    def _name(self, process: RecordedProcess, tid: int, comm: int) -> None:
        if tid not in process.comms:
            self._threads += 1
            if self._threads > _MOST_THREADS:
                self._forget()
        process.comms[tid] = comm

    def _forget(self) -> None:
        self.forgotten = True
        self._threads = 0
        self._processes.clear()

    def _comm_number(self, text: str) -> int:
        if len(self.comms) >= _MOST_COMMS and text not in self._comm_numbers:
            self.forgotten = True
            return len(self.comms) - 1
        number = self._comm_numbers.setdefault(text, len(self.comms))
        if number == len(self.comms):
            self.comms.append(text)
        return number

    def _fork(self, misc: int, record: memoryview) -> int:
        pid, parent_pid, tid, parent_tid = struct.unpack_from(self._header.prefix + "iiii", record, 8)
        parent = self._processes.get(parent_pid)
        if pid == parent_pid:
            child = self._process(pid)
        else:
            child = self._processes[pid] = RecordedProcess()
            if parent is not None and not misc & layout.MISC_FORK_EXEC:
                self._lay_trampolines(parent_pid, parent)
                child.inherit(parent)
        comm = parent.comms.get(parent_tid, parent.comms.get(parent_pid)) if parent is not None else None
        if comm is not None:
            self._name(child, tid, comm)
        return int(pid)

    def _exit(self, record: memoryview) -> None:
        pid, _, tid = struct.unpack_from(self._header.prefix + "iii", record, 8)
        process = self._processes.get(pid)
        if process is None or pid != tid or process.ended:
            return
        process.ended = True
        self._ended.append(pid)
        if len(self._ended) > _MOST_ENDED:
            old = self._ended.popleft()
            # Its number may be another process's by now.
            if old in self._processes and self._processes[old].ended:
                self._threads -= min(self._threads, len(self._processes.pop(old).comms))

    def _mmap(self, kind: int, misc: int, record: memoryview) -> int | None:
        prefix = self._header.prefix
        pid, _, start, size, page_offset = struct.unpack_from(prefix + "iiQQQ", record, 8)
        build_id, name_at, executable = None, 40, not misc & layout.MISC_MMAP_DATA
        if kind == layout.MMAP2:
            (protection,) = struct.unpack_from(prefix + "I", record, 64)
            name_at, executable = 72, bool(protection & layout.PROT_EXEC)
            if misc & layout.MISC_MMAP_BUILD_ID:
                build_id = _build_id(bytes(record[40:64]))
        if not size:
            return None
        last = min(start + size, 2**64) - 1
        name = text_of(record[name_at:])
        if pid == layout.KERNEL_PID or misc & layout.CPUMODE_MASK == layout.CPUMODE_KERNEL:
            self._map_kernel(start, last, name, page_offset, build_id)
            return None
        if not executable:
            return None
        if is_dump_name(name):
            return self._dump(pid, name)
        module = self._module(name, build_id, pid)
        bias = self._bias(module, start, page_offset) if module != ANONYMOUS else 0
        process = self._process(pid)
        process.map(start, last, module, bias)
        if is_image_name(name):  # perf has read the dump
            process.maps.dumped = None
        return int(pid)

    def _map_kernel(self, start: int, last: int, name: str, page_offset: int, build_id: bytes | None) -> None:
        if name.startswith("[guest") or len(self.kernel) >= _MOST_KERNEL_MAPS:
            return
        # The name goes on with that of the symbol from which the addresses count.
        if name.startswith("[kernel.kallsyms]"):
            name = "[kernel.kallsyms]"
        build_id = build_id or self._header.build_ids.get(name)
        self.kernel.append(KernelMap(start, last, name, page_offset, build_id))

    # Code made at run time

    def _dump(self, pid: int, path: str) -> int:
        """Take in the code that a process dumps to this file, as far as it was there from the beginning."""
        if path not in self._layers:
            self._layers[path] = []
            for place in self._modules.search.path(path):
                dump = DumpedCode(self._dumps, place, owners_of(pid), path)
                self._layers[path] = dump.layers(by_time=self._by_time)
        if self._layers[path]:
            self._map_layer(pid, 0, path)
        return pid

    def _map_layer(self, pid: int, number: int, path: str) -> None:
        """Map a layer of a dump; the one behind it becomes due."""
        process, layers = self._process(pid), self._layers[path]
        self._mapped += _LAYER + len(process.maps) // 16 + 16 * len(layers[number].code.start)
        if self._mapped > _MOST_MAPPED:
            self.spaces.full = True
            return
        process.dump(layers[number].code)
        if number + 1 < len(layers):
            heappush(self._due, (layers[number + 1].time, pid, number + 1, path))

    def _lay_trampolines(self, pid: int, process: RecordedProcess) -> None:
        """Map those that the process has made by now."""
        if process.maps.has_anonymous:
            process.lay(self.trampolines.of(pid, process.maps.modules))

    @property
    def _by_time(self) -> bool:
        """Whether samples and dumps count time alike."""
        return all(event.is_monotonic for event in self._header.events.all)

    @property
    def due(self) -> int | None:
        """When dumped code takes the place of other code next."""
        return self._due[0][0] if self._due else None

    def replace_code(self) -> int:
        """Let that happen; the process that it changes."""
        _, pid, number, path = heappop(self._due)
        # Not if the process has become another program, or another process.
        if self._process(pid).maps.dumped is not None:
            self._map_layer(pid, number, path)
        return pid

    @property
    def troubles(self) -> list[str]:
        """What is wrong with dumps, a line each."""
        return self._dumps.troubles

    # Files

    def _module(self, name: str, build_id: bytes | None, pid: int) -> int:
        """The number of the module with a file's code; `ANONYMOUS` if there is no file."""
        path = name.removesuffix(_DELETED)
        build_id = build_id or self._header.build_ids.get(name) or self._header.build_ids.get(path)
        if build_id is None and (not name or name.startswith(_NO_FILES)):
            return ANONYMOUS
        key = name, build_id
        if key not in self._module_numbers:
            if len(self._module_numbers) >= _MOST_MODULES:
                self.forgotten = True
                return ANONYMOUS
            self._module_numbers[key] = self._new_module(name, path, build_id, pid)
        return self._module_numbers[key]

    def _new_module(self, name: str, path: str, build_id: bytes | None, pid: int) -> int:
        if name == vdso.NAME:
            contents = vdso.image(self._machine, build_id)
            if contents is not None:
                return self._modules.image(name, contents)
        # What stands now where a deleted file was is right only if it has its build ID.
        number = self._modules.file(path if build_id else name, build_id, process=pid)
        if is_image_name(path):  # made on the machine that it was recorded on, and nowhere else
            self._modules[number].search = FileSearch()
        return number

    def _bias(self, module: int, start: int, page_offset: int) -> int:
        key = module, page_offset
        if key not in self._biases:
            if len(self._biases) >= _MOST_BIASES:
                self._biases.clear()
            self._biases[key] = (self._modules[module].bias(start, page_offset) - start) % 2**64
        return (self._biases[key] + start) % 2**64

    # Samples

    def comm(self, pid: int, tid: int) -> int:
        """The number of a thread's name, which is made up as perf does where none was recorded."""
        process = self._processes.get(pid)
        if process is not None and tid in process.comms:
            return process.comms[tid]
        return self._comm_number("swapper" if pid == tid == 0 else f":{tid}")

    def space(self, pid: int) -> int:
        """The number of a process's space as it is now; -1 if it has no code mapped that is known."""
        process = self._processes.get(pid)
        if process is None:
            return -1
        self._lay_trampolines(pid, process)
        number = self.spaces.number(process.maps)
        if number >= 0 or not self.spaces.full:
            process.space = number
        return process.space


def _build_id(about: bytes) -> bytes | None:
    """The build ID in a mapping, behind its size.

    Linux also marks the mappings of those who have not asked for build IDs, if somebody else does at the same time;
    then this is a device and an inode.
    """
    size = about[0]
    if size > _LONGEST_BUILD_ID or any(about[1:4]) or any(about[4 + size :]):
        return None
    return about[4 : 4 + size] or None


class Threads:
    """The names and spaces of some samples' threads, looked up once as long as nothing changes."""

    def __init__(self, state: RecordedState, pid: I32, tid: I32) -> None:
        self._state = state
        keys = (pid.astype(np.int64) << 32) | (tid.astype(np.int64) & 0xFFFFFFFF)
        distinct, self._which = _numbered(keys)
        self._pid = distinct >> 32
        self._tid = (distinct & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        self._of_process: dict[int, list[int]] = {}
        for i, number in enumerate(self._pid.tolist()):
            self._of_process.setdefault(number, []).append(i)
        self._comms = np.empty(len(distinct), np.int32)
        self._spaces = np.full(len(distinct), _STALE, np.int32)
        self.comm = np.empty(len(pid), np.int32)
        self.space = np.empty(len(pid), np.int32)

    def changed(self, pid: int) -> None:
        """A process is not what it was."""
        for i in self._of_process.get(pid, ()):
            self._spaces[i] = _STALE

    def fill(self, begin: int, end: int) -> None:
        """Look up the threads of the samples between two numbers."""
        which: I64 = self._which[begin:end]
        for i in set(which[self._spaces[which] == _STALE].tolist()):
            pid = int(self._pid[i])
            self._comms[i] = self._state.comm(pid, int(self._tid[i]))
            self._spaces[i] = self._state.space(pid)
        self.comm[begin:end] = self._comms[which]
        self.space[begin:end] = self._spaces[which]


def _numbered(keys: I64) -> tuple[I64, I64]:
    """The different keys, rising, and of each key its number among them. NumPy's own imports much to do that."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = changes(ordered)
    which = np.empty(len(keys), np.int64)
    which[order] = np.cumsum(begins) - 1
    return ordered[begins], which
