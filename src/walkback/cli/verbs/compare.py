"""`walkback compare`: whether two tables say the same."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.completion import sections
from walkback.cli.coverage import LIMIT
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JOBS, JSON, complain, for_each_file
from walkback.cli.paths import PLACED_FILE
from walkback.cli.sources import source_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.proof import values as proof
    from walkback.sections.pairs import Pair
    from walkback.sections.reading import Tables
    from walkback.table.comparing import Stretch
    from walkback.table.verdict import Verdict

    _Word = str | None
    _Judged = tuple[Stretch, tuple[_Word, _Word]]

_BOTH_PROVED = ("proved", "proved")
_FINE = {"proved", "not_reached"}
"""What nothing is wrong with."""


@verb(
    "walkback compare a.out",
    "walkback compare hello hello.sframe@0x2000",
    exit_1="rules differ, the two describe no code in common, a table is missing, or, with --strict, "
    "only one of the two describes some code.",
)
@click.argument("files", metavar="FILE [OTHER]", nargs=-1, required=True, type=PLACED_FILE)
@click.option("--each", is_flag=True, help="Take any number of files, and compare the two tables of each.")
@click.option(
    "--section",
    metavar="NAME",
    help="Use this section of the first file, also .gopclntab or .orc_unwind.",
    shell_complete=sections,
)
@click.option(
    "--other-section",
    metavar="NAME",
    help="Use this section of the other file, also .gopclntab or .orc_unwind.",
    shell_complete=sections,
)
@source_option(default=None, text="Use these tables of the first file, or the rules that its code shows.")
@source_option("--other-source", "other_tables", default=None, text="Use these of the other file.")
@click.option("--verify", is_flag=True, help="Say of each different rule whether the machine code proves it.")
@click.option("--strict", is_flag=True, help="Exit 1 also if only one of the two has a rule somewhere.")
@LIMIT
@JOBS
@JSON
@click.pass_context
def compare(
    ctx: click.Context,
    files: tuple[str, ...],
    each: bool,
    section: str | None,
    other_section: str | None,
    tables: Tables | None,
    other_tables: Tables | None,
    verify: bool,
    strict: bool,
    limit: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare .eh_frame and .sframe, or two files, at every address.

    OTHER is a second file, or raw SFrame bytes with their address, as in raw.sframe@0x4000. Without it, the call frame
    information of FILE is compared with its SFrame section.
    """
    import json

    from walkback.sections.pairs import compare as pairs
    from walkback.table.verdict import Verdict

    other = _other(files, each, other_section or other_tables)
    chosen: dict[str, Any] = {
        "section": section,
        "other_section": other_section,
        "tables": tables,
        "other_tables": other_tables,
    }

    def work(file: str) -> int:
        status = EXIT_FINE
        for pair in compared(file):
            if as_json:
                for value in _objects(pair, verify):
                    click.echo(json.dumps(value))
            else:
                _print(pair, limit, verify)
            uncovered = pair.comparison.code_bytes(Verdict.ONLY_ONE) + pair.comparison.code_bytes(Verdict.ONLY_OTHER)
            if not pair.comparison.equal or (strict and uncovered):
                status = EXIT_FINDINGS
            if uncovered and not pair.comparison.code_bytes(Verdict.EQUAL) and pair.comparison.equal:
                complain(f"{pair.file}: the two describe no code in common")
                status = EXIT_FINDINGS
        return status

    def compared(file: str) -> Iterator[Pair]:
        try:
            yield from pairs(file, other, **chosen)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    ctx.exit(for_each_file(files if each else files[:1], work, jobs))


def _other(files: tuple[str, ...], each: bool, wanted: str | None) -> str | None:
    """The second of two files that are compared with each other; an address that is none is refused."""
    from walkback.elf.inputs import split_address

    if not each and len(files) > 2:
        message = "compare takes one file or two; --each compares the two tables of any number of files"
        raise click.UsageError(message)
    other = files[1] if len(files) == 2 and not each else None
    try:
        address = split_address(other)[1] if other is not None else None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if address is not None and wanted is not None:
        message = "--other-section and --other-source are for ELF files, and raw section bytes have none"
        raise click.UsageError(message)
    return other


def _titles(pair: Pair) -> list[tuple[Verdict, str]]:
    from walkback.table.verdict import Verdict

    return [
        (Verdict.EQUAL, "the same rule"),
        (Verdict.DIFFERENT, "different rules"),
        (Verdict.ONLY_ONE, f"only in {pair.one}"),
        (Verdict.ONLY_OTHER, f"only in {pair.other}"),
        (Verdict.NEITHER, "no rule in either"),
    ]


def _print(pair: Pair, limit: int, verify: bool) -> None:
    from walkback.table.verdict import Verdict

    click.echo(printable(f"{pair.file}: {pair.one} and {pair.other}"))
    for verdict, title in _titles(pair):
        size = pair.comparison.code_bytes(verdict)
        if not size and verdict is not Verdict.EQUAL:
            continue
        _print_title(title, _amount(pair, verdict))
        if verdict is Verdict.EQUAL:
            continue
        if verify and verdict is Verdict.DIFFERENT:
            judged = _judged(pair)
            _print_title("of these, both are proved and find the caller", _both_proved(judged))
            lines = _judged_lines(pair, judged)
        else:
            lines = _lines(pair, verdict)
        for line in islice(lines, limit):
            click.echo(printable(f"    {line}"))
        rest = sum(1 for _ in lines)
        if rest:
            click.echo(f"    and {rest} more")


def _print_title(title: str, amount: AmountObject) -> None:
    functions, size = counted(amount["functions"], "function"), counted(amount["bytes"], "byte")
    click.echo(printable(f"  {title}: {functions}, {size} of code"))


