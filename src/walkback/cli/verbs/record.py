"""`walkback record`: where a command, a process or the whole machine spends its time."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import processes
from walkback.cli.inherited import Inherited
from walkback.cli.interrupts import stopped_by_signals
from walkback.cli.live import check_live, live_view
from walkback.cli.output import EXIT_FINE, EXIT_UNREADABLE, complain, guarded
from walkback.cli.parameter import Seconds
from walkback.cli.paths import OUTPUT_FILE, check_output, is_stdout, opened, refuse_terminal
from walkback.cli.processes import one_process, process_named
from walkback.cli.recordings import account_for
from walkback.cli.storing import LABEL, STORE, check_store, storing_often
from walkback.cli.walking import FORMAT_NAMES, LIMIT, MARK_INCOMPLETE, STREAMED, Shared, check_limit, options

if TYPE_CHECKING:
    from collections.abc import Callable

    from walkback.capture.recorder.sampler import Sampler, Way
    from walkback.capture.unwinding import Collector
    from walkback.stacks.profile import Profile
    from walkback.store.often import Often

_PERF = "perf"
_PYTHON = "_PyEval_EvalFrameDefault"
"""What runs functions of Python; by stops these stand in its place."""
_USUAL = "walkback.html"
_FORMATS = {
    ".html": "html",
    ".json": "json",
    ".folded": "folded",
    ".txt": "top",
    ".pb.gz": "pprof",
    ".cbf": "cbf",
    ".data": _PERF,
}
"""By what the name of the output ends with."""


@verb(
    "walkback record -- python3 -c 'sum(range(10**7))'",
    "walkback record -p $PID -d 2 --format top -o -",
    exit_1="there are no samples, or no stack is complete, except with --only fp. A status of "
    "COMMAND that is not 0 is passed on.",
)
@click.argument("command", metavar="{[--] COMMAND... | -p PID|NAME | -a}", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-p",
    "--process",
    "target",
    metavar="PID|NAME",
    multiple=True,
    callback=one_process,
    help="Record this process, and those that it starts.",
    shell_complete=processes,
)
@click.option("-a", "--all", "everything", is_flag=True, help="Record the whole machine.")
@click.option("-d", "--duration", type=Seconds(0, min_open=True), metavar="SECONDS", help="Stop after this time.")
@click.option(
    "-e",
    "--event",
    metavar="EVENT",
    default="cpu-clock",
    show_default=True,
    help="What to sample: time, cycles, page-faults, sched:sched_switch, uprobe:FILE:FUNCTION, ...",
)
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
    "-c",
    "--count",
    type=click.IntRange(1, 2**63 - 1),
    metavar="N",
    help="Sample every N events, instead of by frequency.",
)
@click.option(
    "--stack-bytes",
    type=click.IntRange(0, 65528),
    metavar="N",
    help="Copy this many bytes of each stack; with 0 the kernel walks them. [default: 16384, or more as needed]",
)
@click.option("--kernel/--no-kernel", default=True, help="Record what happens in the kernel, too, or not.")
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
@click.option(
    "--live", is_flag=True, help="With -p or -a: show the hottest functions and stacks in the terminal; q ends it."
)
@LIMIT
@MARK_INCOMPLETE
@STORE
@LABEL
@click.option(
    "--every",
    type=Seconds(1),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="With --store: time between appends; what was appended is safe.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    help="Write to this file. [default: walkback.html or perf.data, other formats to standard output]",
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
    sampler: Way,
    form: str | None,
    live: bool,
    limit: int | None,
    mark_incomplete: bool,
    store: str | None,
    labels: tuple[tuple[str, str], ...],
    every: float,
    **shared: Any,
) -> None:
    """Record where a command, a process or a machine spends its time.

    Without --format and --store, it writes a flame graph to walkback.html.
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
    check_limit(limit, name)
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
        output, live, {} if limit is None else {"limit": limit}, mark_incomplete, store, labels, every, common,
        ctx.obj or Inherited(),
    )  # fmt: skip
    if sampler == "stops" and (everything or name == _PERF or not _can_be_by_stops(wanted.event)):
        message = "--sampler stops is for cpu-clock and off-cpu of a command or process, and not for --format perf"
        raise click.UsageError(message)
    if sampler == "stops" and (count is not None or stack_bytes is not None or not kernel):
        message = "-c, --stack-bytes and --no-kernel are for events, which --sampler stops does without"
        raise click.UsageError(message)
    ctx.exit(guarded(_record, (wanted, target), command[0] if command else "-a" if target is None else target))


