"""`walkback verify`: what it prints, and its exit status."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

import packed
import walkback
from cli.commands import run, told
from gopclntab.gotables import Function, encoded, go_program
from walkback.sections.verify import RESTS_ON

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.whole

ASSUMED = f"A proof assumes that {RESTS_ON}."
TEXT = """
.text
.globl right, wrong
.type right,@function
.type wrong,@function
right:
.cfi_startproc
push %rbx
.cfi_def_cfa_offset 16
.cfi_offset 3,-16
xor %ebx,%ebx
pop %rbx
.cfi_restore 3
.cfi_def_cfa_offset 8
ret
.cfi_endproc
.size right,.-right
wrong:
.cfi_startproc
push %rbx
xor %ebx,%ebx
pop %rbx
ret
.cfi_endproc
.size wrong,.-wrong
.globl _ZN2ns3runEi
.type _ZN2ns3runEi,@function
_ZN2ns3runEi:
.cfi_startproc
push %rax
pop %rax
ret
.cfi_endproc
.size _ZN2ns3runEi,.-_ZN2ns3runEi
"""


@pytest.fixture
def object_file(tmp_path: Path) -> Path:
    path = tmp_path / "some.o"
    subprocess.run(["as", "-o", path, "-"], input=TEXT.encode(), check=True)
    return path


def test_what_is_wrong_is_a_line_and_1(object_file: Path) -> None:
    done = run("verify", object_file)
    assert done.returncode == 1
    wrong = "push-without-rule: the table has the CFA at rsp+8, the code rsp+16"
    assert done.stdout.decode().splitlines() == [
        f"{object_file}: .eh_frame",
        "  3 functions: 1 proved, 2 wrong; 13 bytes of instructions: 69.231 % proved, 30.769 % wrong",
        f"  wrong: .text+0x6 wrong+0x1 (3 bytes): {wrong}",
        f"  wrong: .text+0xb ns::run(int)+0x1 (1 byte): {wrong}",
        ASSUMED,
    ]


def test_one_function_and_a_limit(object_file: Path) -> None:
    done = run("verify", "--function", "right", object_file)
    assert done.returncode == 0
    assert "1 function: 1 proved, 0 wrong; 5 bytes of instructions: 100 % proved" in done.stdout.decode()
    assert run("verify", "--function", "ns::run(int)", object_file).returncode == 1
    lines = run("verify", "--limit", "1", object_file).stdout.decode().splitlines()
    assert lines[-2] == "  and 1 more function"
    assert told(run("verify", "--function", "nothing", object_file)) == (
        1,
        f"{object_file}: there is no function 'nothing' with a table",
    )


def test_json(object_file: Path) -> None:
    done = run("verify", "--json", object_file)
    *mismatches, table = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 1
    assert [one["type"] for one in mismatches] == ["mismatch", "mismatch"]
    assert mismatches[0] == {
        "type": "mismatch", "file": str(object_file), "table": ".eh_frame", "function": "wrong", "start": 5,
        "size": 5, "section": ".text", "address": 6, "bytes": 3, "what": "cfa", "claimed": "rsp+8",
        "computed": "rsp+16", "path": [], "pattern": "push-without-rule",
    }  # fmt: skip
    assert table == {
        "type": "file", "file": str(object_file), "table": ".eh_frame", "functions": 3, "functions_proved": 1,
        "functions_wrong": 2, "functions_careless": 0, "bytes": 13, "proved": 9, "wrong": 4, "assumed": 0,
        "not_reached": 0, "unknown": 0, "reasons": {},
    }  # fmt: skip


def test_functions_without_a_rule_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "bare.o"
    bare = "".join(f".type {name},@function\n{name}: ret\n.size {name},1\n" for name in ("_ZN2ns4bareEv", "last"))
    subprocess.run(["as", "-o", path, "-"], input=(TEXT + bare).encode(), check=True)
    lines = [line for line in run("verify", path).stdout.decode().splitlines() if "described" in line]
    assert lines == ["  not described: .text+0xd ns::bare() (1 byte)", "  not described: .text+0xe last (1 byte)"]
    lines = run("verify", "--limit", "1", path).stdout.decode().splitlines()
    assert lines[-2] == "  and 1 more that are not described"
    done = run("verify", "--json", path)
    assert [json.loads(line) for line in done.stdout.splitlines()][-2] == {
        "type": "undescribed", "file": str(path), "table": ".eh_frame", "function": "last", "start": 14, "size": 1,
        "section": ".text",
    }  # fmt: skip
    done = run("verify", "--function", "right", path)
    assert (done.returncode, b"described" in done.stdout) == (0, False)
    assert b"undescribed" not in run("verify", "--json", "--function", "right", path).stdout


def test_each_table_and_one_of_them(object_file: Path) -> None:
    run("add", object_file)
    done = run("verify", object_file)
    assert [line for line in done.stdout.decode().splitlines() if not line.startswith(" ")] == [
        f"{object_file}: .eh_frame",
        f"{object_file}: .sframe",
        ASSUMED,
    ]
    done = run("verify", "--table", ".sframe", object_file)
    assert done.returncode == 1
    assert "the table has the CFA at rsp+8, the code rsp+16" in done.stdout.decode()
    assert told(run("verify", "--table", ".nothing", object_file)) == (1, f"{object_file}: there is no table .nothing")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no ELF file")
    assert told(run("verify", path)) == (3, f"{path}: this is not an ELF file, archive or package")


def test_help_has_what_a_proof_assumes() -> None:
    assert ASSUMED in " ".join(run("verify", "--help").stdout.decode().split())


def test_a_file_without_its_code(object_file: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "some.debug"
    source = tmp_path / "some.s"
    source.write_text(".cfi_sections .debug_frame\n" + TEXT)
    subprocess.run(["as", "-o", object_file, source], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", object_file, stripped], check=True)
    lines = run("verify", stripped).stdout.decode().splitlines()
    assert lines[1:3] == [
        "  3 functions: 0 proved, 0 wrong; 13 bytes of instructions: 100 % unknown",
        "  unknown: no-code: 13 bytes",
    ]
    done = run("verify", "--frame-pointers", stripped)
    assert done.returncode == 1
    assert "frame pointers in 0.000 % of the code" in done.stdout.decode()
    assert "3 functions: undecided 3" in done.stdout.decode()


def test_code_that_ends_behind_all_addresses(object_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "some"
    subprocess.run(["ld", "-shared", "-o", program, object_file], check=True)
    with walkback.ElfFile(program) as elf:
        [section] = elf.sections_named(".text")
    data = bytearray(program.read_bytes())
    start = int.from_bytes(data[40:48], "little") + section * 64 + 16
    data[start : start + 8] = (2**64 - 8).to_bytes(8, "little")
    program.write_bytes(data)
    done = run("verify", program)
    assert done.returncode == 0
    assert b"unknown: no-code: 13 bytes" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize("kind", ["tar", "whl"])
def test_packages_are_read_through(kind: str, object_file: Path, tmp_path: Path) -> None:
    files = {"usr/lib/some.o": object_file.read_bytes(), "usr/bin/broken": packed.ELF, "usr/share/text": b"text"}
    package = tmp_path / f"made-1-py3-none-any.{kind}"
    package.write_bytes((packed.tar_of if kind == "tar" else packed.zip_of)(files))
    done = run("verify", package)
    assert done.stdout.decode().splitlines()[0] == f"{package}(usr/lib/some.o): .eh_frame"
    assert told(done) == (
        3,
        f"{package}(usr/bin/broken): offset 0x0: the file ends within its ELF header",
    )


def test_a_package_without_tables(tmp_path: Path) -> None:
    package = tmp_path / "empty.tar"
    package.write_bytes(packed.tar_of({"text": b"text"}))
    assert told(run("verify", package)) == (
        1,
        f"{package}: there is no .eh_frame, .debug_frame or .sframe section",
    )


def test_a_program_of_go_has_a_table_that_is_verified_on_request(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(go_program(encoded([Function("main.main", 64)]), ".gopclntab"))
    no_section = "there is no .eh_frame, .debug_frame or .sframe section"
    hint = "--table .gopclntab verifies the table of Go's functions"
    assert told(run("verify", path)) == (1, f"{path}: {no_section}; {hint}")
    assert run("verify", path, "--table", ".gopclntab").returncode == 0


@pytest.mark.parametrize("kind", ["a", "tar"])
def test_a_name_that_walkback_gives_to_a_member_is_told_what_to_do(
    kind: str, object_file: Path, tmp_path: Path
) -> None:
    package = tmp_path / f"made.{kind}"
    if kind == "a":
        subprocess.run(["ar", "rc", package, object_file], check=True)
    else:
        package.write_bytes(packed.tar_of({object_file.name: object_file.read_bytes()}))
    [name, *_] = run("verify", package).stdout.decode().split(": ")
    assert name == f"{package}({object_file.name})"
    hint = f"to read a member, give the archive {package}, whose members are all read, or extract it first"
    for verb in ("verify", "check"):
        assert told(run(verb, name)) == (3, f"{name}: No such file or directory; {hint}")
    missing = f"{tmp_path}/nothing.{kind}(some.o)"
    assert told(run("verify", missing)) == (3, f"{missing}: No such file or directory")
