"""Text for people."""

from __future__ import annotations

_ESCAPES = {number: f"\\x{number:02x}" for number in (*range(0x20), *range(0x7F, 0xA0))}
_TURNING = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPES |= {number: f"\\u{number:04x}" for number in _TURNING}


def printable(text: str) -> str:
    """Names come from files: what would move the cursor, colour the screen or turn text around is spelled out."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
