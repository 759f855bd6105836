"""`walkback verify --explain`: the instructions of a function, and what the table and the code have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import WALKBACK, run, told
from cli.test_cli_verify import TEXT
from proof.assembled import FRAME, LEAVE, verified

pytestmark = pytest.mark.whole

PROCESS = Path(__file__).parents[2] / "bench" / "process.py"
HEADINGS = ["address", "verdict", "instruction", "the table has", "the code has"]


@pytest.fixture
def object_file(tmp_path: Path) -> Path:
    return made(TEXT, tmp_path)


def made(text: str, folder: Path, name: str = "some.o") -> Path:
    path = folder / name
    subprocess.run(["as", "-o", path, "-"], input=text.encode(), check=True)
    return path


def columns(path: Path, name: str, *more: str) -> list[list[str]]:
    """The cells of each line below the headings."""
    _, headings, *lines = run("verify", "--explain", name, *more, path).stdout.decode().splitlines()
    begins = [headings.index(title) for title in HEADINGS]
    ends = [*begins[1:], None]
    return [[line[begin:end].strip() for begin, end in zip(begins, ends, strict=True)] for line in lines]


def objects(path: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run("verify", "--json", "--explain", name, path).stdout.splitlines()]


def test_explain_shows_each_instruction(object_file: Path) -> None:
    done = run("verify", "--explain", "wrong", object_file)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [
        f"{object_file}: .eh_frame: wrong",
        "  address    verdict     instruction      the table has               the code has",
        "  .text+0x5  proved      pushq %rbx       CFA = rsp+8, ra = *(CFA-8)  CFA = rsp+8, ra = *(CFA-8)",
        "  .text+0x6  wrong: cfa  xorl %ebx, %ebx  CFA = rsp+8, ra = *(CFA-8)  CFA = rsp+16, ra = *(CFA-8)",
        "  .text+0x8  wrong: cfa  popq %rbx                                    rbx = *(CFA-16)",
        "  .text+0x9  proved      retq                                         CFA = rsp+8, rbx unchanged",
    ]
    done = run("verify", "--explain", "right", object_file)
    assert done.returncode == 0
    assert [line.split()[1] for line in done.stdout.decode().splitlines()[2:]] == ["proved"] * 4


def test_the_state_stands_beside_what_is_proved(tmp_path: Path) -> None:
    verified(f"{FRAME} nop; {LEAVE}", tmp_path)
    rows = columns(tmp_path / "f.o", "f")
    assert [row[1] for row in rows] == ["proved"] * 5
    assert [row[3] for row in rows[1:]] == [
        "CFA = rsp+16, fp = *(CFA-16)",
        "CFA = rbp+16",
        "",
        "CFA = rsp+8, fp unchanged",
    ]
    assert [row[4] for row in rows[1:]] == ["CFA = rsp+16, fp = *(CFA-16)", "", "", "CFA = rsp+8, fp unchanged"]
    one = objects(tmp_path / "f.o", "f")[2]
    others = dict.fromkeys(("rbx", "r12", "r13", "r14", "r15"), "unchanged")
    assert one["rules"] == {"cfa": "rbp+16", "ra": "*(CFA-8)", "fp": "*(CFA-16)", **others}
    assert one["state"] == {"cfa": "rsp+16", "ra": "*(CFA-8)", "fp": "*(CFA-16)", **others}
    assert (one["rule"], one["computed"]) == (
        "CFA = rbp+16, ra = *(CFA-8), fp = *(CFA-16)",
        "CFA = rsp+16, ra = *(CFA-8), fp = *(CFA-16)",
    )


def test_a_limit_of_instructions_and_how_many_more_there_are(object_file: Path) -> None:
    for limit in (0, 1, 2):
        done = run("verify", "--explain", "wrong", "--limit", str(limit), object_file)
        lines = done.stdout.decode().splitlines()
        assert (done.returncode, len(lines)) == (1, 2 + limit + (limit > 0))
        assert lines[-1] == f"  and {4 - limit} more instructions; 2 of all are wrong"
    assert len(objects(object_file, "wrong")) == 4


@pytest.mark.parametrize(
    ("bytes_", "verdict"), [(4_000_000, "proved"), (4_200_000, "unknown: too-complex")], ids=["large", "too-large"]
)
def test_a_large_function_takes_little_memory(bytes_: int, verdict: str, tmp_path: Path) -> None:
    text = f".text\n.globl f\n.type f,@function\nf: .cfi_startproc\n.rept {bytes_}\nnop\n.endr\nret\n.cfi_endproc\n"
    path = made(text, tmp_path)
    said = tmp_path / "said"
    measured: list[str | Path] = [sys.executable, PROCESS, said, WALKBACK, "verify", "--explain", "f", path]
    *_, peak = subprocess.run(measured, capture_output=True, check=True).stdout.split()
    lines = list(map(str.rstrip, said.read_text(encoding="utf-8").splitlines()))
    assert len(lines) == 2 + 1000 + 1
    assert lines[1001].split("  ")[2] == verdict
    assert lines[-1] == f"  and {bytes_ + 1 - 1000} more instructions"
    assert int(peak) < 400_000  # kilobytes; one object for each instruction would be gigabytes


REFERRING = """
mov data+8(%rip),%rbx; lea .Lstr(%rip),%rdi; movl $5,counter(%rip); mov $data,%edi; mov glob@GOTPCREL(%rip),%rax
je 1f; call puts@PLT; call *_ZN2ns3runEi@GOTPCREL(%rip); jmp far; 1: ret
.section .text.far,"ax"; far: .cfi_sections .eh_frame; nop; .data; data: .quad 1,2; .local counter; .comm counter,8
.section .rodata; .quad 0; .Lstr: .asciz "hi"; .text
"""


def test_objects_have_the_bytes_of_the_file_and_sections_and_offsets(tmp_path: Path) -> None:
    verified(REFERRING, tmp_path)
    path = tmp_path / "f.o"
    rows = objects(path, "f")
    assert [row["text"] for row in rows] == [
        "movq (%rip), %rbx <.data+0x8>",
        "leaq (%rip), %rdi <.rodata+0x8>",
        "movl $5, (%rip) <.bss+0x0>",
        "movl $0, %edi <.data+0x0>",
        "movq (%rip), %rax <glob>",
        "je .text+0x36",
        "callq <puts>",
        "callq *(%rip) <ns::run>",
        "jmp <far>",
        "retq",
    ]
    section = path.with_suffix(".text")
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", path, section], check=True)
    assert bytes.fromhex("".join(str(row["code"]) for row in rows)) == section.read_bytes()


def test_a_function_whose_fde_begins_behind_its_symbol_and_a_symbol_within_one(tmp_path: Path) -> None:
    text = HIDDEN.replace(";", "\n")
    path = made(text, tmp_path)
    for name in ("late", "inner", "0x5"):
        assert [row[0] for row in columns(path, name)] == [".text+0x4", ".text+0x5", ".text+0x6"]
    assert "1 function: 1 proved" in run("verify", "--function", "late", path).stdout.decode()
    assert told(run("verify", "--explain", "bare", path)) == (1, f"{path}: there is no function 'bare' with a table")
    assert told(run("verify", "--function", "bare", path)) == (1, f"{path}: there is no function 'bare' with a table")


HIDDEN = """
.text; .globl late; .type late,@function; late: endbr64; .cfi_startproc; nop; nop; .type inner,@function; inner: ret
.cfi_endproc; .size inner,1; .size late,7; .type bare,@function; bare: ret; .size bare,1
"""


@pytest.mark.parametrize("wanted", ["nothing", "_ZN2ns7nothingEv"])
def test_a_name_that_is_not_there_is_one_line(wanted: str, object_file: Path, tmp_path: Path) -> None:
    assert told(run("verify", "--explain", wanted, object_file)) == (
        1,
        f"{object_file}: there is no function {wanted!r} with a table",
    )
    archive = tmp_path / "some.a"
    subprocess.run(["ar", "rc", archive, object_file], check=True)
    assert told(run("verify", "--explain", wanted, archive)) == (
        1,
        f"{archive}: there is no function {wanted!r} with a table",
    )
    done = run("verify", "--explain", wanted, "--table", ".eh_frame", object_file)
    assert told(done) == (1, f"{object_file}: there is no function {wanted!r} in the table .eh_frame")
    assert told(run("verify", "--explain", "0x1234", object_file)) == (
        1,
        f"{object_file}: no table describes code at 0x1234",
    )


def test_code_that_is_elsewhere_is_not_explained(object_file: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "some.debug"
    object_file = made(".cfi_sections .debug_frame\n" + TEXT, tmp_path)
    subprocess.run(["objcopy", "--only-keep-debug", object_file, stripped], check=True)
    done = run("verify", "--explain", "right", stripped)
    assert told(done) == (1, f"{stripped}: the code of right is not in the file")


@pytest.mark.parametrize(
    ("where", "first"),
    [
        (".text+0x6", [".text+0x5"]),
        ("0x6", [".text+0x5"]),
        (".text+0xf", []),
        (".data+0", []),
        ("+6", []),
        ("-1", []),
        ("0xffffffffffffffff", []),
        (str(1 << 90), []),
    ],
)
def test_explain_takes_addresses_of_objects(where: str, first: list[str], object_file: Path) -> None:
    lines = run("verify", f"--explain={where}", object_file).stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[2:3]] == first


def test_explain_names_what_is_called_and_has_the_state_of_what_is_not_proved(tmp_path: Path) -> None:
    text = "call h; call g; mov (%rdi),%rsp; push %rax; ret; .cfi_endproc; g: .cfi_startproc; ret"
    verified(text, tmp_path)
    path = tmp_path / "f.o"
    rows = columns(path, "f")
    assert [row[2] for row in rows[:2]] == ["callq <h>", "callq <g>"]
    assert rows[3][1] == "unknown: cfa-value"
    assert rows[3][4] == "CFA = not known, ra = *(CFA-8)"
    found = objects(path, "f")
    assert [one["text"] for one in found[:2]] == ["callq <h>", "callq <g>"]
    assert {one["type"] for one in found} == {"instruction"}
    assert [one["verdict"] for one in found] == ["proved", "proved", "proved", "unknown", "unknown"]
    assert found[0]["rule"] == found[0]["computed"] == "CFA = rsp+8, ra = *(CFA-8)"
    assert (found[3]["why"], found[3]["what"], found[3]["section"]) == ("cfa-value", None, ".text")
    assert (found[3]["address"], found[3]["computed"]) == (13, rows[3][4])


def test_explain_takes_no_other_choice_of_functions(object_file: Path) -> None:
    done = run("verify", "--explain", "right", "--function", "wrong", object_file)
    assert done.returncode == 2
    assert b"--explain shows one function: it takes no --function" in done.stderr


def test_explain_has_the_text_of_objdump_without_capstone(object_file: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "capstone.py").write_text("raise ImportError")
    done = run("verify", "--explain", "right", object_file, env={"PYTHONPATH": str(hidden)})
    lines = [line.split("  ")[3].strip() for line in done.stdout.decode().splitlines()[2:]]
    assert [line.replace("retq", "ret") for line in lines] == ["push %rbx", "xor %ebx,%ebx", "pop %rbx", "ret"]
