"""What holds of every kernel's source: rules that the compiler does not check, and that only some Pythons punish."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernels import ROOT, kernels

SOURCES = [ROOT / "src" / f"{name.replace('.', '/')}.py" for name in kernels()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_kernel_counts_from_the_end(path: Path) -> None:
    """Kernels are compiled without wrap-around: a negative index reads another place, or raises, by version."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Subscript):
            bounds = [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else [node.slice]
            for bound in bounds:
                counted = isinstance(bound, ast.UnaryOp) and isinstance(bound.op, ast.USub)
                assert not counted, f"{path.name}, line {node.lineno}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_has_its_types_beside_it(path: Path) -> None:
    assert path.with_suffix(".pyi").exists()
