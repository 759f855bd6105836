"""`walkback record`: where a command, a process or the whole machine spends its time."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import processes
from walkback.cli.inherited import Inherited
from walkback.cli.live import check_live, live_view
from walkback.cli.output import EXIT_FINE, complain, guarded
from walkback.cli.paths import check_output, is_stdout, opened, refuse_terminal
from walkback.cli.processes import process_named
from walkback.cli.recordings import account_for
from walkback.cli.storing import LABEL, STORE, check_store, storing_often
from walkback.cli.walking import FORMAT_NAMES, MARK_INCOMPLETE, STREAMED, Shared, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from walkback.capture.recorder.command import Command
    from walkback.capture.recorder.recorder import Recorder
    from walkback.capture.recorder.renewed import Renewed
    from walkback.capture.recorder.stops import Stops
    from walkback.capture.unwinding import Unwinding
    from walkback.stacks.profile import SampleBatch

_PERF = "perf"
_USUAL = "walkback.html"
_BY_STOPS = ("cpu-clock", "task-clock", "off-cpu")
"""What short stops can sample."""
_FORMATS = {
    ".html": "html",
    ".folded": "folded",
    ".txt": "top",
    ".pb.gz": "pprof",
    ".cbf": "cbf",
    ".data": _PERF,
}
"""By what the name of the output ends with."""


@verb("walkback record -- python3 -c 'sum(range(10**7))'", "walkback record -p $PID -d 2 --format top -o -")
@click.argument("command", metavar="[--] COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("-p", "--process", "target", metavar="PID|NAME", help="Record this process.", shell_complete=processes)
@click.option("-a", "--all", "everything", is_flag=True, help="Record the whole machine.")
@click.option(
    "-d", "--duration", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop after this time."
)
@click.option("-e", "--event", metavar="EVENT", default="cpu-clock", show_default=True, help="What to sample.")
@click.option("--off-cpu", is_flag=True, help="Record where threads wait, and for how long; same as -e off-cpu.")
@click.option(
    "-F",
    "--frequency",
    type=click.IntRange(1, 100_000),
    default=99,
    show_default=True,
    metavar="HERTZ",
    help="Samples per second and processor.",
)
@click.option(
    "-c", "--count", type=click.IntRange(1), metavar="N", help="Sample every N events, instead of by frequency."
)
@click.option(
    "--stack-bytes",
    type=click.IntRange(0, 65528),
    metavar="N",
    help="Copy this many bytes of each stack; with 0 the kernel walks them. [default: 16384, or more as needed]",
)
@click.option("--kernel/--no-kernel", default=True, help="Record what happens in the kernel, too.")
@click.option(
    "--sampler",
    type=click.Choice(["auto", "perf", "stops"]),
    default="auto",
    show_default=True,
    help="Sample by events of the kernel, or by short stops of threads; auto prefers events.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice((*FORMAT_NAMES, _PERF)),
    help="Output format; perf is perf.data. [default: by the name of the output, else html]",
)
@click.option("--live", is_flag=True, help="Show the hottest functions in the terminal meanwhile; q ends it.")
@MARK_INCOMPLETE
@STORE
@LABEL
@click.option(
    "--every",
    type=click.FloatRange(1),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="With --store: time between appends.",
)
@options
@click.pass_context
def record(
    ctx: click.Context,
    /,
    command: tuple[str, ...],
    target: str | None,
    everything: bool,
    duration: float | None,
    event: str,
    off_cpu: bool,
    frequency: int,
    count: int | None,
    stack_bytes: int | None,
    kernel: bool,
    sampler: str,
    form: str | None,
    live: bool,
    mark_incomplete: bool,
    store: str | None,
    labels: tuple[tuple[str, str], ...],
    every: float,
    **shared: Any,
) -> None:
    """Record where a command, a process or a machine spends its time.

    Without --format and --store, it writes a flame graph to walkback.html. The exit status is that of COMMAND, if that
    is not 0.
    """
    common = Shared(**shared)
    if [bool(command), target is not None, everything].count(True) != 1:
        message = "give a command, or a process with -p, or -a for the whole machine"
        raise click.UsageError(message)
    if off_cpu and event not in {"cpu-clock", "off-cpu"}:
        message = "--off-cpu and --event cannot be combined"
        raise click.UsageError(message)
    check_store(store, labels)
    if live:
        if command:
            message = "--live is for a running process or the whole machine, and not for a command"
            raise click.UsageError(message)
        check_live()
    output, name = _where(common.output, form, elsewhere=store is not None or live)
    if name is not None and live and (name == _PERF or name in STREAMED):
        message = f"--live sums up, and --format {name} does not"
        raise click.UsageError(message)
    if name == _PERF and store is not None:
        message = "perf.data holds what a store would be made of; record it without --store, and append it"
        raise click.UsageError(message)
    sampling = {"frequency": frequency, "period": count, "kernel": kernel, "data": name == _PERF}
    if stack_bytes is not None:
        sampling["stack_bytes"] = stack_bytes
    wanted = _Wanted(
        command, everything, duration, "off-cpu" if off_cpu else event, sampler, sampling, stack_bytes is None, name,
        output, live, mark_incomplete, store, labels, every, common,
        ctx.obj or Inherited(),
    )  # fmt: skip
    if sampler == "stops" and not wanted.may_stop:
        message = "--sampler stops is for cpu-clock and off-cpu of a command or process, and not for --format perf"
        raise click.UsageError(message)
    ctx.exit(guarded(_record, (wanted, target), command[0] if command else target or "-a"))


def _where(output: str | None, form: str | None, *, elsewhere: bool) -> tuple[str | None, str | None]:
    """Where to write, and in which format; what goes elsewhere is not written as well unless that was asked for."""
    if output is None and form is None and elsewhere:
        return None, None
    if output is None:
        output = _USUAL if form in {None, "html"} else "perf.data" if form == _PERF else None
    if form is None:
        form = next((name for end, name in _FORMATS.items() if (output or "").endswith(end)), "html")
    return output, form


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to record, and where to."""

    command: tuple[str, ...]
    everything: bool
    duration: float | None
    event: str
    sampler: str
    sampling: dict[str, Any]
    may_copy_more: bool
    form: str | None
    output: str | None
    live: bool
    mark: bool
    store: str | None
    labels: tuple[tuple[str, str], ...]
    every: float
    common: Shared
    inherited: Inherited

    @property
    def may_stop(self) -> bool:
        """Whether short stops can give what is wanted."""
        return self.event in _BY_STOPS and self.form != _PERF and not self.everything

    @property
    def is_streamed(self) -> bool:
        """Whether each sample is written."""
        from walkback.export.formats import FORMATS

        return self.form is not None and self.form != _PERF and FORMATS[self.form].streamed


