"""The input of the benchmarks: one large library for each version of SFrame.

The assembly is shaped like what gcc makes of C++: libLLVM-23 has 8.5 rows a function, a quarter of its functions have
one row, most push some registers and pop them before each return, and one CFA offset in twenty needs two bytes. Real
assemblers and linkers make the sections of it. It stays in `.cache/bench/` until this file or a tool changes.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.sframe.files import read

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"
PEERS = ROOT / ".peers"
BIN = PEERS / "bin"

FUNCTIONS = 98_000
TOOLS = {1: "2.40", 2: "2.44", 3: "new"}
"""The release of GNU binutils that writes each version."""

_SAVED = ("%r15", "%r14", "%r13", "%r12", "%rbp", "%rbx")
"""In the order in which gcc pushes them: a function that saves n pushes the last n."""


@dataclass(frozen=True)
class Input:
    """A shared library, and the section in it."""

    version: int
    library: Path
    section: Path
    """The bytes of the section alone, for programs that take nothing else."""
    address: int
    """Where the section is loaded."""


def inputs() -> list[Input]:
    """All inputs, made if they are not there."""
    text = Path(__file__).read_bytes() + (PEERS / "peers.json").read_bytes()
    folder = CACHE / hashlib.sha256(text).hexdigest()[:12]
    if not (folder / "complete").exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        folder.mkdir(parents=True)
        assembly = folder / "functions.s"
        with assembly.open("w") as file:
            file.writelines(functions(FUNCTIONS))
        for version in TOOLS:
            _make(folder, assembly, version)
        assembly.unlink()
        (folder / "complete").touch()
    return [_input(folder, version) for version in TOOLS]


def _make(folder: Path, assembly: Path, version: int) -> None:
    tools = TOOLS[version]
    made, library = folder / f"v{version}.o", folder / f"v{version}.so"
    subprocess.run([BIN / f"as-{tools}", "--gsframe", "-o", made, assembly], check=True)
    subprocess.run([BIN / f"ld-{tools}", "-shared", "-o", library, made], check=True)
    made.unlink()
    (source,) = read(library)
    (folder / f"v{version}.bin").write_bytes(source.data)


def _input(folder: Path, version: int) -> Input:
    library = folder / f"v{version}.so"
    (source,) = read(library)
    return Input(version, library, folder / f"v{version}.bin", source.address)


def functions(count: int) -> Iterator[str]:
    """The functions, of several kinds in a fixed mixture."""
    rng = random.Random(20)
    yield "\t.text\n"
    for number in range(count):
        name = f"f{number}"
        yield f"\t.globl {name}\n\t.type {name}, @function\n\t.p2align 4\n{name}:\n\t.cfi_startproc\n"
        kind = rng.random()
        if kind < 0.2:
            yield from _leaf(rng)
        elif kind < 0.3:
            yield from _pushing(rng, 0)
        elif kind < 0.93:
            yield from _pushing(rng, rng.choices(range(1, 7), (13, 11, 10, 12, 18, 36))[0])
        else:
            yield from _with_frame_pointer(rng)
        yield f"\t.cfi_endproc\n\t.size {name}, .-{name}\n"


def _leaf(rng: random.Random) -> Iterator[str]:
    yield f"\t.skip {1 + int(rng.expovariate(1 / 20))}, 0x90\n\tret\n"


def _pushing(rng: random.Random, pushes: int) -> Iterator[str]:
    """Push registers, make room for locals, and undo both before each return."""
    registers = _SAVED[len(_SAVED) - pushes :]
    offset = 8
    for register in registers:
        offset += 8
        yield f"\tpush {register}\n\t.cfi_def_cfa_offset {offset}\n\t.cfi_offset {register}, -{offset}\n"
        yield _body(rng, 0.3, 6)
    locals_ = 0
    if not pushes or rng.random() < 0.6:
        locals_ = _locals(rng, offset)
        yield f"\tsub ${locals_}, %rsp\n\t.cfi_def_cfa_offset {offset + locals_}\n"
    returns = rng.choices((0, 1, 2, 3), (3, 60, 25, 12))[0]
    for epilogue in range(returns):
        yield _body(rng, 1, 190)
        yield "\t.cfi_remember_state\n" * (epilogue < returns - 1)
        now = offset
        if locals_:
            yield f"\tadd ${locals_}, %rsp\n\t.cfi_def_cfa_offset {offset}\n"
        for register in reversed(registers):
            now -= 8
            yield f"\tpop {register}\n\t.cfi_def_cfa_offset {now}\n"
        yield "\tret\n"
        yield "\t.cfi_restore_state\n" * (epilogue < returns - 1)
    if not returns:
        yield _body(rng, 1, 40)


def _with_frame_pointer(rng: random.Random) -> Iterator[str]:
    yield "\tpush %rbp\n\t.cfi_def_cfa_offset 16\n\t.cfi_offset %rbp, -16\n"
    yield "\tmov %rsp, %rbp\n\t.cfi_def_cfa_register %rbp\n"
    yield _body(rng, 1, 300)
    yield "\tleave\n\t.cfi_def_cfa %rsp, 8\n\tret\n"


def _locals(rng: random.Random, offset: int) -> int:
    """Bytes of a frame's locals: mostly few, now and then more than one byte can say, seldom more than two."""
    kind = rng.random()
    words = int(rng.expovariate(1 / 4))
    if kind < 0.15:
        words = int(rng.expovariate(1 / 40))
    elif kind < 0.152:
        words = 4096 + rng.randrange(4096)
    return 16 * (words // 2 + 1) + (8 if offset % 16 == 0 else 0)


def _body(rng: random.Random, chance: float, mean: float) -> str:
    """Code in which the rule does not change."""
    return f"\t.skip {1 + int(rng.expovariate(1 / mean))}, 0x90\n" if rng.random() < chance else ""
