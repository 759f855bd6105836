"""Names of Rust's v0 mangling (RFC 2603), which begin with `_R`.

A name is read and written in one pass; a backreference reads an earlier part again. What it may unfold to, and how
deep it may nest, is bounded. Hashes of crates and the types of constants are left out, as `{:#}` of rustc's own
demangler does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_TYPES = "i8 bool char f64 str f32 u8 isize usize i32 u32 i128 u128 _ i16 u16 () ... i64 u64 !"
_BASIC = dict(zip("abcdefhijlmnopstuvxyz", _TYPES.split(), strict=True))
_SIGNED, _UNSIGNED = frozenset("ailnsx"), frozenset("hjmoty")
_DIGITS = {digit: value for value, digit in enumerate("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")}
_NUMBER = re.compile(r"([0-9a-zA-Z]*)_")
_IDENTIFIER = re.compile(r"(u?)(0|[1-9][0-9]{0,8}(?![0-9]))_?")
_DEEPEST = 150
_LONGEST_RESULT = 16 * 1024
_QUOTED = {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r", 0x27: r"\'", 0x5C: r"\\"}


class _NotRustError(Exception):
    """The name breaks the grammar, or a bound."""


def demangle_v0(name: str) -> str | None:
    """The path that the name stands for; None if it is no such name."""
    text = name.removeprefix("_R")
    if not name.startswith("_R") or not text[:1].isupper() or not text.isascii():
        return None
    reader = _SymbolReader(text)
    try:
        reader.path(in_value=True)
        if reader.at < len(text):
            reader.silently(lambda: reader.path(in_value=False))
    except (_NotRustError, ValueError, RecursionError):
        return None
    return "".join(reader.out) if reader.at == len(text) else None


class _SymbolReader:
    """One name."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self._room = _LONGEST_RESULT
        self._depth = 0
        self._silent = 0
        self._lifetimes = 0

    # Characters

    def _next(self) -> str:
        if self.at >= len(self.text):
            raise _NotRustError
        self.at += 1
        return self.text[self.at - 1]

    def _take(self, wanted: str) -> bool:
        found = self.text.startswith(wanted, self.at)
        self.at += found
        return found

    def _base62(self) -> int:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise _NotRustError
        self.at = match.end()
        return _value(match[1])

    def _optional(self, tag: str) -> int:
        return self._base62() + 1 if self._take(tag) else 0

    def _identifier(self) -> str:
        match = _IDENTIFIER.match(self.text, self.at)
        if match is None:
            raise _NotRustError
        start = match.end()
        self.at = start + int(match[2])
        if self.at > len(self.text):
            raise _NotRustError
        name = self.text[start : self.at]
        return _punycode(name) if match[1] else name

    def _write(self, text: str) -> None:
        if self._silent:
            return
        self._room -= len(text)
        if self._room < 0:
            raise _NotRustError
        self.out.append(text)

    def silently(self, read: Callable[[], None]) -> None:
        """Read a part that is not shown; backreferences in it need not be followed."""
        self._silent += 1
        read()
        self._silent -= 1

    def _back(self, read: Callable[..., None], *given: bool) -> None:
        start = self.at - 1
        place = self._base62()
        if place >= start:
            raise _NotRustError
        if not self._silent:
            here, self.at = self.at, place
            self._deeper(read, *given)
            self.at = here

    def _deeper(self, read: Callable[..., None], *given: bool) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotRustError
        read(*given)
        self._depth -= 1

    # Paths

    def path(self, *, in_value: bool) -> None:
        """A path; in values generic arguments stand behind `::`."""
        self._deeper(self._path, in_value)

    def _path(self, in_value: bool) -> None:
        tag = self._next()
        if tag == "C":
            self._optional("s")
            self._write(self._identifier())
        elif tag == "N":
            self._nested(in_value)
        elif tag in "MXY":
            if tag != "Y":
                self._optional("s")
                self.silently(lambda: self.path(in_value=False))
            self._write("<")
            self._type()
            if tag != "M":
                self._write(" as ")
                self.path(in_value=False)
            self._write(">")
        elif tag == "I":
            self.path(in_value=in_value)
            self._write("::<" if in_value else "<")
            self._list(self._generic)
            self._write(">")
        elif tag == "B":
            self._back(self._path, in_value)
        else:
            raise _NotRustError

    def _nested(self, in_value: bool) -> None:
        namespace = self._next()
        if not namespace.isalpha():
            raise _NotRustError
        self.path(in_value=in_value)
        number = self._optional("s")
        name = self._identifier()
        if namespace.isupper():
            kind = {"C": "closure", "S": "shim"}.get(namespace, namespace)
            self._write(f"::{{{kind}:{name}#{number}}}" if name else f"::{{{kind}#{number}}}")
        elif name:
            self._write(f"::{name}")

    def _list(self, read: Callable[[], None], separator: str = ", ") -> int:
        count = 0
        while not self._take("E"):
            if count:
                self._write(separator)
            read()
            count += 1
        return count

    def _generic(self) -> None:
        if self._take("L"):
            self._lifetime(self._base62())
        elif self._take("K"):
            self._const()
        else:
            self._type()

    # Types

    def _lifetime(self, index: int) -> None:
        if not index:
            self._write("'_")
            return
        depth = self._lifetimes - index
        if depth < 0:
            raise _NotRustError
        self._write(f"'{chr(ord('a') + depth)}" if depth < 26 else f"'_{depth}")

    def _binder(self, read: Callable[[], None]) -> None:
        """`for<'a, 'b> ` and what it holds for."""
        count = self._optional("G")
        if count > len(self.text):
            raise _NotRustError
        outer = self._lifetimes
        for number in range(count):
            self._write(", " if number else "for<")
            self._lifetimes += 1
            self._lifetime(1)
        self._write("> " if count else "")
        read()
        self._lifetimes = outer

    def _type(self) -> None:
        self._deeper(self._any_type)

    def _any_type(self) -> None:
        tag = self._next()
        if tag in _BASIC:
            self._write(_BASIC[tag])
        elif tag in "AST":
            self._sequence(tag)
        elif tag in "RQPO":
            self._pointer(tag)
        elif tag == "F":
            self._binder(self._function)
        elif tag == "D":
            self._object()
        elif tag == "B":
            self._back(self._any_type)
        else:
            self.at -= 1
            self._path(in_value=False)

    def _sequence(self, tag: str) -> None:
        """An array, slice or tuple."""
        self._write("(" if tag == "T" else "[")
        if tag == "T":
            self._write(",)" if self._list(self._type) == 1 else ")")
            return
        self._type()
        if tag == "A":
            self._write("; ")
            self._const()
        self._write("]")

    def _pointer(self, tag: str) -> None:
        """A reference or a raw pointer."""
        self._write({"P": "*const ", "O": "*mut "}.get(tag, "&"))
        if tag in "RQ":
            if self._take("L") and (index := self._base62()):
                self._lifetime(index)
                self._write(" ")
            self._write("mut " if tag == "Q" else "")
        self._type()

    def _object(self) -> None:
        """`dyn` of some traits, and how long it lives."""
        self._write("dyn ")
        self._binder(self._bounds)
        if not self._take("L"):
            raise _NotRustError
        if index := self._base62():
            self._write(" + ")
            self._lifetime(index)

    def _function(self) -> None:
        self._write("unsafe " if self._take("U") else "")
        if self._take("K"):
            abi = "C" if self._take("C") else self._identifier().replace("_", "-")
            self._write(f'extern "{abi}" ')
        self._write("fn(")
        self._list(self._type)
        self._write(")")
        if not self._take("u"):  # of the unit type nothing is written
            self._write(" -> ")
            self._type()

    def _bounds(self) -> None:
        self._list(self._trait, " + ")

    def _trait(self) -> None:
        """A trait and its associated types, which stand among its generic arguments."""
        is_open = self._open_path()
        while self._take("p"):
            self._write(", " if is_open else "<")
            is_open = True
            self._write(f"{self._identifier()} = ")
            self._type()
        self._write(">" if is_open else "")

    def _open_path(self) -> bool:
        """A path whose generic arguments are not closed yet, if it has any."""
        if self._take("B"):
            is_open = False

            def read() -> None:
                nonlocal is_open
                is_open = self._open_path()

            self._back(read)
            return is_open
        if self._take("I"):
            self.path(in_value=False)
            self._write("<")
            self._list(self._generic)
            return True
        self.path(in_value=False)
        return False

    # Constants

    def _const(self) -> None:
        self._deeper(self._any_const)

    def _any_const(self) -> None:
        tag = self._next()
        if tag == "B":
            self._back(self._any_const)
        elif tag == "p":
            self._write("_")
        elif tag in _SIGNED or tag in _UNSIGNED:
            negative = tag in _SIGNED and self._take("n")
            digits = self._hex()
            value = str(int(digits or "0", 16)) if len(digits) <= 16 else f"0x{digits}"
            self._write(f"-{value}" if negative else value)
        elif tag == "b":
            digits = self._hex()
            if digits not in {"", "1"}:
                raise _NotRustError
            self._write("true" if digits else "false")
        elif tag == "c":
            self._write(_quoted(int(self._hex() or "0", 16)))
        else:
            raise _NotRustError

    def _hex(self) -> str:
        """Digits without zeros before them."""
        end = self.text.find("_", self.at)
        digits = self.text[self.at : end]
        if end < 0 or not digits or digits.strip("0123456789abcdef"):
            raise _NotRustError
        self.at = end + 1
        return digits.lstrip("0")


@lru_cache(maxsize=1024)
def _value(digits: str) -> int:
    """A number in base 62, where no digits are 0 and `0` is 1."""
    value = 0
    for digit in digits[:16]:
        value = value * 62 + _DIGITS[digit]
    if value >= 2**64 or len(digits) > 16:
        raise _NotRustError
    return value + 1 if digits else 0


def _quoted(code: int) -> str:
    """A character as Rust writes it."""
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise _NotRustError
    shown = chr(code) if chr(code).isprintable() else f"\\u{{{code:x}}}"
    return f"'{_QUOTED.get(code, shown)}'"


def _punycode(name: str) -> str:
    """Basic characters, an underscore, and the places of the others."""
    basic, _, rest = name.rpartition("_")
    if len(name) > 1024:
        raise _NotRustError
    return f"{basic}-{rest}".removeprefix("-").encode().decode("punycode")
