"""Names as people write them, from those that compilers write: C++, Rust, OCaml, and Swift by its own program.

How a name begins says which language it is from. What is no such name, or breaks its rules, stays as it is, and so do
the languages that are not read here. The version of a symbol (`@@GLIBC_2.34`) is left out; `@plt` stays.

C++ names are shown without the types of their parameters and result unless these are asked for, as perf does. What a
compiler says of a piece of a function it split or copied (`.cold`, `.part.0`) is kept as ` [clone .cold]`. Of Rust's
names the hashes are left out, and so are the numbers that LLVM gives to units (`.llvm.123`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from walkback.symbols import cxa

_LEGACY = re.compile(r"_{1,3}ZN")
_LEGACY_HASH = re.compile(r"17h[0-9a-f]{16}E((?:\.[\w$]+)*)$")
_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_ESCAPE = re.compile(r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$|\.\.|\.")
_SWIFT = re.compile(r"_?\$[sS][^ \n\0]*$")
_OCAML = re.compile(r"caml([A-Z][\w.$]*(?:@plt)?)$")
_OCAML_ESCAPE = re.compile(r"__|\$([0-9a-f]{2})")
_CLONE = re.compile(r"\.[^.]+(?:\.[0-9A-F]+(?![^.]))*")
_UNIT_OF_LLVM = re.compile(r"\.llvm\.[0-9A-F]+")
_CLONES = re.compile(r"(?: \[clone [^\]]*\])+$| \(\.[^()]*\)$")
_SWIFT_SECONDS = 60
_SWIFT_ELSEWHERE = "/usr/libexec/swift/bin"
"""Where Debian has Swift's programs."""
_VERSION = re.compile(r"(?<=[\w.$])@@?(?!plt\b)[\w.+-]+$")
_TEMPLATE_MARKS = re.compile(r"[<>]|\boperator\b")

_PATH = re.compile(r"(?:[a-z_]\w*::)*~?([a-z_]\w*)", re.ASCII | re.IGNORECASE)
_STREAMS = ("istream", "ostream", "iostream")
_ABBREVIATED = {"allocator", "string", "basic_string", *_STREAMS, *(f"basic_{one}" for one in _STREAMS)}

_CLONE_KINDS = "(?:cold|constprop|isra|llvm|lto_priv|part|warm)"
_CLONE_SUFFIX = re.compile(rf"(?:\.{_CLONE_KINDS}(?:\.\d+)*|\s?\[clone \.{_CLONE_KINDS}(?:\.\d+)*\])+$")

Demangle = bool | Literal["short"]
"""Whether names are shown as people write them, and whether without the arguments of templates."""


def is_mangled(name: str) -> bool:
    """Whether a name begins like those that are demangled here."""
    begin = ("_Z", "__Z", "___Z", "____Z", "_R")
    return name.startswith(begin) or any(one.match(name) is not None for one in (_SWIFT, _OCAML))


def shown(names: Sequence[str], how: Demangle, *, parameters: bool = False) -> list[str]:
    """Names as they are to be shown."""
    if not how:
        return list(names)
    found = demangle(names, parameters=parameters)
    return [shortened(name) for name in found] if how == "short" else found


def is_called(name: str, wanted: str) -> bool:
    """Whether people may call a demangled name so: without result or parameters, and with `<...>` for arguments."""
    short = "<...>" in wanted
    # Without parameters a name is part of what it is with them.
    if not short and wanted.partition("[clone")[0] not in name.replace(" ", ""):
        return False
    forms = (name, without_parameters(name), _without_its_result(name))
    return any((shortened(form) if short else form).replace(" ", "") == wanted for form in forms)


def spelled_out(shown: str) -> str:
    """What all mangled names have in them that are shown so: the last name of a path, or nothing.

    C++ abbreviates operators and some classes of its library, whose constructors are called as they are.

    >>> spelled_out("Queue::push"), spelled_out("Queue::~Queue"), spelled_out("operator new"), spelled_out("run(int)")
    ('push', 'Queue', '', '')
    """
    path = _PATH.fullmatch(shown)
    return path[1] if path and not path[1].startswith("operator") and path[1] not in _ABBREVIATED else ""


def without_clone(name: str) -> str:
    """The name of the function that a compiler split or copied.

    >>> [without_clone(name) for name in ("run.cold", "run.constprop.0.isra.1", "Queue::push [clone .part.0]")]
    ['run', 'run', 'Queue::push']
    """
    return _CLONE_SUFFIX.sub("", name)


