"""What an object is, in one line: for people at a prompt, in a debugger or a notebook."""

from __future__ import annotations

from enum import Enum

_LONGEST_TEXT = 60
_LONGEST = 160


class OneLine:
    """A dataclass that shows its small values, and of columns and lists how many there are: `rows=<1200>`."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = type(self).__name__ + "("
        parts = [part for part in map(self._shown, self.__dataclass_fields__) if part]  # type: ignore[attr-defined]  # dataclasses have it
        while len(parts) > 1 and len(shown) + len(", ".join(parts)) > _LONGEST:
            parts = [*parts[: -2 if parts[-1] == "..." else -1], "..."]
        return f"{shown}{', '.join(parts)})"

    def _shown(self, name: str) -> str | None:
        value = getattr(self, name)
        if name.startswith("_") or value is None:
            return None
        if isinstance(value, Enum):
            return f"{name}={value.name}"
        if isinstance(value, bool | int | float):
            return f"{name}={value}"
        if isinstance(value, str):
            return f"{name}={value[:_LONGEST_TEXT]!r}"
        if isinstance(value, OneLine):
            return f"{name}={type(value).__name__}(...)"
        return f"{name}=<{len(value)}>" if hasattr(value, "__len__") else None
