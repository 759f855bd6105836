"""Grafted programs of AArch64 and s390x do their work under user-mode emulation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corpus import PREFIXES
from grafting import LLVM_REWRITERS, REWRITERS, elflint, graft, output_of, rewrite, root, ungraft
from peers import peer, run

pytestmark = pytest.mark.peers

ROOTS = {"aarch64": "arm64", "s390x": "s390x"}
WORK = {
    "dash": ("-c", "i=0; while [ $i -lt 5 ]; do i=$((i + 1)); done; echo $i"),
    "sort": ("--version",),
    "python3.13": ("-S", "-c", "import sys; print(sys.byteorder, 2 ** 100, [n * n for n in range(5)])"),
    "busybox": ("expr", "6", "*", "7"),
}
"""Programs at fixed and at any addresses, one of them static."""


def emulated(arch: str, program: Path, *args: str | Path, **environment: str) -> str:
    return output_of(peer(f"qemu-{arch}"), "-L", root(ROOTS[arch]), program, *args, PYTHONHOME="/usr", **environment)


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("arch", ROOTS)
def test_a_program_works_as_it_comes_out_and_after_every_tool(arch: str, name: str, tmp_path: Path) -> None:
    program = root(ROOTS[arch]) / "usr/bin" / name
    expected = emulated(arch, program, *WORK[name])
    assert expected
    assert not expected.startswith("exit")
    target, rewritten = tmp_path / name, tmp_path / "rewritten" / name
    rewritten.parent.mkdir()
    graft(program, target, 1000)
    assert emulated(arch, target, *WORK[name]) == expected
    assert elflint(target) == elflint(program)
    shown = run(f"{PREFIXES[arch]}readelf-new", "--sframe", target)
    assert shown.stdout.count(b"func idx") == 1000
    assert shown.stderr == b""
    for tool in (*(f"{PREFIXES[arch]}{tool}" for tool in REWRITERS), *LLVM_REWRITERS):
        if tool in LLVM_REWRITERS and rewrite(tool, program, rewritten).returncode:
            continue  # LLVM's tools do not take every static program, grafted or not
        done = rewrite(tool, target, rewritten)
        assert (done.returncode, done.stderr) == (0, b""), tool
        assert emulated(arch, rewritten, *WORK[name]) == expected, tool
    ungraft(target, rewritten)
    assert rewritten.read_bytes() == program.read_bytes()


@pytest.mark.parametrize("arch", ROOTS)
def test_the_c_library_and_the_loader(arch: str, tmp_path: Path) -> None:
    libraries = root(ROOTS[arch]) / "usr/lib" / f"{arch}-linux-gnu"
    program = root(ROOTS[arch]) / "usr/bin/dash"
    loader = next(libraries.glob("ld*.so.1"))
    graft(libraries / "libc.so.6", tmp_path / "libc.so.6", 3000)
    graft(loader, tmp_path / loader.name, 300)
    shutil.copy(tmp_path / "libc.so.6", tmp_path / "grafted")
    for tool in ("", *(f"{PREFIXES[arch]}{tool}" for tool in REWRITERS), *LLVM_REWRITERS):
        if tool:
            assert rewrite(tool, tmp_path / "grafted", tmp_path / "libc.so.6").returncode == 0, tool
        listed = emulated(arch, tmp_path / loader.name, "--library-path", tmp_path, "--list", program)
        assert str(tmp_path / "libc.so.6") in listed
        command = ("--library-path", tmp_path, program, "-c", "echo $((6 * 7))")
        assert emulated(arch, tmp_path / loader.name, *command) == "42\n", tool
