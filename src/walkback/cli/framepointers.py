"""What `walkback verify --frame-pointers` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.coverage import percent

if TYPE_CHECKING:
    from walkback.capture.places import Places
    from walkback.sections.framepointers import FramePointers, FunctionChain


class KeepingReport:
    """Prints files one by one, and at the end the sum of those in one package."""

    def __init__(self, file: str, places: Places | None, *, limit: int, as_json: bool) -> None:
        """`places` are those of the samples of a recording."""
        self.keeps = True
        self._file, self._places, self._limit, self._as_json = file, places, limit, as_json
        self._files = self._bytes = self._kept = 0
        self._samples = self._kept_samples = 0

    def add(self, found: FramePointers) -> None:
        """Print a file."""
        self._files += 1
        self._bytes += found.bytes
        self._kept += found.kept_bytes
        self.keeps &= found.keeps
        samples, kept = (0, 0) if self._places is None else _samples(found, self._places)
        self._samples += samples
        self._kept_samples += kept
        if self._as_json:
            for one in found.listed():
                click.echo(json.dumps({**_head(found), **asdict(one)}))
            about = _file_object(found)
            if self._places is not None:
                about |= {"samples": samples, "kept_samples": kept, "all_samples": self._places.stacks}
            click.echo(json.dumps(about))
            return
        verdict = _verdict(found.keeps, found.kept_bytes, found.bytes)
        click.echo(f"{printable(found.file)}: {verdict}{self._share(samples, kept)}")
        kinds = ", ".join(f"{kind} {count}" for kind, count in found.counts.most_common())
        click.echo(f"  {counted(found.functions, 'function')}: {kinds or 'none'}")
        self._list(found)

    def _share(self, samples: int, kept: int) -> str:
        if self._places is None:
            return ""
        every = self._places.stacks
        if not samples:
            return f", and none of the {counted(every, 'sample')} is in it"
        part = f"{percent(samples, every)} of all {every}"
        return f", and in {percent(kept, samples)} of its {counted(samples, 'sample')}, which are {part}"

    def _list(self, found: FramePointers) -> None:
        from walkback.sections.framepointers import Keeping

        wrong = [Keeping.BREAKS, Keeping.PARTLY, Keeping.NONE]
        for number, one in enumerate(found.listed(*wrong)):
            if number == self._limit:
                break
            click.echo(f"  {printable(_line(one))}")
        more = sum(found.counts[kind] for kind in wrong) - self._limit
        if more > 0:
            click.echo(f"  and {counted(more, 'more function')}")

    def end(self) -> None:
        """Print the sum of several files."""
        if self._files > 1 and not self._as_json:
            verdict = _verdict(self.keeps, self._kept, self._bytes)
            share = self._share(self._samples, self._kept_samples)
            click.echo(f"{printable(self._file)}: {verdict}{share}, in {counted(self._files, 'file')}")


def _samples(found: FramePointers, places: Places) -> tuple[int, int]:
    """How many samples are in a file, and how many of them in functions that keep the chain."""
    from walkback.capture.places import samples_in

    addresses, counts = samples_in(places, found.elf)
    return int(counts.sum()), int(counts[found.keeps_at(addresses)].sum())


def _verdict(keeps: bool, kept: int, whole: int) -> str:
    share = f"frame pointers in {percent(kept, whole)} of the code" if whole else "no code"
    return f"{'keeps' if keeps else 'does not keep'} the chain: {share}"


def _line(one: FunctionChain) -> str:
    from walkback.symbols.demangle import demangle

    section = f"{one.section}+" if one.section else ""
    name = f" {demangle([one.function], parameters=True)[0]}" if one.function else ""
    place = f"{one.keeping}: {section}{one.start:#x}{name}"
    if not one.places:
        return f"{place}: {counted(one.skipped, 'byte')} of calls without its frame"
    address, _ = one.places[0]
    return f"{place}: {counted(one.broken, 'byte')} of {one.size} without the chain, from {section}{address:#x} on"


class ChainObject(TypedDict):
    """A function, without the rest, as JSON."""

    type: Literal["function"]
    """The type of the object."""
    file: str
    """The file."""
    table: str
    """The section that lists the functions."""


class KeepingObject(TypedDict):
    """How a file treats the chain, as JSON."""

    type: Literal["file"]
    """The type of the object."""
    file: str
    """The file."""
    table: str
    """The section that lists the functions."""
    keeps: bool
    """Whether the file keeps the chain."""
    share: float
    """The share of the code, from 0 to 1, in functions that keep it, are leaves or have no caller."""
    functions: int
    """The number of functions."""
    bytes: int
    """The bytes of instructions that can be reached."""
    kept_bytes: int
    """The part of them in functions that keep the chain."""
    kinds: dict[str, int]
    """The number of functions of each kind."""
    samples: NotRequired[int]
    """With `--weight`: the samples in the file."""
    kept_samples: NotRequired[int]
    """With `--weight`: the samples in functions that keep the chain."""
    all_samples: NotRequired[int]
    """With `--weight`: all samples of the recording."""


def _head(found: FramePointers) -> ChainObject:
    return {"type": "function", "file": found.file, "table": found.table}


def _file_object(found: FramePointers) -> KeepingObject:
    return {
        "type": "file",
        "file": found.file,
        "table": found.table,
        "keeps": found.keeps,
        "share": round(found.share, 6),
        "functions": found.functions,
        "bytes": found.bytes,
        "kept_bytes": found.kept_bytes,
        "kinds": dict(found.counts.most_common()),
    }
