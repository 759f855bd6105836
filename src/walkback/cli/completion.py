"""Values that a shell completes: processes, functions and sections of the file, hosts and labels of the store.

Click completes verbs, options, choices and files. What cannot be read completes nothing: a shell has no place for an
error.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from walkback.base.errors import WalkbackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import click
    from click.shell_completion import CompletionItem

    from walkback.elf.file import ElfFile
    from walkback.store.overview import Overview

    Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_MOST = 500
"""Values that a shell is given."""


def processes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of running processes, or their numbers after a digit; files, where none begins so."""
    from click.shell_completion import CompletionItem

    from walkback.capture.live.processes import running

    numbers = incomplete.isdigit()
    found = (value for one in running() for value in ([str(one.pid)] if numbers else one.names))
    return _items(found, incomplete) or [CompletionItem(incomplete, type="file")]


def _completing(values: Callable[[click.Context], Iterable[str]]) -> Complete:
    """What completes these values of what was typed before."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return _items(values(ctx), incomplete)
        except (WalkbackError, OSError):
            return []

    return complete


def _items(values: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Those that begin so, each once; a shell takes a line for each."""
    from click.shell_completion import CompletionItem

    chosen = {value for value in values if value.startswith(incomplete) and value.isprintable()}
    return [CompletionItem(value) for value in islice(sorted(chosen), _MOST)]


def _elf_files(ctx: click.Context) -> Iterator[ElfFile]:
    """Those that were typed before."""
    from walkback.elf import contents_of, elf_files

    # Behind an option whose value is being typed, click has not come to the arguments yet.
    given = ctx.params.get("files") or ctx.params.get("file") or ctx.args
    for name in (given,) if isinstance(given, str) else given:
        yield from elf_files(*contents_of(name))


def _overview(ctx: click.Context) -> Overview | None:
    """What the store of `walkback store DIR VERB` holds."""
    from walkback.store.store import Store

    folder = ctx.parent.params.get("folder") if ctx.parent is not None else None
    # Nobody waits for a bucket to complete a word.
    return None if folder is None or "://" in folder else Store(folder).overview()


def _function_names(ctx: click.Context) -> Iterator[str]:
    from walkback.symbols import SymbolIndex
    from walkback.symbols.demangle import demangle

    for elf in _elf_files(ctx):
        names = SymbolIndex(elf).all_names()
        yield from names
        yield from demangle(names)
        yield from demangle(names, parameters=True)


def _section_names(ctx: click.Context) -> Iterator[str]:
    return (name for elf in _elf_files(ctx) for name in elf.section_names() if name)


def _label_values(ctx: click.Context) -> Iterator[str]:
    store = _overview(ctx)
    labels = store.labels if store else {}
    return (f"{name}={value}" for name, values in labels.items() for value in values)


def _groupings(ctx: click.Context) -> list[str]:
    store = _overview(ctx)
    return ["host", "process", *(store.labels if store else [])]


def _figure_names(ctx: click.Context) -> Iterable[str]:
    """Those of what was typed before: a survey, or a file."""
    subject = ctx.params.get("subject") or next(iter(ctx.args), None)
    if subject is not None and not os.path.isdir(subject):
        from walkback.reports.listings import FIGURE_NAMES

        return FIGURE_NAMES
    from walkback.reports.chapters import FIGURES

    return FIGURES


def _codes(_ctx: click.Context) -> Iterable[str]:
    from walkback.sframe.checking import CODES

    return CODES


functions = _completing(_function_names)
sections = _completing(_section_names)
hosts = _completing(lambda ctx: store.hosts if (store := _overview(ctx)) else [])
stored_processes = _completing(lambda ctx: store.processes if (store := _overview(ctx)) else [])
labels = _completing(_label_values)
groupings = _completing(_groupings)
figures = _completing(_figure_names)
codes = _completing(_codes)
