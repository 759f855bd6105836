"""Text for people."""

from __future__ import annotations

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_TURNING = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_UNSEEN = (0xAD, 0x200B, 0x2060, 0xFEFF)
"""Without any width. Joiners are not among them: many scripts are written with these."""
_ESCAPES = {
    # What is `\xff` may be a byte that is no text, but not a character.
    number: f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}"
    for number in (*_CONTROLS, *_TURNING, *_UNSEEN)
}


def printable(text: str) -> str:
    """Names come from files: what moves the cursor, has colours, turns text around or is unseen is spelled out."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