# What stands behind a command is the command's, as with perf.
record.allow_interspersed_args = False


def _where(output: str | None, form: str | None, *, elsewhere: bool) -> tuple[str | None, str | None]:
    """Where to write, and in which format; what goes elsewhere is not written as well unless that was asked for."""
    if output is None and form is None and elsewhere:
        return None, None
    if output is None:
        output = _USUAL if form in {None, "html"} else "perf.data" if form == _PERF else None
    if form is None:
        form = next((name for end, name in _FORMATS.items() if (output or "").endswith(end)), None)
        if form is None and os.path.splitext(output or "")[1]:
            message = f"{printable(output or '')}: this name stands for no format; give one with --format"
            raise click.UsageError(message)
        form = form or "html"
    return output, form


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to record, and where to."""

    command: tuple[str, ...]
    everything: bool
    duration: float | None
    event: str
    way: Way
    sampling: dict[str, Any]
    may_copy_more: bool
    form: str | None
    output: str | None
    live: bool
    limited: dict[str, int]
    """How many rows tables have."""
    mark: bool
    store: str | None
    labels: tuple[tuple[str, str], ...]
    every: float
    common: Shared
    inherited: Inherited

    @property
    def patience(self) -> float:
        """Seconds for which samples may wait until a processor is free; they come two rounds later at the latest."""
        from walkback.capture.recorder.sampler import PATIENCE

        if self.everything or self.live or self.form == _PERF:
            return 0.0
        return PATIENCE if self.store is None else min(PATIENCE, self.every / 4)

    @property
    def is_streamed(self) -> bool:
        """Whether each sample is written."""
        from walkback.export.formats import FORMATS

        return self.form is not None and self.form != _PERF and FORMATS[self.form].streamed


def _record(asked: tuple[_Wanted, str | None]) -> int:
    from walkback.capture.live.status import is_held
    from walkback.capture.recorder.command import Command
    from walkback.capture.recorder.events import Sampling
    from walkback.capture.recorder.sampler import Sampler

    wanted, named = asked
    _refuse_terminal(wanted)
    if wanted.form is not None and wanted.output is not None:
        check_output(wanted.output)
    inherited = wanted.inherited
    target: Command | int | None = None
    if wanted.command:
        target = Command(wanted.command, environment=inherited.environment, files=inherited.files)
    elif not wanted.everything:
        target = process_named(named or "")
    sampler = Sampler(
        target,
        event=wanted.event,
        way=wanted.way,
        sampling=Sampling(**wanted.sampling),
        grows=wanted.may_copy_more,
        duration=wanted.duration,
        endless=wanted.form is None and not wanted.live,
        patience=wanted.patience,
        interpreted=wanted.form != "cbf",  # which has addresses only
        names_last=not wanted.is_streamed,
        **wanted.common.walking(),
    )
    remarks = len(sampler.remarks)
    for remark in sampler.remarks:
        complain(remark)
    command = sampler.command
    with sampler, stopped_by_signals(sampler.stop, waits=command is not None) as signals:
        try:
            status = _keep(sampler, wanted) if wanted.form == _PERF else _unwind(sampler, wanted)
        except (WalkbackError, OSError):
            if command is not None and command.is_running:
                complain(f"{printable(sampler.name)}: the command goes on, but is not recorded any more")
            raise
    for remark in sampler.remarks[remarks:]:
        complain(remark)
    if isinstance(target, int) and not sampler.ends.any() and is_held(target):
        complain(f"{printable(sampler.name)}: the process is stopped, as by Ctrl-Z or a debugger")
    # Who has ended the recording does not want to wait for the command.
    return (command.wait() if command is not None and not signals else EXIT_FINE) or status


def _can_be_by_stops(event: str) -> bool:
    from walkback.capture.recorder.sampler import can_be_by_stops

    return can_be_by_stops(event)


def _refuse_terminal(wanted: _Wanted) -> None:
    from walkback.export.formats import FORMATS

    if wanted.form is not None and (wanted.form == _PERF or FORMATS[wanted.form].binary):
        refuse_terminal(f"--format {wanted.form}", wanted.output)


def _begin(sampler: Sampler, wanted: _Wanted) -> None:
    """Begin, and say how what has no end is ended."""
    sampler.begin()
    if sampler.command is None and wanted.duration is None and not wanted.live:
        complain(f"recording {sampler.name}; Ctrl-C ends it")


def _keep(sampler: Sampler, wanted: _Wanted) -> int:
    """Write what is recorded as perf.data."""
    from walkback.capture.recorder.events import TRACEPOINT
    from walkback.capture.recorder.perfoutput import write_perf
    from walkback.capture.recorder.recorder import Recorder

    assert isinstance(sampler.source, Recorder)
    if sampler.source.event.type == TRACEPOINT:
        complain("older versions of perf cannot read this file: it does not describe the tracepoint")
    with opened(wanted.output) as out:
        _begin(sampler, wanted)
        write_perf(sampler.source, out)
    _announce(wanted, "recorded")
    return EXIT_FINE


def _unwind(sampler: Sampler, wanted: _Wanted) -> int:
    """Write the stacks of the samples."""
    from walkback.capture.unwinding import Collector
    from walkback.export.formats import FORMATS

    form = FORMATS[wanted.form] if wanted.form is not None else None
    timeline, stays = form is not None and form.timeline, False
    samples, by_period = sampler.samples, sampler.is_weighted
    collector = Collector(samples, by_period=by_period, threads=timeline, times=timeline)
    with (
        storing_often(wanted.store, wanted.labels, samples, wanted.every, by_period=by_period) as keep,
        live_view(samples.name, sampler.stop) if wanted.live else contextlib.nullcontext() as draw,
    ):
        _begin(sampler, wanted)
        batches = sampler if keep is None else keep.each(sampler)
        sampler.when_idle(lambda: _catch_up(keep, draw, collector))
        if form is not None and form.streamed:
            with opened(wanted.output) as out:
                form.export(iter(batches), out)
        else:
            for batch in batches:
                if form is not None or wanted.live:
                    collector.add(batch)
                if draw is not None:
                    draw(collector.profile)
    if form is not None and not form.streamed:
        profile = collector.profile()
        # An older page is worth more than an empty one.
        stays = not sampler.ends.any() and wanted.output == _USUAL and os.path.exists(_USUAL)
        if not stays:
            with opened(wanted.output) as out:
                form.export(profile.marked() if wanted.mark else profile, out, **wanted.limited)
        if _PYTHON in profile.frames.symbol and not wanted.everything:
            complain("--sampler stops shows the functions of Python, and so does -X perf, an option of Python")
    _announce(wanted, "it stays as it was" if stays else counted(int(sampler.ends.sum()), "sample"))
    # Nothing says where the chains end that the kernel has walked.
    only = "fp" if wanted.sampling.get("stack_bytes") == 0 else wanted.common.only
    recording = getattr(samples, "recording", None)
    grows = wanted.may_copy_more
    status = account_for(samples.name, recording, sampler.ends, samples.troubles, only, live=True, grows=grows)
    return EXIT_UNREADABLE if keep is not None and keep.lost else status


def _catch_up(keep: Often | None, draw: Callable[[Callable[[], Profile]], None] | None, collector: Collector) -> None:
    """Do what is due while nothing comes."""
    if keep is not None:
        keep.publish_due()
    if draw is not None:
        draw(collector.profile)


def _announce(wanted: _Wanted, what: str) -> None:
    """Say what was written to a file."""
    if wanted.output is not None and not is_stdout(wanted.output):
        complain(f"{printable(wanted.output)}: {what}")
