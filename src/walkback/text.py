"""Text for people."""

from __future__ import annotations

_ESCAPES = {number: f"\\x{number:02x}" for number in (*range(0x20), *range(0x7F, 0xA0))}


def printable(text: str) -> str:
    """Names come from files: what would move the cursor or colour the screen is spelled out."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
