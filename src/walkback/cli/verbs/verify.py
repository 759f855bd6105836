"""`walkback verify`: whether unwind tables are right about the machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import functions, sections
from walkback.cli.explaining import print_explained
from walkback.cli.mismatches import mismatch_line, print_undescribed
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, FILE, JOBS, JSON, for_each_file, for_each_result, guarded
from walkback.cli.paths import STREAM, standard_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from walkback.sections.verified import Verified


_FUNCTIONS, _INSTRUCTIONS = 20, 1000


@verb(
    "walkback verify hello",
    "walkback verify --explain main hello",
    exit_1="a rule is wrong, there is no such table or function, or, with --frame-pointers, a file "
    "does not keep the chain.",
)
@FILE
@click.option(
    "--table",
    metavar="NAME",
    help="Only the table in this section. [default: all but .gopclntab]",
    shell_complete=sections,
)
@click.option("--function", metavar="NAME", help="Only the functions of this name.", shell_complete=functions)
@click.option(
    "--explain",
    metavar="FUNCTION",
    help="Show each instruction of this function, given by its name or an address, as 0x1234, 4660 or .text+0x12.",
    shell_complete=functions,
)
@click.option("--frame-pointers", is_flag=True, help="Show whether the code keeps the chain of frame pointers.")
@click.option(
    "--weight",
    type=STREAM,
    metavar="PERF.DATA",
    help="With --frame-pointers: show also the share of this recording's samples in the file.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"List at most N functions of each kind, or with --explain N instructions of each function; --json lists "
    f"all. [default: {_FUNCTIONS}, with --explain {_INSTRUCTIONS}]",
)
@JOBS
@JSON
@click.pass_context
def verify(
    ctx: click.Context,
    files: tuple[str, ...],
    table: str | None,
    function: str | None,
    explain: str | None,
    frame_pointers: bool,
    weight: str | None,
    limit: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Prove unwind tables against the machine code they describe.

    FILE is an ELF file, such as a program, an object or a kernel module, or an archive or a package: deb, rpm, wheel
    or tar.

    For each instruction of each function, the machine code shows where the caller's frame is. A table is proved where
    its rule agrees. A proof assumes that functions begin as the ABI says, callees keep the registers that the ABI says,
    and no store through a pointer writes to the places where registers are saved.

    --frame-pointers shows instead, for AMD64 and AArch64, which functions link their frame at every call and use the
    frame pointer for nothing else. A file keeps the chain if 99 % of the code is in such functions or in leaves.
    """
    from walkback.sections.verify import RESTS_ON

    _refuse_together(function, explain, weight, frame_pointers=frame_pointers, table=table)
    if limit is None:
        limit = _FUNCTIONS if explain is None else _INSTRUCTIONS
    if frame_pointers:
        ctx.exit(_frame_pointers(files, weight, limit, jobs, as_json=as_json))

    if explain is not None:
        ctx.exit(for_each_file(files, lambda file: print_explained(file, table, explain, limit, as_json=as_json), jobs))
    tables = 0

    def note(result: _Printed) -> int:
        nonlocal tables
        tables += result.tables
        return result.status

    status = for_each_result(files, lambda file: _verify(file, table, function, limit, as_json=as_json), note, jobs)
    if tables and not as_json:
        click.echo(f"A proof assumes that {RESTS_ON}.")
    ctx.exit(status)


class _Printed(NamedTuple):
    """What was printed of a file."""

    status: int
    tables: int


def _verify(file: str, table: str | None, function: str | None, limit: int, *, as_json: bool) -> _Printed:
    """Print the verdicts on the tables of a file."""
    from walkback.sections.verify import verify as verified_tables

    status, tables = EXIT_FINE, 0
    for verified in verified_tables(file, table=table, function=function):
        tables += 1
        if as_json:
            _print_objects(verified, is_whole=function is None)
        else:
            _print(verified, limit)
            if function is None:
                print_undescribed(verified.undescribed, limit)
        if verified.wrong:
            status = EXIT_FINDINGS
        del verified  # the next one needs its memory
    return _Printed(status, tables)


def _refuse_together(
    function: str | None, explain: str | None, weight: str | None, *, frame_pointers: bool, table: str | None
) -> None:
    """Refuse options that do not go together."""
    message = None
    if frame_pointers and (table or function or explain):
        message = "--frame-pointers is about whole files: it takes no --table, --function or --explain"
    elif function is not None and explain is not None:
        message = "--explain shows one function: it takes no --function"
    elif weight is not None and not frame_pointers:
        message = "--weight is for --frame-pointers"
    if message:
        raise click.UsageError(message)


