"""The public names of a package, each imported when it is first used.

`__init__.pyi` beside the package's `__init__.py` is the only list of them: type checkers read it, and so does this. A
line of it is `from MODULE import NAME as NAME`.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def public_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package."""

    @cache
    def homes() -> dict[str, str]:
        """The module that each name is from: the package for one of its subpackages."""
        with open(os.path.join(sys.modules[package].__path__[0], "__init__.pyi"), encoding="utf-8") as listed:
            return {name: module for module, name in _NAME.findall(listed.read())}

    def get(name: str) -> Any:
        if name == "__all__":
            return list(homes())
        if name.startswith("_") or name not in homes():
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[package])
        if homes()[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(homes()[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(homes())
