"""A record of a format as a drawing and as a table: its fields with their places, sizes and meanings."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np

CELL, ROW, LEFT, TOP = 88, 44, 44, 4
CELLS = {"bytes": 4, "bits": 8}
"""How many stand beside each other."""
LETTERS = 13
"""In a cell of a byte."""
LETTER, LINE = 6.6, 13


FIXED = "Always."
"""The meaning of bits that say what a byte is."""


@dataclass(frozen=True, slots=True)
class Field:
    """Some bytes or bits."""

    name: str
    size: int
    meaning: str
    open_ended: str = ""
    """What is written of the size if it varies."""


@dataclass(frozen=True, slots=True)
class Record:
    """Fields one after the other; bits from the highest to the lowest."""

    name: str
    title: str
    fields: Sequence[Field]
    unit: str = "bytes"

    @property
    def size(self) -> int:
        """In its unit."""
        return sum(field.size for field in self.fields)

    def places(self) -> Iterator[tuple[int, Field]]:
        """Each field with what is in front of it."""
        at = 0
        for field in self.fields:
            yield at, field
            at += field.size


def of_dtype(name: str, title: str, dtype: np.dtype[np.void], meanings: Mapping[str, str]) -> Record:
    """The record of a structure; there is a meaning for each of its fields, and for nothing else."""
    assert dtype.names is not None
    assert set(meanings) == set(dtype.names), f"{name}: {sorted(set(meanings) ^ set(dtype.names))}"
    fields = [Field(field, dtype[field].itemsize, meanings[field]) for field in dtype.names]
    assert dtype.fields is not None
    assert [dtype.fields[field][1] for field in dtype.names] == [at for at, _ in Record(name, title, fields).places()]
    return Record(name, title, fields)


def of_bits(name: str, title: str, masks: Mapping[str, tuple[int, str]], *, value: int = 0, size: int = 8) -> Record:
    """The record of a byte or word: the mask and meaning of each field; other bits have those of a value."""
    fields: list[Field] = []
    for bit in range(size - 1, -1, -1):
        here = [(field, meaning) for field, (mask, meaning) in masks.items() if mask >> bit & 1]
        assert len(here) <= 1, f"{name}: bit {bit} belongs to two fields"
        field, meaning = here[0] if here else (str(value >> bit & 1), FIXED)
        last = fields[-1] if fields else Field("", 0, "")
        if here and last.name == field:
            fields[-1] = Field(field, last.size + 1, meaning)
        elif not here and last.meaning == FIXED:
            fields[-1] = Field(last.name + field, last.size + 1, FIXED)
        else:
            fields.append(Field(field, 1, meaning))
    return Record(name, title, fields, "bits")


def table(record: Record) -> str:
    """In Markdown."""
    is_bits = record.unit == "bits"
    lines = ["| Bits | Field | Meaning |" if is_bits else "| Offset | Bytes | Field | Meaning |"]
    lines.append("| --- | --- | --- |" if is_bits else "| ---: | ---: | --- | --- |")
    open_ended = False
    for at, field in record.places():
        if is_bits:
            high, low = record.size - 1 - at, record.size - at - field.size
            lines.append(f"| {high if high == low else f'{low} to {high}'} | `{field.name}` | {field.meaning} |")
            continue
        offset = "" if open_ended else f"{at:#04x}"
        lines.append(f"| {offset} | {field.open_ended or field.size} | `{field.name}` | {field.meaning} |")
        open_ended |= bool(field.open_ended)
    return "\n".join(lines)


def drawing(record: Record) -> str:
    """As SVG, with colours of its own for either scheme."""
    across = CELLS[record.unit]
    cell = CELL * CELLS["bytes"] // across
    parts = []
    for at, field in record.places():
        row, column = divmod(at, across)
        rows = max(field.size // across, 1)
        assert column + field.size <= across or (column == 0 and field.size % across == 0), f"{field.name} is torn"
        x, y = LEFT + column * cell, TOP + row * ROW
        width, height = min(field.size, across) * cell, rows * ROW
        kind = ' class="open"' if field.open_ended else ' class="fixed"' if field.meaning == FIXED else ""
        parts.append(f'<rect{kind} x="{x}" y="{y}" width="{width}" height="{height}"/>')
        parts += _name(field, x + width / 2, y + height / 2, int((width - 4) / LETTER))
        if column == 0:
            first = record.size - 1 - at if record.unit == "bits" else f"{at:#04x}"
            parts.append(f'<text class="place" x="{LEFT - 6}" y="{y + ROW / 2 + 4:g}" text-anchor="end">{first}</text>')
    height = TOP * 2 + -(-record.size // across) * ROW
    width = LEFT + CELL * CELLS["bytes"] + 4
    fields = ", ".join(f"{field.name} {field.open_ended or field.size}" for field in record.fields)
    label = escape(f"{record.title}, in {record.unit}: {fields}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="ui-monospace, monospace" font-size="11">'
        "<style>svg{background:#fff}text{fill:#222}rect{fill:#eef3f8;stroke:#456}.fixed,.open{fill:#fff}"
        ".open{stroke-dasharray:4 3}.place{fill:#555}@media(prefers-color-scheme:dark){svg{background:#181a1c}"
        "text{fill:#ddd}rect{fill:#243240;stroke:#9ab}.fixed,.open{fill:#181a1c}.place{fill:#aaa}}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _name(field: Field, x: float, y: float, letters: int) -> Iterator[str]:
    """The name in the middle of its box, broken where it has underscores."""
    lines = [""]
    for piece in field.name.replace("_", "_\n").split("\n"):
        if lines[-1] and len(lines[-1]) + len(piece) > letters:
            lines.append("")
        lines[-1] += piece
    for number, line in enumerate(lines):
        at = y + 4 + (number - (len(lines) - 1) / 2) * LINE
        yield f'<text x="{x:g}" y="{at:g}" text-anchor="middle">{escape(line)}</text>'
