"""The text of instructions: by capstone, by objdump, and their bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from peers import peer
from walkback.base.arch import AARCH64, AMD64
from walkback.code.disassembly import instruction_texts

CODE = [
    (0x401000, bytes.fromhex("55")),
    (0x401001, bytes.fromhex("4889e5")),
    (0x401010, bytes.fromhex("eb05")),
    (0x401012, bytes.fromhex("06")),
    (0x401013, bytes.fromhex("c3")),
    (0x400000, bytes.fromhex("f3c3")),
]
ARM = [(0x1000, bytes.fromhex("fd7bbfa9")), (0x1004, bytes.fromhex("00000000")), (0x1008, bytes.fromhex("c0035fd6"))]


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no capstone."""
    monkeypatch.setitem(sys.modules, "capstone", None)


def test_capstone_has_the_text() -> None:
    pytest.importorskip("capstone")
    texts = instruction_texts(AMD64, CODE)
    assert texts == ["pushq %rbp", "movq %rsp, %rbp", "jmp 0x401017", "06", "retq", "repz retq"]


def test_objdump_has_what_capstone_does_not_know(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("capstone")
    (tmp_path / "objdump").write_text(f'#!/bin/sh\nexec {peer("objdump-new")} "$@"\n')
    (tmp_path / "objdump").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code = [bytes.fromhex(one) for one in ("55", "62d48418fff6", "06", "d51050", "c3")]
    texts = instruction_texts(AMD64, [(0x1000 + 16 * number, one) for number, one in enumerate(code)])
    assert texts == ["pushq %rbp", "push2p %r14,%r15", "06", "push %r16", "retq"]


@pytest.mark.usefixtures("hidden")
def test_objdump_has_it_without_capstone() -> None:
    texts = instruction_texts(AMD64, CODE)
    assert [text.replace("retq", "ret") for text in texts] == [
        *("push %rbp", "mov %rsp,%rbp", "jmp 0x401017", "06", "ret", "repz ret"),
    ]
    assert instruction_texts(AMD64, []) == []


def test_sections_of_an_object_have_the_same_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    code = [(0, bytes.fromhex("55")), (1, bytes.fromhex("c3")), (0, bytes.fromhex("90")), (1, bytes.fromhex("53"))]
    for _ in range(2):
        texts = [text.replace("q", "") for text in instruction_texts(AMD64, code)]
        assert texts == ["push %rbp", "ret", "nop", "push %rbx"]
        monkeypatch.setitem(sys.modules, "capstone", None)


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("program", [None, "exit 1", "echo nothing", "kill -9 $$"])
def test_bytes_stand_where_no_objdump_helps(
    program: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if program is not None:
        (tmp_path / "objdump").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "objdump").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert instruction_texts(AMD64, CODE)[:3] == ["55", "48 89 e5", "eb 05"]


@pytest.mark.peers
@pytest.mark.usefixtures("hidden")
def test_objdump_of_the_machine_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "aarch64-linux-gnu-objdump"
    program.write_text(f'#!/bin/sh\nexec {peer("aarch64-objdump-2.44")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert instruction_texts(AARCH64, ARM) == ["stp x29, x30, [sp, #-16]!", "udf #0", "ret"]
