"""The accuracy of each way of walking, as a table, a chart, and objects.

The reference is call frame information; what the other ways find is held against it, frame by frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from html import escape
from typing import TypedDict

from walkback.base.dataclass import dataclass
from walkback.stacks.stacks import END_WORDS, HOW_WORDS, End, How


class AccuracyObject(TypedDict):
    """One way of walking, held against the reference, as JSON."""

    method: str
    """The method. `auto` takes the best table for each address."""
    stacks: int
    """The number of samples with registers."""
    complete: int
    """The stacks that reach the same outermost frame as the reference."""
    exact: int
    """The stacks equal to the reference frame by frame, complete or not."""
    frames: int
    """The number of frames found."""
    reference_frames: int
    """The number of frames in the reference."""
    agreeing: int
    """The frames that agree with the reference, in its order."""
    missed: int
    """The frames of the reference that were not found."""
    invented: int
    """The frames that the reference does not have."""
    ns_per_frame: float
    """Nanoseconds per frame, in one thread, without loading tables."""
    ends: dict[str, int]
    """The number of stacks for each way to end."""
    hows: dict[str, int]
    """The number of frames for each way to be found."""


@dataclass(slots=True)
class Accuracy:
    """One way of walking, held against the reference."""

    method: str
    stacks: int = 0
    complete: int = 0
    """Stacks to the outermost frame of the reference, where that came to one."""
    exact: int = 0
    """Stacks that are the reference's, frame by frame."""
    frames: int = 0
    reference_frames: int = 0
    agreeing: int = 0
    """Frames that are the reference's, in its order."""
    nanoseconds: int = 0
    """Spent walking, by one thread."""
    ends: dict[int, int] = field(default_factory=dict)
    """Stacks by their `End`."""
    hows: dict[int, int] = field(default_factory=dict)
    """Frames by their `How`."""

    @property
    def missed(self) -> int:
        """Frames of the reference that were not found."""
        return self.reference_frames - self.agreeing

    @property
    def invented(self) -> int:
        """Frames that the reference does not have."""
        return self.frames - self.agreeing

    @property
    def per_frame(self) -> float:
        """Nanoseconds for a frame."""
        return self.nanoseconds / self.frames if self.frames else 0.0

    def as_object(self) -> AccuracyObject:
        """For JSON."""
        return {
            "method": self.method,
            "stacks": self.stacks,
            "complete": self.complete,
            "exact": self.exact,
            "frames": self.frames,
            "reference_frames": self.reference_frames,
            "agreeing": self.agreeing,
            "missed": self.missed,
            "invented": self.invented,
            "ns_per_frame": round(self.per_frame, 1),
            "ends": {END_WORDS[End(end)]: count for end, count in sorted(self.ends.items())},
            "hows": {HOW_WORDS[How(how)]: count for how, count in sorted(self.hows.items())},
        }


def share(part: int, whole: int) -> str:
    """As a percentage that is 100 only for all and 0 only for none; of nothing there is no share."""
    if not whole:
        return "-"
    if part == whole:
        return "100 %"
    percent = 100 * part / whole
    return f"{min(max(percent, 0.01), 99.99):.2f} %" if part else "0 %"


_HEADINGS = ("method", "stacks", "complete", "exact", "frames", "agreeing", "missed", "invented", "ns/frame")


def table(rows: Sequence[Accuracy]) -> list[str]:
    """Aligned lines: a heading, and one line for each way."""
    cells = [
        _HEADINGS,
        *(
            (
                one.method,
                str(one.stacks),
                share(one.complete, one.stacks),
                share(one.exact, one.stacks),
                str(one.frames),
                share(one.agreeing, one.reference_frames),
                share(one.missed, one.reference_frames),
                share(one.invented, one.frames),
                f"{one.per_frame:.0f}",
            )
            for one in rows
        ),
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


_BARS = (("complete stacks", "complete"), ("exact stacks", "exact"), ("agreeing frames", "agreeing"))


def _part(one: Accuracy, name: str) -> float:
    whole = one.reference_frames if name == "agreeing" else one.stacks
    return int(getattr(one, name)) / whole if whole else 0.0


def bars(rows: Sequence[Accuracy], width: int = 40) -> list[str]:
    """The chart as text."""
    labels = max((len(one.method) for one in rows), default=0)
    lines = []
    for title, name in _BARS:
        lines.append(title)
        for one in rows:
            eighths = round(_part(one, name) * width * 8)
            bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
            lines.append(f"  {one.method:{labels}} {bar:{width}} {100 * _part(one, name):6.2f} %")
    return lines


_ROW, _LEFT, _WIDTH = 22, 150, 480
_COLOURS = ("#2f6f9f", "#c9822b", "#5b8f4e", "#8a5fa8")


Bars = Sequence[tuple[str, float]]
"""The name and the length of each, at most 1."""


def measures(rows: Sequence[Accuracy]) -> list[tuple[str, Bars]]:
    """What the chart of one recording shows: of each measure a bar for each way."""
    return [(title, [(one.method, _part(one, name)) for one in rows]) for title, name in _BARS]


def frames_right(rows: Sequence[Accuracy]) -> Bars:
    """Of each way how many of the frames it has right."""
    return [(one.method, _part(one, "agreeing")) for one in rows]


def chart(groups: Sequence[tuple[str, Bars]], title: str) -> str:
    """Bars below headings as SVG; readable on light and dark ground."""
    y = 34
    parts = [f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>']
    for heading, group in groups:
        y += 18
        parts.append(f'<text x="8" y="{y}" font-weight="bold">{escape(heading)}</text>')
        y += 8
        for number, (name, part) in enumerate(group):
            colour = _COLOURS[number % len(_COLOURS)]
            text = y + 15
            parts += [
                f'<text x="{_LEFT - 8}" y="{text}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{_LEFT}" y="{y + 3}" width="{_WIDTH}" height="{_ROW - 6}" fill="#888" opacity="0.18"/>',
                f'<rect x="{_LEFT}" y="{y + 3}" width="{part * _WIDTH:.1f}" height="{_ROW - 6}" fill="{colour}"/>',
                f'<text x="{_LEFT + _WIDTH + 8}" y="{text}">{100 * part:.2f} %</text>',
            ]
            y += _ROW
    height = y + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title, quote=True)}" '
        f'viewBox="0 0 {_LEFT + _WIDTH + 90} {height}" width="{_LEFT + _WIDTH + 90}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">'
        "<style>text{fill:#222}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )
