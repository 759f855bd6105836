"""Files that `convert`, `link`, `fix` and `split` change, and the commands that make them do so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from docfiles import concatenated, with_a_group, with_a_signal_frame
from sframefiles import linked, small, written
from walkback import sframe

if TYPE_CHECKING:
    from pathlib import Path

VERBS = ("convert", "link", "fix", "split")
IN_PLACE = ("convert", "fix", "split")
SIGNAL = "a signal frame, which only version 3 can mark"


def given(verb: str, folder: Path, name: str = "given") -> Path:
    """A file that the verb changes."""
    made = {"convert": lambda: linked(small(2).bytes()), "fix": concatenated, "split": with_a_group}
    return written(folder, made.get(verb, lambda: linked(small().bytes()))(), name)


def incomplete(verb: str, folder: Path, name: str = "incomplete") -> Path:
    """A file with a function that version 2 cannot say."""
    if verb == "split":
        elf = with_a_group()
        section = bytearray(elf.sections[2].data)
        section[0x1C + 32 + 2] |= 0x80  # the first function's info
        elf.sections[2].data = bytes(section)
        return written(folder, elf, name)
    return written(folder, with_a_signal_frame(), name)


def on(
    verb: str, path: str | bytes | Path, *options: str | Path, output: str | bytes | Path | None = None
) -> list[str | bytes | Path]:
    """The command; `convert` needs a version, and `link` an output."""
    version = ["--version", "3"] if verb == "convert" and "--version" not in options else []
    if output is None and verb == "link":
        output = f"{os.fsdecode(path)}-output"
    return [verb, path, *(["-o", output] if output is not None else []), *version, *options]


def sections(path: Path) -> list[tuple[int, int]]:
    """The version and the number of functions of each section."""
    found = [piece.section for source in sframe.read(path) for piece in source.pieces()]
    return [(section.version, len(section.functions)) for section in found]