def shortened(name: str) -> str:
    """A demangled name with `<...>` for the arguments of templates.

    What begins with `<`, as the name of a method of a Rust trait, keeps its outermost pair.

    >>> shortened("std::vector<int, std::allocator<int> >::push_back(int const&)")
    'std::vector<...>::push_back(int const&)'
    """
    if "<" not in name[1:]:
        return name
    kept: list[str] = []
    depth, outer, done, skip = 0, int(name.startswith("<")), 0, 0
    for mark in _TEMPLATE_MARKS.finditer(name):
        position = mark.start()
        if position < skip:
            continue
        if mark[0] == "operator":
            match = _OPERATOR_NAME.match(name, position)
            skip = match.end() if match else 0
        elif mark[0] == "<":
            depth += 1
            if depth == outer + 1:
                kept += [name[done:position], "<...>"]
        elif name[position - 1] not in "-=" and depth:  # an arrow is no bracket
            depth -= 1
            if depth == outer:
                done = position + 1
            outer = min(outer, depth)
    return name if depth else "".join(kept) + name[done:]


def demangle(names: Sequence[str], *, parameters: bool = False) -> list[str]:
    """Each name for a person; `parameters` adds the types of C++ functions' parameters and results."""
    found = [_VERSION.sub("", name) if "@" in name else name for name in names]
    names = list(found)
    cpp: dict[str, list[int]] = {}
    swift: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        if name.startswith(("_Z", "__Z", "___Z", "____Z")):
            legacy = demangle_legacy(name)
            if legacy is None:
                cpp.setdefault(name, []).append(number)
            else:
                found[number] = legacy
        elif name.startswith("_R"):
            found[number] = _v0(name) or name
        elif _SWIFT.match(name):
            swift.setdefault(name, []).append(number)
        elif ocaml := _OCAML.match(name):
            found[number] = _OCAML_ESCAPE.sub(_ocaml_character, ocaml[1])
    for places, answers in ((cpp, _cpp(list(cpp), parameters=parameters)), (swift, _swift(list(swift)))):
        for numbers, answer in zip(places.values(), answers, strict=True):
            for number in numbers:
                found[number] = answer
    return found


def _v0(name: str) -> str | None:
    from walkback.symbols.rustv0 import demangle_v0  # imported for who has such names

    base, at, version = name.partition("@")
    base, dot, clone = base.partition(".")
    found = demangle_v0(base) if len(base) <= cxa.LONGEST else None
    # A crate can have an empty name.
    return found + _clones(_UNIT_OF_LLVM.sub("", dot + clone)) + at + version if found else None


def _clones(suffix: str) -> str:
    """What stands behind a name as c++filt shows it: `.part.0.cold` as ` [clone .part.0] [clone .cold]`."""
    return "".join(f" [clone {one}]" for one in _CLONE.findall(suffix))


def _ocaml_character(match: re.Match[str]) -> str:
    """A dot between the names of modules; or a character that a symbol cannot have."""
    if not match[1]:
        return "."
    return chr(int(match[1], 16)) if chr(int(match[1], 16)).isprintable() else match[0]


# C++


def _cpp(names: list[str], *, parameters: bool) -> list[str]:
    if not names:
        return []
    parts = [name.partition("@") for name in names]
    answers = _answers([base for base, _, _ in parts])
    result = []
    for name, (_, at, version), answer in zip(names, parts, answers, strict=True):
        if answer is None:
            result.append(name)
            continue
        # Tables, guards and thunks are called after what they belong to, all of it.
        whole = parameters or _SPECIAL.match(name)
        result.append((answer if whole else without_parameters(answer)) + at + version)
    return result


def _answers(names: list[str]) -> list[str | None]:
    """The C++ library's; it knows what stands behind a function's name, and nothing behind other names."""
    wanted = [name.encode(errors="surrogateescape") for name in names]
    found = [None if one is None else one.decode(errors="backslashreplace") for one in cxa.demangle(wanted)]
    copies = [number for number, name in enumerate(names) if found[number] is None and _COPY.fullmatch(name)]
    originals = cxa.demangle([wanted[number].partition(b".")[0] for number in copies])
    for number, text in zip(copies, originals, strict=True):
        if text is not None:
            _, dot, suffix = names[number].partition(".")
            found[number] = text.decode(errors="backslashreplace") + _clones(dot + suffix)
    return found


def without_parameters(text: str) -> str:
    """A demangled C++ name without the types of parameters and result; what is not understood stays as it is."""
    body, tail = text, ""
    if " [clone ." in text or " (." in text:
        clone = _CLONES.search(text)
        body, tail = (text[: clone.start()], text[clone.start() :]) if clone else (text, "")
    end = body.rfind(")")
    if end < 0 or not _QUALIFIERS.fullmatch(body, end + 1):
        return text
    start = _opening(body, end)
    if start <= 0 or body.endswith("operator", 0, start) or body[start:].startswith("(anonymous namespace)"):
        return text
    name = body[:start]
    if name.endswith(")") and not name.endswith("operator()"):
        # It returns a pointer to a function, and its own name stands within: `void (*name(int))(char)`.
        inner = name[_opening(name, len(name) - 1) + 1 : -1]
        if not inner.startswith(("*", "&")):
            return name + tail  # it converts to such a pointer
        return without_parameters(inner.lstrip("*&")) + tail
    # Templates have their result before the name.
    return (_without_result(name) if name.endswith(">") else name) + tail


