"""The options that say where the files of a capture are looked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from walkback.base.dataclass import dataclass
from walkback.cli.output import complain
from walkback.cli.paths import EXISTING_FOLDER
from walkback.cli.progress import fetching

if TYPE_CHECKING:
    from walkback.debuginfod.servers import Servers
    from walkback.elf.search import FileSearch

_OPTIONS = (
    click.option(
        "--sysroot",
        type=EXISTING_FOLDER,
        metavar="DIR",
        help="Look for the files of the recorded machine below this folder.",
    ),
    click.option(
        "--buildid-dir",
        type=EXISTING_FOLDER,
        metavar="DIR",
        help="Build-ID cache of perf, which keeps recorded files. [default: PERF_BUILDID_DIR, or else ~/.debug]",
    ),
    click.option("--no-debuginfod", is_flag=True, help="Do not ask the servers in DEBUGINFOD_URLS for missing files."),
    click.option(
        "--debuginfod-limit",
        type=click.IntRange(0),
        metavar="N",
        default=32,
        show_default=True,
        help="Ask servers about at most this many programs and libraries, those of most samples first.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Report on standard error where files were looked for, and where they were found.",
    ),
)


@dataclass(eq=False)
class Searching:
    """The values of these options."""

    sysroot: str | None
    buildid_dir: str | None
    no_debuginfod: bool
    debuginfod_limit: int
    verbose: bool

    @cached_property
    def search(self) -> FileSearch:
        """What looks for files."""
        from walkback.elf.search import FileSearch

        return FileSearch(sysroot=self.sysroot, buildid_dir=self.buildid_dir, servers=self._servers)

    @cached_property
    def _servers(self) -> Servers | None:
        from walkback.debuginfod.environment import debuginfod_servers

        limit = 0 if self.no_debuginfod else self.debuginfod_limit
        return debuginfod_servers(limit=limit, on_progress=fetching())

    def report(self) -> None:
        """Say where files were looked for, if that was asked for, and what is wrong with servers."""
        if "search" not in vars(self):
            return
        for line in self.search.report() if self.verbose else ():
            complain(line)
        for line in self._servers.troubles if self._servers is not None else ():
            complain(line)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options, which the command gets as `searching`; what they have to say comes at its end."""

    @functools.wraps(command)
    def with_files(*args: Any, **options: Any) -> Any:
        own = {name: options.pop(name) for name in Searching.__dataclass_fields__}
        searching = Searching(**own)
        click.get_current_context().call_on_close(searching.report)
        return command(*args, searching=searching, **options)

    found: Callable[..., Any] = with_files
    for option in reversed(_OPTIONS):
        found = option(found)
    return found
