"""Makes one script of modules, as a page has it.

Each file of a script is a module: it says what it takes from others by `import`, and what others may take by `export`.
Browsers load modules by their addresses, and a page has to be one file. So the modules stand in the page's script one
after the other, each as a function of its own, which returns what it exports. Nothing is global.
"""

from __future__ import annotations

import posixpath
import re
from importlib.resources import files

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_TYPES = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/[ \t]*\n", re.MULTILINE | re.DOTALL)
"""Comments for those who check types; a page has no use for them."""


def joined_script(path: str) -> str:
    """A module and all that it imports as an expression, whose value has what the module exports.

    Paths count from the package's folder: `reports/binary.js`.
    """
    modules: dict[str, str] = {}
    _add(modules, path, ())
    parts = [f'$modules["{name}"] = (() => {{\n{text}}})();\n' for name, text in modules.items()]
    return f'(() => {{\n"use strict";\nconst $modules = {{}};\n{"".join(parts)}return $modules["{path}"];\n}})()'


def _add(modules: dict[str, str], path: str, importing: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    if path in modules:
        return
    if path in importing:
        raise ValueError(f"modules import each other: {', '.join((*importing, path))}")
    text = _TYPES.sub("", files("walkback").joinpath(path).read_text(encoding="utf-8"))

    def imported(found: re.Match[str]) -> str:
        other = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        _add(modules, other, (*importing, path))
        return f'const {{{found[1].replace(" as ", ": ")}}} = $modules["{other}"];'

    text = _IMPORT.sub(imported, text)
    names = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{path}: {other[0]!r} is another kind of import or export than scripts of pages have")
    modules[path] = f"{text}return {{{', '.join(names)}}};\n"
