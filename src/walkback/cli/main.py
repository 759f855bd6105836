"""The group of verbs, and what happens when something goes wrong."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import resource
import signal
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

import click

from walkback.base.errors import PassedOverWarning, WalkbackError
from walkback.cli.command import LazyVerbs
from walkback.cli.inherited import Inherited
from walkback.cli.interrupts import repeat_interrupts
from walkback.cli.output import EXIT_UNREADABLE, EXIT_USAGE, complain

HEADINGS = {
    "Look at tables": {
        "show": "Print SFrame sections: functions, rows and rules.",
        "find": "Show the rule at an address or a symbol.",
        "check": "Check SFrame sections against every rule of the format.",
        "compare": "Compare .eh_frame and .sframe, or two files, at every address.",
        "verify": "Prove unwind tables against the machine code they describe.",
        "size": "Show the size of .eh_frame and of SFrame in each version.",
    },
    "Make tables": {
        "derive": "Make SFrame sections from the unwind tables of files.",
        "add": "Add SFrame to binaries, objects and archives, and prove it right.",
        "drop": "Remove the SFrame section from a file.",
        "convert": "Convert SFrame to another version.",
        "link": "Merge the SFrame sections of several files into one.",
        "fix": "Merge and sort a linked file's SFrame; add its program header.",
        "split": "Split an object's SFrame: one section for each text section.",
    },
    "Walk stacks": {
        "stack": "Show the stacks of a live process or a core file.",
        "record": "Record where a command, a process or a machine spends its time.",
        "unwind": "Unwind a perf recording: folded stacks, flame graphs, tables.",
    },
    "Keep stacks": {
        "store": "Keep stacks of many programs in a folder, and query them.",
        "cbf": "Explain, encode and decode Compact Backtrace Format.",
        "cif": "Explain, encode and decode Compact Image Map Format.",
    },
    "Survey": {
        "survey": "Measure every ELF file in folders, packages and archives.",
        "report": "Show the results of a survey, or of one ELF file, as a page.",
    },
}
"""Each verb is a module in `verbs`, and the command in it."""

_EXIT_INTERRUPTED = 130


class _Verbs(LazyVerbs):
    folder = "walkback.cli.verbs"
    headings = HEADINGS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a verb, show the help as wrong usage: click before 8.2 takes it for right."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(EXIT_USAGE)
        return super().parse_args(ctx, args)


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"walkback {version('walkback')}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def cli() -> None:
    """Read, check, make and prove SFrame stack-trace tables, and unwind stacks with them.

    Exit status: 0 success; 1 findings, differences, no match, or an incomplete result; 2 wrong usage; 3 input
    that cannot be read or used, a permission that is missing, or output that failed.
    """


def _end(number: int, _frame: object) -> None:
    """End as an exit does, which takes temporary files away; a second time at once."""
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)


def _show_passed_over() -> None:
    """Files that are passed over are reported in a line each, without the place in the source."""
    other = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, PassedOverWarning):
            complain(str(message))
        else:
            other(message, category, *place, **more)

    warnings.showwarning = show


def _allow_many_files() -> None:
    """Files stay open as long as they are read, and a recording of a whole machine has thousands."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _open_standard_streams() -> None:
    """A closed standard input is an empty one, and what goes to a closed standard error is lost."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - until the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - the same
    if sys.stdout is None:
        complain("standard output is closed")
        sys.exit(EXIT_UNREADABLE)


def _leave(status: int) -> NoReturn:
    """End with an exit status, at once."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError):
            stream.flush()
    # Processes were started by a folder that goes when this one ends.
    if "multiprocessing.util" in sys.modules:
        sys.modules["multiprocessing.util"]._run_finalizers()
    # Taking the interpreter apart would take longer than many a command; nothing is left to be done.
    os._exit(status)


def main() -> None:
    """Run the command line, and end with its exit status."""
    # Most verbs are over soon, and importing what they need makes many objects and no garbage.
    gc.set_threshold(50_000)
    inherited = Inherited()
    # NumPy's linear algebra, which nothing here uses, would start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # File names can hold any bytes; they are printed as they are.
        sys.stdout.reconfigure(errors="surrogateescape")
    _open_standard_streams()
    # A reader that has seen enough, as `head`, ends the command quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _end)
    _show_passed_over()
    repeat_interrupts()
    _allow_many_files()
    if "_WALKBACK_COMPLETE" in os.environ:
        import walkback.cli.bashcompletion  # noqa: F401 - it registers itself
    try:
        status = cli.main(standalone_mode=False, obj=inherited)
        sys.stdout.flush()
    except click.UsageError as error:
        with contextlib.suppress(OSError):
            error.show()
        status = EXIT_USAGE
    except click.ClickException as error:
        complain(error.format_message())
        status = EXIT_USAGE
    except WalkbackError as error:
        complain(str(error))
        status = EXIT_UNREADABLE
    except ImportError as error:  # as of NumPy, which says much, where there is too little memory for its libraries
        *_, reason = ("", *str(error).splitlines())
        complain(f"cannot be run: {reason}")
        status = EXIT_UNREADABLE
    except (click.Abort, KeyboardInterrupt):
        status = _EXIT_INTERRUPTED
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else "the output"
        complain(f"cannot write {where}: {error.strerror or error}")
        status = EXIT_UNREADABLE
        # What is still buffered cannot be written; without this Python would complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _leave(status or 0)