def _without_its_result(text: str) -> str:
    """The name of a template with its parameters."""
    name = without_parameters(_CLONES.sub("", text))
    start = text.find(f" {name}(") + 1 if name.endswith(">") else 0
    return text[start:]


_COPY = re.compile(r"[^.]+(?:\.[\w$]+)+")
_SPECIAL = re.compile(r"_{1,4}Z[TG]")
_QUALIFIERS = re.compile(r"(?: const| volatile| &&?| noexcept| restrict)*")
_OPERATOR_NAME = re.compile(
    r"operator(?:<=>|->\*?|<<=?|>>=?|<=?|>=?|\(\)|\[\]|\"\" |[^\s\w<>()\[\]]+| (?:new|delete|co_await)\b)(?: (?=<))?"
)
_MARKS = re.compile(r"[<>()\[\]{} ]|\boperator\b")
_NOT_BEFORE_NAME = re.compile(r" (?:(?:const|volatile|&&?|restrict)(?:::| )|\[clone)")


def _opening(text: str, end: int) -> int:
    """Where the parenthesis opens that closes at `end`; -1 if it does not."""
    depth, position = 0, end + 1
    while True:
        # Of the parentheses before `position` the last.
        closing, opening = text.rfind(")", 0, position), text.rfind("(", 0, position)
        position = max(closing, opening)
        if position < 0:
            return -1
        depth += 1 if position == closing else -1
        if not depth:
            return position


def _without_result(name: str) -> str:
    """What stands behind the last space that is not in brackets, nor part of an operator's name."""
    opened: list[str] = []
    start = skip = 0
    for mark in _MARKS.finditer(name):
        position, character = mark.start(), mark[0]
        if position < skip:
            continue
        if character == "operator":
            match = _OPERATOR_NAME.match(name, position)
            if not opened and match is None:
                break  # an operator that converts has spaces in its name, and no result before it
            skip = match.end() if match else 0
        elif character in "<([{":
            opened.append(character)
        elif character in ")]}":
            # A `<` that is still open between parentheses was a comparison.
            while opened and opened.pop() == "<":
                pass
        elif character == ">":
            opened = opened[:-1] if opened[-1:] == ["<"] else opened
        elif not (opened or _NOT_BEFORE_NAME.match(name, position)):
            start = position + 1
    return name[start:]


# Rust, before v0


@lru_cache(maxsize=4096)
def demangle_legacy(name: str) -> str | None:
    """The path in a name of Rust's older mangling, without its hash; None if it is none."""
    base, at, version = name.partition("@")
    start = _LEGACY.match(base) if len(base) <= cxa.LONGEST and base.isascii() else None
    hashed = _LEGACY_HASH.match(base, max(base.rfind("17h"), 0))
    if start is None or hashed is None or hashed.start() <= start.end():
        return None
    rest, parts = base[start.end() : hashed.start()], []
    while rest:
        digits = re.match(r"[1-9][0-9]{0,5}", rest)
        if digits is None or len(rest) < digits.end() + int(digits[0]):
            return None
        end = digits.end() + int(digits[0])
        parts.append(_unescaped(rest[digits.end() : end]))
        rest = rest[end:]
    return "::".join(parts) + _clones(_UNIT_OF_LLVM.sub("", hashed[1])) + at + version


def _unescaped(part: str) -> str:
    """`$LT$` and its like, `..` for `::`, and `_$` where a name may not begin with `$`."""
    part = part[1:] if part.startswith("_$") else part
    return _ESCAPE.sub(_character, part)


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return _ESCAPES[match[1]]
    if match[2]:
        code = int(match[2], 16)
        return chr(code) if code <= 0x10FFFF and chr(code).isprintable() else match[0]
    return "::" if match[0] == ".." else "."


# Swift


def _swift(names: list[str]) -> list[str]:
    """By `swift demangle`, if it is there; it answers a line for each."""
    command = _swift_command() if names else None
    if command is None:
        return names
    import subprocess

    try:
        done = subprocess.run(
            command, input="\n".join(names) + "\n", capture_output=True, text=True, timeout=_SWIFT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return names
    lines = done.stdout.split("\n")[:-1]
    return lines if len(lines) == len(names) else names


def _swift_command() -> list[str] | None:
    import shutil

    for program, *words in (("swift-demangle", "-compact"), ("swift", "demangle", "-compact")):
        path = shutil.which(program) or shutil.which(program, path=_SWIFT_ELSEWHERE)
        if path is not None:
            return [path, *words]
    return None
