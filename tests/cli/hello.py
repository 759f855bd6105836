"""Small programs with call frame information, and the command run on them.

`program` and `hello_object` are of `tests/hello.s`, whose last function SFrame cannot say; `whole` is without that one.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from cfibuilder import CfiBuilder, cfa
from cli.commands import WALKBACK
from cli.inprocess import run
from elfbuilder import HEADER, ElfBuilder
from sframefiles import written
from waiting import PATIENCE
from walkback.elf import ElfFile

SOURCE = (Path(__file__).resolve().parents[1] / "hello.s").read_text()
LEAP = "leap (9 bytes): the caller's SP is not the CFA"
SPOILT, SPELLED = b"l\n\x07\xff", "l\\x0a\\x07\\xff"
"""A symbol with a new line, a bell and a byte that is no UTF-8; Click would take a colour out of itself."""
BARE = """\t.type\tbare, @function
bare:\tpush\t%rbx
\t.skip\t4096, 0x90
\tpop\t%rbx
\tret
\t.size\tbare, .-bare
"""
"""A function without call frame information, of which there is enough to look at the code."""
AWKWARD = "two\nlines\x07"


# Files


@cache
def assembled(source: str, *options: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcc", *options, "-x", "assembler", "-", "-o", f"{folder}/file"]
        subprocess.run(command, input=source.encode(), check=True)
        return Path(folder, "file").read_bytes()


def program(folder: Path, source: str = SOURCE, name: str = "hello") -> Path:
    path = written(folder, assembled(source, "-nostdlib", "-static"), name)
    path.chmod(0o755)
    return path


def hello_object(folder: Path, name: str = "hello.o") -> Path:
    return written(folder, assembled(SOURCE, "-c"), name)


def whole(folder: Path, *, linked: bool = True) -> Path:
    """All of whose functions every version can say."""
    source = SOURCE.partition("\t.type\tleap")[0].replace("\t.cfi_undefined rip\n", "")
    return program(folder, source, "whole") if linked else written(folder, assembled(source, "-c"), "whole.o")


def mixed(folder: Path) -> Path:
    """Which has call frame information for all functions but one."""
    return program(folder, SOURCE.replace("\t.section", f"{BARE}\t.section"), "mixed")


def patched(path: Path, name: str, value: int) -> Path:
    """A copy with another field in its ELF header."""
    offset, code = HEADER[name]
    data = bytearray(path.read_bytes())
    size = {"H": 2, "I": 4, "Q": 8}[code]
    data[offset : offset + size] = value.to_bytes(size, "little")
    return written(path.parent, bytes(data), f"{path.name}-{name}-{value}")


def narrow(path: Path) -> Path:
    """A copy that says that it is a 32-bit file."""
    data = bytearray(path.read_bytes())
    data[4] = 1
    return written(path.parent, bytes(data), f"{path.name}-32")


def spoilt(path: Path, old: bytes = b"leap", new: bytes = SPOILT) -> Path:
    """The same file with another name in it."""
    data = path.read_bytes()
    assert (data.count(old), len(old)) == (1, len(new))
    path.write_bytes(data.replace(old, new))
    return path


def library(folder: Path, *functions: tuple[int, int, bytes]) -> Path:
    """A shared library with code from 0x1000 to 0x2000 and FDEs (start, size, program)."""
    section = CfiBuilder(address=0x2000)
    cie = section.cie(cfa("def_cfa 7 8; offset 16 1"))
    for function in functions:
        section.fde(cie, *function)
    elf = ElfBuilder(kind=3)
    elf.code(".text", 0x1000, 0x1000)
    elf.segment(1, ".text", flags=5, vaddr=0x1000)
    elf.section(".eh_frame", section.bytes(), flags=2, addr=0x2000)
    elf.segment(1, ".eh_frame", vaddr=0x2000)
    return written(folder, elf, "library.so")


def snapshot(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def section_of(path: Path) -> bytes:
    with ElfFile(path) as elf:
        (index,) = elf.sections_named(".sframe")
        return bytes(elf.section_data(index))


def derived(path: Path, *options: object) -> bytes:
    """What `derive` writes."""
    output = path.parent / "derived"
    assert run("derive", path, "-o", output, *options).exit_code == 0
    return output.read_bytes()


def writing(verb: str, path: Path, *output: str | Path) -> list[str | Path]:
    """The command that makes the verb write: to the output, or in place."""
    if verb == "drop":
        assert run("add", path).exit_code == 0
    return [verb, path, *(("-o", *output) if output else ())]


def shell(setup: str, *args: str | bytes | Path, redirection: str = "") -> subprocess.CompletedProcess[bytes]:
    command: list[str | bytes | Path] = [
        "sh",
        "-c",
        f'{setup} exec "$0" "$@" {redirection}',
        WALKBACK,
        *(os.fspath(one) for one in args),
    ]
    return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
