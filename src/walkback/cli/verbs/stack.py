"""`walkback stack`: what a process is doing, or was doing when it ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from walkback.base.errors import UnreadableError
from walkback.base.text import counted
from walkback.cli.command import verb
from walkback.cli.completion import processes
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, complain, guarded, refuse_both
from walkback.cli.parameter import Seconds
from walkback.cli.paths import INPUT_FILE, is_stdout, opened, refuse_input, refuse_terminal
from walkback.cli.processes import process_named
from walkback.cli.progress import progress
from walkback.cli.storing import LABEL, STORE, check_store, storing
from walkback.cli.tasks import print_tasks, refuse_with_tasks
from walkback.cli.threads import lines_of
from walkback.cli.walking import FORMAT_NAMES, OUTPUT, Shared, any_complete, complain_of, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

    from walkback.capture.stacks import Stopper, ThreadStacks
    from walkback.stacks.profile import SampleBatch
    from walkback.walking.moduletable import Only

EXIT_INTERRUPTED = 130
"""Somebody has pressed Ctrl-C; what there was until then is written."""


@verb(
    "walkback stack $PID",
    "walkback stack core.hello --exe hello",
    exit_1="no stack is complete, except with --only fp; something is missing, such as a thread; or, "
    "with --asyncio, the tasks cannot be read.",
)
@click.argument("target", metavar="PID|NAME|CORE", type=INPUT_FILE, shell_complete=processes)
@click.option("--exe", type=INPUT_FILE, metavar="FILE", help="Program of a core file.")
@click.option("--format", "form", type=click.Choice(("text", *FORMAT_NAMES)), help="Output format. [default: text]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per thread; same as --format json.")
@click.option("--registers", is_flag=True, help="In text: show the registers of each thread.")
@click.option(
    "--interpreted/--no-interpreted",
    default=True,
    help="Show functions of Python and Lua in the place of the evaluators that run them, or only the evaluators.",
)
@click.option(
    "--evaluators",
    is_flag=True,
    help="Show the frames of these evaluators as well, behind the functions that they run.",
)
@click.option("--asyncio", is_flag=True, help="Show the tasks of Python's asyncio instead, and which awaits which.")
@click.option("--repeat", type=click.IntRange(1), default=1, metavar="N", help="Take N snapshots of a process.")
@click.option(
    "--interval",
    type=Seconds(0),
    default=0.01,
    show_default=True,
    metavar="SECONDS",
    help="Time between snapshots.",
)
@click.option(
    "--stack-bytes",
    type=click.IntRange(0, 1 << 30),
    metavar="N",
    help="Copy at most this many bytes of each stack while its thread is stopped. [default: 1 MiB]",
)
@STORE
@LABEL
@OUTPUT
@options
@click.pass_context
def stack(
    ctx: click.Context,
    /,
    target: str,
    exe: str | None,
    form: str | None,
    as_json: bool,
    registers: bool,
    interpreted: bool,
    evaluators: bool,
    asyncio: bool,
    repeat: int,
    interval: float,
    stack_bytes: int | None,
    store: str | None,
    labels: tuple[tuple[str, str], ...],
    **shared: Any,
) -> None:
    """Show the stacks of a live process or a core file.

    A number is a process ID, an existing path a core file (write ./1234 for one whose name is a number), and anything
    else the name of a running process. The threads of a process stop one after the other, each as briefly as possible,
    and always resume.
    """
    common = Shared(**shared)
    target = _meant(target)
    live = target.isascii() and target.isdigit()
    if live and (exe is not None or common.searching.sysroot is not None):
        message = "--exe and --sysroot are for core files"
        raise click.UsageError(message)
    if not live and (repeat > 1 or stack_bytes is not None):
        message = "--repeat and --stack-bytes are for live processes"
        raise click.UsageError(message)
    if not live:
        refuse_input(target, common.output)
    check_store(store, labels)
    if asyncio:
        given = {"--registers": registers, "--no-interpreted": not interpreted, "--evaluators": evaluators}
        refuse_with_tasks(form, {**given, "--repeat": repeat > 1, "--store": store is not None})
    # With a store nothing else is written unless that was asked for.
    usual = "text" if store is None or common.output is not None or registers else None
    name = "json" if as_json else form or usual
    _check_choices(name, form, as_json=as_json, registers=registers, no_functions=evaluators and not interpreted)

    def work(_: str) -> int:
        from walkback.capture.stacks import Stopper

        stopper = Stopper(
            int(target) if live else target,
            exe=exe,
            stack_bytes=stack_bytes,
            # A backtrace of CBF is of addresses, and functions of interpreters have none.
            interpreted=interpreted and name != "cbf",
            evaluators=evaluators,
            tasks=asyncio,
            **common.walking(),
        )
        if asyncio:
            return print_tasks(stopper, target, common.output, as_json=name == "json")
        shots = _Shots(stopper, repeat, interval)
        # Lines that are printed to the terminal while the bar is there would tear it.
        printed = common.output is None or is_stdout(common.output)
        shown = repeat > 1 and not (printed and sys.stdout.isatty())
        with (
            storing(store, labels, stopper) as keep,
            progress("sampling", repeat, "snapshots", shown=shown) as move,
        ):
            _write(shots.each(keep, move), stopper, name, common, registers=registers)
        return shots.print(target, common.only)

    def of_core(file: str) -> int:
        try:
            return work(file)
        except UnreadableError as error:
            if error.file in {None, file}:
                error.message += _also_running(file)
            raise

    ctx.exit(guarded(work, target, f"process {target}") if live else guarded(of_core, target, target))


def _check_choices(name: str | None, form: str | None, *, as_json: bool, registers: bool, no_functions: bool) -> None:
    """Refuse options that exclude each other; `no_functions` is said of evaluators without what they run."""
    if as_json and form not in {None, "json"}:
        refuse_both("--json", "--format")
    if registers and name != "text":
        message = f"--registers is for text, and not for --format {name}"
        raise click.UsageError(message)
    if no_functions:
        refuse_both("--evaluators", "--no-interpreted")


def _also_running(file: str) -> str:
    """What to add to the error of a file whose name processes have as well."""
    if "/" in file:
        return ""
    from walkback.capture.live.processes import processes_named

    found = [str(pid) for pid in sorted(processes_named(file))]
    if not found:
        return ""
    what = "process of this name runs, PID" if len(found) == 1 else "processes of this name run, PIDs"
    return f"; {len(found)} {what} {', '.join(found)}"


def _meant(target: str) -> str:
    """The number or path that is meant, also by the name of a process."""
    if (target.isascii() and target.isdigit()) or "/" in target or os.path.lexists(target):
        return target
    return str(process_named(target, or_file=True))


class _Shots:
    """Pictures taken one after the other, and what is to be said of all."""

    def __init__(self, stopper: Stopper, repeat: int, interval: float) -> None:
        import numpy as np

        self.stopper = stopper
        self._repeat, self._interval = repeat, interval
        self._sleeping = self._interrupted = False
        self._stopped: list[np.ndarray] = []
        self._ends = np.zeros(256, np.int64)
        self._troubles: dict[str, None] = {}
        self.live = stopper.live

    def __iter__(self) -> Iterator[ThreadStacks]:
        if self._repeat == 1:
            yield self._shoot()
            return
        former = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield from self._many()
        finally:
            signal.signal(signal.SIGINT, former)

    def each(self, keep: Callable[[SampleBatch], None], move: Callable[[int, int], None]) -> Iterator[ThreadStacks]:
        """Yield every picture to be shown; keep each one first."""
        for number, shot in enumerate(self, start=1):
            keep(shot.batch())
            move(number, number)
            yield shot

    def _interrupt(self, _number: int, _frame: object) -> None:
        """Take no more pictures; a look that has begun is not cut short, unless this is asked for twice."""
        if self._sleeping or self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True

    def _many(self) -> Iterator[ThreadStacks]:
        """As many as there are until the process ends, or somebody has seen enough."""
        following = time.monotonic()
        for number in range(self._repeat):
            if number:
                # What took longer than the interval is not made up for by looks without a pause.
                following = max(following + self._interval, time.monotonic())
                self._sleep(following - time.monotonic())
            if self._interrupted:
                return
            try:
                shot = self._shoot()
            except UnreadableError as error:
                if not number:
                    raise
                self._troubles[f"{error.message}, after {counted(number, 'look')}"] = None
                return
            yield shot

    def _sleep(self, seconds: float) -> None:
        try:
            self._sleeping = True
            if not self._interrupted:
                time.sleep(max(0.0, seconds))
        except KeyboardInterrupt:
            self._interrupted = True
        finally:
            self._sleeping = False

    def _shoot(self) -> ThreadStacks:
        import numpy as np

        shot = self.stopper.shoot()
        self._stopped.append(shot.snapshot.stopped)
        self._ends += np.bincount(shot.stacks.end, minlength=256)
        self._troubles.update(dict.fromkeys(shot.snapshot.troubles))
        return shot

    def print(self, target: str, only: Only | None) -> int:
        """What could not be had; and of many looks at a process how long its threads were stopped."""
        import numpy as np

        stopped = np.concatenate(self._stopped) if self._stopped else np.zeros(0)
        if self.live and self._repeat > 1 and len(stopped):
            middle, most, longest = (np.percentile(stopped, part) / 1e6 for part in (50, 99, 100))
            complain(
                f"{target}: {counted(len(stopped), 'stop')}: median {middle:.3f} ms, "
                f"99th percentile {most:.3f} ms, maximum {longest:.3f} ms"
            )
        complain_of(target, list(dict.fromkeys([*self._troubles, *self.stopper.troubles])))
        if self._interrupted:
            return EXIT_INTERRUPTED
        return EXIT_FINE if any_complete(self._ends, only) and not self._troubles else EXIT_FINDINGS


def _write(
    shots: Iterator[ThreadStacks], stopper: Stopper, name: str | None, common: Shared, *, registers: bool
) -> None:
    if name is None:
        for _ in shots:
            pass
        return
    if name == "text":
        with opened(common.output) as out:
            for number, shot in enumerate(shots):
                lines = [*([""] if number else []), *lines_of(shot, registers=registers)]
                out.writelines(f"{line}\n".encode(errors="surrogateescape") for line in lines)
                out.flush()
        return
    from walkback.capture.stacks import Totalled
    from walkback.export.formats import FORMATS

    form = FORMATS[name]
    if form.binary:
        refuse_terminal(f"--format {form.name}", common.output)
    if form.streamed:
        with opened(common.output) as out:
            form.export((shot.batch() for shot in shots), out)
        return
    total = Totalled(stopper)
    for shot in shots:
        total.add(shot)
    with opened(common.output) as out:
        form.export(total.profile(), out)
