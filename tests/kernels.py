"""The kernels, as `setup.py` lists them."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def kernels() -> tuple[str, ...]:
    """The names of the modules that are compiled."""
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "KERNELS":
            return tuple(ast.literal_eval(node.value))
    raise AssertionError
