"""What the verbs that walk stacks share: options, and where their output goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from walkback.base.dataclass import dataclass
from walkback.cli.output import complain
from walkback.cli.paths import OUTPUT_FILE
from walkback.cli.searching import Searching, file_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from walkback.symbols.demangle import Demangle
    from walkback.walking.moduletable import Only

FORMAT_NAMES = ("folded", "top", "perf-script", "json", "pprof", "speedscope", "firefox", "cbf", "html")
STREAMED = ("perf-script", "json", "cbf")
"""Formats that list each sample, which is not asked of a store."""
SUMMED = tuple(name for name in FORMAT_NAMES if name not in STREAMED)

_MOST_SHOWN = 20
"""Lines of what could not be had."""

OUTPUT = click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    help="Write to this file, which appears once it is complete. [default: standard output]",
)
_ONLY = click.option(
    "--only",
    "--source",
    "only",
    type=click.Choice(["auto", "sframe", "cfi", "go", "code", "fp"]),
    callback=lambda _context, _option, value: None if value == "auto" else value,
    help="Use only this method, for comparison: .sframe, or SFrame derived from a file's tables; call frame "
    "information; Go's table; rules made from the code; frame pointers. [default: auto, the first that has a rule]",
)
_LIMIT = click.option(
    "--max-stack",
    type=click.IntRange(1, 1 << 20),
    metavar="N",
    default=1024,
    show_default=True,
    help="Most frames per stack.",
)
DEMANGLE = click.option(
    "--demangle/--no-demangle",
    default=True,
    help="Demangle C++, Rust, OCaml and Swift names, or show names as in the file.",
)
SHORT_NAMES = click.option(
    "--short-names", is_flag=True, help="Leave out the arguments of templates: std::vector<...>::push_back."
)
LINES = click.option(
    "--lines/--no-lines", default=True, help="Show source lines and inlined calls, or read no debug information."
)
INLINE = click.option(
    "--inline/--no-inline", default=True, help="Show each inlined call as a frame of its own, or none."
)
MARK_INCOMPLETE = click.option(
    "--mark-incomplete", is_flag=True, help="Add an outermost frame, as [incomplete: stack-cut], to incomplete stacks."
)
LIMIT = click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="With --format top: rows per table. [default: 30]"
)
_CACHE = click.option(
    "--cache/--no-cache", default=True, help="Cache the tables and lines of large files on disk, or do not."
)


def check_limit(limit: int | None, form: str | None) -> None:
    """Refuse `--limit` for a format without tables."""
    if limit is not None and form != "top":
        message = "--limit is for --format top"
        raise click.UsageError(message)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that these verbs share."""
    for option in (_CACHE, INLINE, LINES, SHORT_NAMES, DEMANGLE, file_options, _LIMIT, _ONLY):
        command = option(command)
    return command


def how_to_name(demangle: bool, short_names: bool) -> Demangle:
    """The two options as the library takes them."""
    return "short" if demangle and short_names else demangle


@dataclass(frozen=True, slots=True)
class Shared:
    """The values of these options."""

    output: str | None
    only: Only | None
    max_stack: int
    searching: Searching
    demangle: bool
    short_names: bool
    lines: bool
    inline: bool
    cache: bool

    def walking(self) -> dict[str, Any]:
        """Those that `Unwinding` and `Stopper` take."""
        return {
            "only": self.only,
            "max_stack": self.max_stack,
            "search": self.searching.search,
            "demangle": how_to_name(self.demangle, self.short_names),
            "lines": self.lines,
            "inline": self.inline,
            "cache": self.cache,
        }


def any_complete(ends: np.ndarray, only: Only | None) -> bool:
    """Whether any stack is complete; `ends` counts them by why they end. Nothing says where frame pointers end."""
    from walkback.stacks.stacks import End

    return bool(ends[End.COMPLETE]) or (only == "fp" and bool(ends.any()))


def complain_of(subject: str, troubles: Sequence[str]) -> None:
    """Say what could not be had, a line each; of many the first."""
    lines = list(dict.fromkeys(troubles))
    for line in lines[:_MOST_SHOWN]:
        complain(f"{subject}: {line}")
    if len(lines) > _MOST_SHOWN:
        complain(f"{subject}: and {len(lines) - _MOST_SHOWN} more like these")