def _lines(pair: Pair, verdict: Verdict) -> Iterator[str]:
    for stretch in pair.comparison.stretches(verdict):
        yield f"{_place(pair, stretch)}: {_rules(stretch)}"


def _judged_lines(pair: Pair, judged: list[_Judged]) -> Iterator[str]:
    """Different rules with the verdicts on them; those that nothing is wrong with come last."""
    for stretch, words in sorted(judged, key=lambda one: _FINE.issuperset(one[1])):
        said = [(word or "").replace("_", " ") for word in words]
        yield f"{_place(pair, stretch)}: {_rules(stretch)}; {said[0]} | {said[1]}"


def _place(pair: Pair, stretch: Stretch) -> str:
    name = pair.name_of(stretch)
    where = pair.place(stretch.section, stretch.start)
    return f"{where}{f' {name}' if name else ''} ({counted(stretch.size, 'byte')})"


def _rules(stretch: Stretch) -> str:
    from walkback.table.verdict import Verdict

    if stretch.verdict is Verdict.ONLY_OTHER:
        return stretch.other
    if stretch.verdict is Verdict.DIFFERENT:
        return f"{stretch.one} | {stretch.other}"
    return stretch.one


def _judged(pair: Pair) -> list[_Judged]:
    """The stretches with different rules, and what the machine code says of each of two rules."""
    from walkback.table.verdict import Verdict

    stretches = list(pair.comparison.stretches(Verdict.DIFFERENT))
    verdicts = pair.verdicts_of(stretches)
    return [(one, (_word(two[0]), _word(two[1]))) for one, two in zip(stretches, verdicts, strict=True)]


def _word(verdict: proof.Verdict | None) -> str | None:
    return None if verdict is None else verdict.name.lower()


class AmountObject(TypedDict):
    """How much code, as JSON."""

    functions: int
    """The number of functions."""
    bytes: int
    """The bytes of code."""


class ComparisonObject(TypedDict):
    """What came of two tables, as JSON."""

    type: Literal["comparison"]
    """The type of the object."""
    file: str
    """The file."""
    one: str
    """The first table."""
    other: str
    """The second table."""
    equal: AmountObject
    """Both have the same rule."""
    different: AmountObject
    """The rules differ."""
    only_one: AmountObject
    """Only the first has a rule."""
    only_other: AmountObject
    """Only the second has a rule."""
    neither: AmountObject
    """Neither has a rule."""
    both_proved: NotRequired[AmountObject]
    """With `--verify`: the part of `different` where both rules are proved."""


class StretchObject(TypedDict):
    """Code whose rules differ, as JSON."""

    type: Literal["stretch"]
    """The type of the object."""
    verdict: str
    """`different`, `only_one`, `only_other` or `neither`."""
    section: str | None
    """In objects, the text section."""
    start: int
    """The address; in objects, the offset in the section."""
    size: int
    """The bytes of code."""
    name: str | None
    """The symbol of the function."""
    one: str
    """The rule of the first table, as text."""
    other: str
    """The rule of the second table, as text."""
    one_source: str | None
    """The table that the first rule is from."""
    other_source: str | None
    """The table that the second rule is from."""
    one_verdict: NotRequired[str | None]
    """With `--verify`, where the rules differ: what the machine code says of the first (`proved`, `wrong`, `assumed`,
    `unknown` or `not_reached`)."""
    other_verdict: NotRequired[str | None]
    """With `--verify`, where the rules differ: what it says of the second."""


def _both_proved(judged: list[_Judged]) -> AmountObject:
    """How many functions and bytes have different rules that are both proved: both find the caller."""
    proved = [stretch for stretch, words in judged if words == _BOTH_PROVED]
    return {"functions": len({one.range_one for one in proved}), "bytes": sum(one.size for one in proved)}


def _objects(pair: Pair, verify: bool) -> Iterator[ComparisonObject | StretchObject]:
    from walkback.table.verdict import Verdict

    judged = _judged(pair) if verify else []
    summary: ComparisonObject = {
        "type": "comparison",
        "file": pair.file,
        "one": pair.one,
        "other": pair.other,
        "equal": _amount(pair, Verdict.EQUAL),
        "different": _amount(pair, Verdict.DIFFERENT),
        "only_one": _amount(pair, Verdict.ONLY_ONE),
        "only_other": _amount(pair, Verdict.ONLY_OTHER),
        "neither": _amount(pair, Verdict.NEITHER),
    }
    if verify:
        summary["both_proved"] = _both_proved(judged)
    yield summary
    for stretch, (one, other) in judged:
        yield {**_object(pair, stretch), "one_verdict": one, "other_verdict": other}
    for verdict in (Verdict.DIFFERENT, Verdict.ONLY_ONE, Verdict.ONLY_OTHER, Verdict.NEITHER):
        if verdict is not Verdict.DIFFERENT or not verify:
            yield from (_object(pair, stretch) for stretch in pair.comparison.stretches(verdict))


def _amount(pair: Pair, verdict: Verdict) -> AmountObject:
    return {"functions": pair.comparison.ranges(verdict), "bytes": pair.comparison.code_bytes(verdict)}


def _object(pair: Pair, stretch: Stretch) -> StretchObject:
    one_source, other_source = pair.sources_of(stretch)
    return {
        "type": "stretch",
        "verdict": stretch.verdict.name.lower(),
        "section": pair.section_name(stretch.section),
        "start": stretch.start,
        "size": stretch.size,
        "name": pair.name_of(stretch),
        "one": stretch.one,
        "other": stretch.other,
        "one_source": one_source,
        "other_source": other_source,
    }