def _frame_pointers(files: Sequence[str], weight: str | None, limit: int, jobs: int | None, *, as_json: bool) -> int:
    """Print whether the files keep the chain of frame pointers, also weighed by the samples of a recording."""
    from walkback.capture.places import Places, sample_places
    from walkback.cli.framepointers import KeepingReport
    from walkback.sections.framepointers import frame_pointers

    places: list[Places] = []

    def read(recording: str) -> int:
        places.append(sample_places(standard_input(recording) or recording))
        return EXIT_FINE

    def work(file: str) -> int:
        report = KeepingReport(file, places[0] if places else None, limit=limit, as_json=as_json)
        for found in frame_pointers(file):
            report.add(found)
        report.end()
        return EXIT_FINE if report.keeps else EXIT_FINDINGS

    status = EXIT_FINE if weight is None else guarded(read, weight, weight)
    return status or for_each_file(files, work, jobs)


def _print(verified: Verified, limit: int) -> None:
    from walkback.proof.values import Verdict

    click.echo(printable(f"{verified.file}: {verified.table}"))
    found = f"{verified.functions_proved} proved, {verified.functions_wrong} wrong"
    code = f"{counted(verified.reached, 'byte')} of instructions: {_shares(verified)}"
    rest = f"; {counted(verified.not_reached, 'byte')} of padding or data" if verified.not_reached else ""
    click.echo(f"  {counted(verified.functions, 'function')}: {found}; {code}{rest}")
    if verified.functions_careless:
        who = counted(verified.functions_careless, "function")
        click.echo(f"  not checked: callee-saved registers without a rule in {who}, by a convention of this file")
    for why, size in verified.by_reason.items():
        if why.verdict is not Verdict.NOT_REACHED:
            click.echo(f"  {why.verdict.name.lower()}: {why.word}: {counted(size, 'byte')}")
    for one in verified.worst(limit):
        click.echo(f"  wrong: {mismatch_line(one)}")
    if verified.functions_wrong > limit:
        click.echo(f"  and {counted(verified.functions_wrong - limit, 'more function')}")


def _shares(verified: Verified) -> str:
    from walkback.cli.coverage import percent

    parts = {
        "proved": verified.proved,
        "wrong": verified.wrong,
        "assumed": verified.assumed,
        "unknown": verified.unknown,
    }
    shown = [f"{percent(size, verified.reached)} {name}" for name, size in parts.items() if size]
    return ", ".join(shown) if shown else "none"


def _print_objects(verified: Verified, *, is_whole: bool) -> None:
    import json
    from dataclasses import asdict

    wrong: MismatchObject = {**_head(verified), "type": "mismatch"}
    bare_head: UndescribedObject = {**_head(verified), "type": "undescribed"}
    for one in verified.mismatches:
        click.echo(json.dumps({**wrong, **asdict(one)}))
    for bare in verified.undescribed if is_whole else ():
        click.echo(json.dumps({**bare_head, **asdict(bare)}))
    click.echo(json.dumps(_table_object(verified)))


class TableObject(TypedDict):
    """Which table it is, as JSON."""

    file: str
    """The file."""
    table: str
    """The section of the table."""


class MismatchObject(TableObject):
    """Where a rule is wrong, without what is wrong, as JSON."""

    type: Literal["mismatch"]
    """The type of the object."""


class UndescribedObject(TableObject):
    """A function that is not described, without its place, as JSON."""

    type: Literal["undescribed"]
    """The type of the object."""


class CountsObject(TableObject):
    """The verdicts on a table, as JSON."""

    type: Literal["file"]
    """The type of the object."""

    functions: int
    """The number of functions; pieces of one that others interrupt count each."""
    functions_proved: int
    """The number proved at every instruction that can be reached."""
    functions_wrong: int
    """The number with an instruction at which the table is wrong."""
    functions_careless: int
    """The number that return with other values in callee-saved registers, as 16 or more of the file do; registers
    without a rule are not checked in them."""
    bytes: int
    """The bytes of code."""
    proved: int
    """The bytes at which the table is proved."""
    wrong: int
    """The bytes at which it is wrong."""
    assumed: int
    """The bytes at which it is right if something holds that the code does not show."""
    not_reached: int
    """The bytes that nothing leads to."""
    unknown: int
    """The bytes at which the proof cannot decide."""
    reasons: dict[str, int]
    """The bytes of `assumed`, `unknown` and `not_reached`, by reason."""


def _head(verified: Verified) -> TableObject:
    return {"file": verified.file, "table": verified.table}


def _table_object(verified: Verified) -> CountsObject:
    return {
        **_head(verified),
        "type": "file",
        "functions": verified.functions,
        "functions_proved": verified.functions_proved,
        "functions_wrong": verified.functions_wrong,
        "functions_careless": verified.functions_careless,
        "bytes": verified.bytes,
        "proved": verified.proved,
        "wrong": verified.wrong,
        "assumed": verified.assumed,
        "not_reached": verified.not_reached,
        "unknown": verified.unknown,
        "reasons": verified.reasons,
    }
