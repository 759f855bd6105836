"""What the verbs of a store share: which samples, how they are named, and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from walkback.base.dataclass import dataclass
from walkback.base.text import printable
from walkback.cli.completion import hosts, labels, stored_processes
from walkback.cli.output import complain
from walkback.cli.parameter import ParameterType
from walkback.cli.searching import Searching, file_options
from walkback.cli.walking import DEMANGLE, INLINE, SHORT_NAMES, complain_of, how_to_name
from walkback.cli.workers import DASK, working

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from walkback.stacks.profile import Profile
    from walkback.store.selection import Selection
    from walkback.store.store import Store
    from walkback.workers.executors import SharingWorkers


class Moment(ParameterType[int]):
    """A time of day, or how long ago, in nanoseconds since 1970."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from walkback.store.moments import moment

        try:
            return value if isinstance(value, int) else moment(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Label(ParameterType[tuple[str, str]]):
    """A name and its value."""

    name = "label"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, sign, its = str(value).partition("=")
        if not name or not sign:
            self.fail(f"{value!r} is not NAME=VALUE; example: version=1.2", param, ctx)
        return name, its


def one_each(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Labels by their names; a sample has one value of each."""
    found: dict[str, str] = {}
    for label, value in labels:
        name = label.encode("utf-8", "backslashreplace").decode()  # as it is stored
        if found.setdefault(name, value) != value:
            message = f"the label {printable(name)} is both {printable(found[name])} and {printable(value)}"
            raise click.UsageError(message)
    return found


SINCE = click.option(
    "--since", type=Moment(), metavar="TIME", help="Samples from this time on; 2h means two hours ago."
)
UNTIL = click.option("--until", type=Moment(), metavar="TIME", help="Samples before this time.")
_LINES = click.option(
    "--lines", is_flag=True, help="Show source files and lines, by debug information or Go's own table."
)
_HOST = click.option(
    "--host", multiple=True, metavar="NAME", help="Samples of this host; may be repeated.", shell_complete=hosts
)
_PROCESS = click.option(
    "--process",
    multiple=True,
    metavar="NAME",
    help="Samples of this process; may be repeated.",
    shell_complete=stored_processes,
)
_LABEL = click.option(
    "--label",
    "labels",
    type=Label(),
    multiple=True,
    metavar="NAME=VALUE",
    help="Samples with this label; may be repeated.",
    shell_complete=labels,
)

_JOBS = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes that sum up many samples. [default: one per processor]",
)


def choosing(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which samples, how they are named, and who sums them up."""
    naming = (INLINE, _LINES, SHORT_NAMES, DEMANGLE, file_options)
    for option in (DASK, _JOBS, *naming, _LABEL, _PROCESS, _HOST, UNTIL, SINCE):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Chosen:
    """The values of these options."""

    since: int | None
    until: int | None
    host: tuple[str, ...]
    process: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    searching: Searching
    demangle: bool
    short_names: bool
    lines: bool
    inline: bool
    jobs: int | None
    dask: str | None

    def working(self) -> AbstractContextManager[SharingWorkers]:
        """Gives who sums the samples up."""
        return working(self.jobs, self.dask)

    def select(self, store: Store, **other: Any) -> Selection:
        """The samples; `other` words of `Store.select` go before these options."""
        from walkback.store.naming import Naming

        labels: dict[str, list[str]] = {}
        for name, value in self.labels:
            labels.setdefault(name, []).append(value)
        asked: dict[str, Any] = {"since": self.since, "until": self.until, "host": self.host, "process": self.process}
        asked |= {**other, "labels": labels | other.get("labels", {})}
        demangle = how_to_name(self.demangle, self.short_names)
        return store.select(**asked, naming=Naming(self.searching.search, demangle, self.lines, self.inline))


def profile_of(folder: str, selection: Selection) -> Profile | None:
    """What was chosen; None, with a message, if that is nothing. Says whose names are missing as well."""
    found = selection.profile()
    if not len(found.stack):
        complain(f"{folder}: there are no such samples")
        return None
    complain_of(folder, [f"{name}: {why}" for name, why in selection.naming.troubles.items()])
    return found