def _record(asked: tuple[_Wanted, str | None]) -> int:
    from walkback.capture.recorder.command import Command

    wanted, target = asked
    _refuse_terminal(wanted)
    if wanted.form is not None and wanted.output is not None:
        check_output(wanted.output)
    inherited = wanted.inherited
    command = (
        Command(wanted.command, environment=inherited.environment, files=inherited.files) if wanted.command else None
    )
    try:
        pid = command.pid if command is not None else None if wanted.everything else process_named(target or "")
        source, samples = _sampled(wanted, pid, _name(command, pid), held=command is not None)
    except BaseException:
        if command is not None:
            command.give_up()
        raise

    def begin() -> None:
        if wanted.duration is not None:
            source.run_for(wanted.duration)
        if command is not None:
            command.let_go()
            return
        source.start()
        if wanted.duration is None and not wanted.live:
            complain(f"recording {source.name}; Ctrl-C ends it")

    with contextlib.closing(source), _stopped_by_signals(source, waits=command is not None) as signals:
        status = _unwind(source, samples, begin, wanted) if samples is not None else _keep(source, begin, wanted)
    # Who has ended the recording does not want to wait for the command.
    return (command.wait() if command is not None and not signals else EXIT_FINE) or status


def _sampled(
    wanted: _Wanted, pid: int | None, name: str, *, held: bool
) -> tuple[Recorder | Stops, Unwinding | Renewed | Stops | None]:
    """What records, and what gives its samples: nothing for perf.data.

    Where the kernel refuses events and nobody has chosen, a process is stopped instead.
    """
    from walkback.capture.recorder.events import EventChoice, Sampling
    from walkback.capture.recorder.perfevent import RefusedError
    from walkback.capture.recorder.recorder import Recorder

    options = wanted.common.walking() | {"names_last": not wanted.is_streamed}
    if wanted.sampler != "stops":
        event, sampling = EventChoice.named(wanted.event), Sampling(**wanted.sampling)
        try:
            recorder = Recorder(event, sampling, pid=pid, name=name, on_exec=held)
        except RefusedError as error:
            if wanted.sampler == "perf" or pid is None or not wanted.may_stop:
                raise
            complain(f"{error.message}; sampling by short stops instead")
        else:
            if recorder.lacking is not None:
                complain(recorder.lacking)
            if wanted.form == _PERF:
                return recorder, None
            return recorder, _unwinding(recorder, wanted, kernel=wanted.sampling["kernel"], **options)
    from walkback.capture.recorder.stops import Stops

    assert pid is not None
    waiting = wanted.event == "off-cpu"
    interpreted = wanted.form != "cbf"  # which has addresses only
    frequency = wanted.sampling["frequency"]
    stops = Stops(pid, frequency=frequency, name=name, waiting=waiting, interpreted=interpreted, **options)
    stops.check()  # a command, before it has done anything
    return stops, stops


