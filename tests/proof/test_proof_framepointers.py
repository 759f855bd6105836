"""What the code shows about frame pointers: functions of one kind each, and compilers told to keep them or not."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

import walkback
from cli.commands import run
from damaged import assembled, assembly
from proof.assembled import END, FRAME, HEAD, LEAVE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kernel

KINDS = {
    "keeps": f"{FRAME} call g; test %eax,%eax; je 1f; call g; 1: {LEAVE}",
    "leaf": "lea 1(%rdi),%eax; ret",
    "partly": f"call g; {FRAME} call g; {LEAVE}",
    "none": "sub $8,%rsp; .cfi_def_cfa_offset 16; call g; add $8,%rsp; .cfi_def_cfa_offset 8; ret",
    "breaks": "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %edi,%ebp; call g; pop %rbp;"
    ".cfi_restore 6; .cfi_def_cfa_offset 8; ret",
    "outermost": ".cfi_undefined 16; xor %ebp,%ebp; call g; hlt",
}
SOURCE = """
int outside(int);
__attribute__((noinline)) int middle(int n) { int some[n]; some[0] = n; return outside(some[0]) + outside(n); }
int first(int n) { int sum = 0; while (n--) sum += middle(n); return sum; }
"""


@pytest.mark.parametrize(("kind", "text"), KINDS.items(), ids=KINDS)
def test_each_kind_of_function(kind: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "f.o"
    lines = HEAD + text.replace(";", "\n") + END + "\n"
    subprocess.run(["as", "-o", path, "-"], input=lines.encode(), check=True)
    [found] = walkback.frame_pointers(path)
    [one] = found.listed()
    assert one.keeping.value == kind
    assert found.keeps is (kind in {"keeps", "leaf", "outermost"})
    assert one.linked + one.intact + one.skipped + one.broken + one.undecided == found.bytes == one.size
    assert sum(size for _, size in one.places) == one.broken


@pytest.mark.parametrize("options", [("-fno-pic",), ("-fPIC",)], ids=" ".join)
@pytest.mark.parametrize("is_linked", [False, True])
def test_what_profilers_call_first_does_not_count(options: tuple[str, ...], is_linked: bool, tmp_path: Path) -> None:
    source, path = tmp_path / "source.c", tmp_path / "made"
    source.write_text(SOURCE + "int outside(int n) { return n; } int main(void) { return first(2); }")
    how = ["-nostartfiles", "-no-pie" if options == ("-fno-pic",) else "-pie", "-Wl,-e,main"] if is_linked else ["-c"]
    profiled = ["-O2", "-pg", "-mfentry", "-fno-omit-frame-pointer", "-fcf-protection", *options]
    subprocess.run(["gcc", *profiled, *how, "-o", path, source], check=True)
    found = next(walkback.frame_pointers(path))
    kinds = {one.function: one.keeping.value for one in found.listed()}
    assert [kinds[name] for name in ("first", "middle", "outside", "main")] == ["keeps"] * 4
    assert found.keeps


@pytest.mark.parametrize("compiler", ["gcc", "aarch64-gcc"])
@pytest.mark.parametrize("level", ["-O1", "-O2", "-Os"])
def test_a_compiler_does_what_its_options_ask_for(compiler: str, level: str, tmp_path: Path) -> None:
    source = tmp_path / "source.c"
    source.write_text(SOURCE)
    for option, keeps in (("-fno-omit-frame-pointer", True), ("-fomit-frame-pointer", False)):
        lines = assembly(compiler, level, option, folder=tmp_path, source=source)
        path = assembled(compiler, lines, tmp_path / f"{option}.o")
        assert path is not None
        [found] = walkback.frame_pointers(path)
        assert found.keeps is keeps, option


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "f.o"
    lines = HEAD + KINDS["breaks"].replace(";", "\n") + END + "\n"
    subprocess.run(["as", "-o", path, "-"], input=lines.encode(), check=True)
    done = run("verify", "--frame-pointers", path)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [
        f"{path}: does not keep the chain: frame pointers in 0.000 % of the code",
        "  1 function: breaks 1",
        "  breaks: .text+0x0 f: 6 bytes of 10 without the chain, from .text+0x3 on",
    ]
    function, file = map(json.loads, run("verify", "--frame-pointers", "--json", path).stdout.splitlines())
    assert function == {
        "type": "function", "file": str(path), "table": ".eh_frame", "function": "f", "start": 0, "size": 10,
        "section": ".text", "keeping": "breaks", "linked": 0, "intact": 4, "skipped": 0, "broken": 6, "undecided": 0,
        "places": [[3, 6]],
    }  # fmt: skip
    assert file == {
        "type": "file", "file": str(path), "table": ".eh_frame", "keeps": False, "share": 0.0, "functions": 1,
        "bytes": 10, "kept_bytes": 0, "kinds": {"breaks": 1},
    }  # fmt: skip
    assert run("verify", "--frame-pointers", "--table", ".eh_frame", path).returncode == 2