def _unwinding(recorder: Recorder, wanted: _Wanted, **options: Any) -> Unwinding | Renewed:
    """What is only kept in a store can go on for months."""
    from walkback.capture.recorder.renewed import Renewed
    from walkback.capture.unwinding import Unwinding

    only_stored = wanted.form is None and not wanted.live
    return Renewed(recorder, **options) if only_stored else Unwinding(recorder, **options)


def _name(command: Command | None, pid: int | None) -> str:
    """What the recording is called."""
    from walkback.capture.live.status import name_in

    if command is not None:
        return " ".join(command.words)
    return os.uname().nodename if pid is None else name_in(f"/proc/{pid}/comm") or f"process {pid}"


def _refuse_terminal(wanted: _Wanted) -> None:
    from walkback.export.formats import FORMATS

    if wanted.form is not None and (wanted.form == _PERF or FORMATS[wanted.form].binary):
        refuse_terminal(f"--format {wanted.form}", wanted.output)


@contextlib.contextmanager
def _stopped_by_signals(source: Recorder | Stops, *, waits: bool) -> Iterator[list[int]]:
    """Let Ctrl-C and a request to end stop the recording; gives the signals that have done so.

    A command gets Ctrl-C itself; so what `waits` for one is stopped only by a second. One more gives up, whatever is
    being done. The signal that comes when a terminal is closed stays ignored for who has asked for that, as by nohup.
    """
    signals: list[int] = []

    def stop(number: int, _frame: object) -> None:
        nonlocal waits
        if number == signal.SIGINT and signals:
            raise KeyboardInterrupt
        if number != signal.SIGINT or not waits:
            signals.append(number)
            source.stop()
        waits = False

    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    former = {number: signal.signal(number, stop) for number in ends}
    try:
        yield signals
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _keep(source: Any, begin: Callable[[], None], wanted: _Wanted) -> int:
    """Write what is recorded as perf.data."""
    from walkback.capture.recorder.perfoutput import write_perf

    with opened(wanted.output) as out:
        begin()
        write_perf(source, out)
    _announce(wanted, "recorded")
    return EXIT_FINE


def _unwind(source: Recorder | Stops, samples: Any, begin: Callable[[], None], wanted: _Wanted) -> int:
    """Write the stacks of the samples."""
    import numpy as np

    from walkback.capture.unwinding import Collector
    from walkback.export.formats import FORMATS
    from walkback.stacks.stacks import End

    form = FORMATS[wanted.form] if wanted.form is not None else None
    timeline = form is not None and form.timeline
    by_period = wanted.event == "off-cpu"
    collector = Collector(samples, by_period=by_period, threads=timeline, times=timeline)
    ends = np.zeros(256, np.int64)
    with (
        storing_often(wanted.store, wanted.labels, samples, wanted.every, by_period=by_period) as keep,
        live_view(samples.name, source.stop) if wanted.live else contextlib.nullcontext() as draw,
    ):
        begin()

        def batches() -> Iterator[SampleBatch]:
            for batch in samples if keep is None else keep.each(samples):
                counts = np.bincount(batch.end, minlength=256)
                ends[:] += counts
                if wanted.may_copy_more:
                    source.saw(len(batch), int(counts[End.STACK_CUT]))
                yield batch

        if form is not None and form.streamed:
            with opened(wanted.output) as out:
                form.export(batches(), out)
        else:
            for batch in batches():
                if form is not None or wanted.live:
                    collector.add(batch)
                if draw is not None:
                    draw(collector.profile)
    if form is not None and not form.streamed:
        with opened(wanted.output) as out:
            profile = collector.profile()
            form.export(profile.marked() if wanted.mark else profile, out)
    _announce(wanted, counted(int(ends.sum()), "sample"))
    # Nothing says where the chains end that the kernel has walked.
    only = "fp" if wanted.sampling.get("stack_bytes") == 0 else wanted.common.only
    recording, grows = getattr(samples, "recording", None), wanted.may_copy_more
    return account_for(samples.name, recording, ends, samples.troubles, only, live=True, grows=grows)


def _announce(wanted: _Wanted, what: str) -> None:
    """Say what was written to a file."""
    if wanted.output is not None and not is_stdout(wanted.output):
        complain(f"{printable(wanted.output)}: {what}")
