"""`walkback size`: what stack-trace tables cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINE, FILE, JOBS, JSON, for_each_result
from walkback.cli.sources import MEASURED, WORDS, missing_from

if TYPE_CHECKING:
    from walkback.sections.reading import Tables
    from walkback.sections.size import ExistingSize, Parts, Replacement, Sizes, VersionSize

_COLUMNS = ("text", "eh_frame", "hdr", "sframe", "V1", "V2", "V3", "V2/eh", "V3/eh", "uncovered")
_WIDTH = 10

_PART_WORDS = {
    "header": "header",
    "index": "index",
    "padding": "padding in the index",
    "attributes": "attributes",
    "starts": "row starts",
    "info": "info bytes",
    "words": "words",
    "other": "belonging to nothing",
}
_WHAT_IF_WORDS = {
    "compact_index": "16-bit row counts, no padding",
    "slim_header": "slim header for linking",
    "section_per_text": "one section per text section",
    "section_per_text_slim": "  with slim headers",
    "section_per_function": "one section per function",
    "section_per_function_slim": "  with slim headers",
    "shared_rows": "rows shared between functions",
    "palette": "palette of rules",
    "stack_deltas": "palette, without functions",
}


@verb("walkback size hello", "walkback size /usr/bin/python3 hello", exit_1="there are no tables to measure.")
@FILE
@MEASURED
@JOBS
@JSON
@click.pass_context
def size(ctx: click.Context, files: tuple[str, ...], tables: Tables | None, jobs: int | None, as_json: bool) -> None:
    """Show the size of .eh_frame and of SFrame in each version.

    One file gives a full account. Several files give one line each, the totals, and the account of all together.
    """
    import json

    from walkback.sections.size import size as measure
    from walkback.sections.size import total_size

    measured: list[Sizes] = []
    many = len(files) > 1

    def show(sizes: Sizes) -> int:
        if as_json:
            click.echo(json.dumps(_object(sizes, "file")))
        elif many:
            if not measured:
                click.echo(" ".join(f"{title:>{_WIDTH}}" for title in _COLUMNS) + "  file")
            click.echo(_line(sizes))
        else:
            _print_account(sizes, tables)
        # Of many files only the sum is kept.
        measured[:] = [total_size([*measured, sizes])]
        return EXIT_FINE

    status = for_each_result(files, lambda file: measure(file, tables=tables), show, jobs)
    if many and measured:
        if as_json:
            click.echo(json.dumps(_object(measured[0], "total")))
        else:
            click.echo(_line(measured[0]))
            click.echo()
            _print_account(measured[0], tables)
    ctx.exit(status)


class SizedObject(TypedDict):
    """The type of an object with sizes, as JSON."""

    type: str
    """`file` or `total`."""


class SumObject(TypedDict):
    """The sum of the parts of a section, as JSON."""

    bytes: int
    """The size of the section."""


def _object(sizes: Sizes, kind: str) -> dict[str, Any]:
    """All numbers, by their names in the library."""
    from dataclasses import asdict

    value: dict[str, Any] = {"type": kind, **asdict(sizes)}
    if sizes.sframe is not None:
        value["sframe"]["bytes"] = sizes.sframe.parts.total
    for version, found in sizes.versions.items():
        value["versions"][version]["bytes"] = found.parts.total
    return value


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _against(sizes: Sizes, version: int) -> str:
    """What a version takes against call frame information, where there are both."""
    found = sizes.compared.get(version)
    return "" if found is None else _ratio(found.bytes, found.call_frames)


def _line(sizes: Sizes) -> str:
    found = {version: one.parts.total for version, one in sizes.versions.items()}
    cells = [
        str(sizes.text_bytes),
        str(sizes.eh_frame),
        str(sizes.eh_frame_hdr),
        str(sizes.sframe.parts.total) if sizes.sframe else "-",
        *(str(found[version]) if version in found else "-" for version in (1, 2, 3)),
        *(_against(sizes, version) or "-" for version in (2, 3)),
        str(sizes.versions[3].uncovered) if 3 in sizes.versions else "-",
    ]
    name = f"{sizes.file} ({sizes.files} files)" if sizes.files > 1 else printable(sizes.file)
    return " ".join(f"{cell:>{_WIDTH}}" for cell in cells) + f"  {name}"


def _print_account(sizes: Sizes, tables: Tables | None) -> None:
    """All that was measured, in words."""
    many = f"{sizes.files} files, " if sizes.files > 1 else ""
    members = f"{sizes.members} members, " if sizes.members > sizes.files else ""
    click.echo(f"{printable(sizes.file)}: {many}{members}{sizes.file_bytes} bytes, {sizes.text_bytes} of them text")
    if sizes.without:
        click.echo(f"  {counted(sizes.without, 'member')} without {missing_from(tables)}")
    for name, count in ((".eh_frame", sizes.eh_frame), (".eh_frame_hdr", sizes.eh_frame_hdr)):
        click.echo(_row(name, count, sizes))
    if sizes.debug_frame:
        click.echo(_row(".debug_frame", sizes.debug_frame, sizes))
    if sizes.orc:
        click.echo(_row(".orc_unwind and .orc_unwind_ip", sizes.orc, sizes))
    _print_described(sizes)
    if sizes.sframe is not None:
        click.echo()
        _print_existing(sizes, sizes.sframe)
    for version, one in sizes.versions.items():
        click.echo()
        _print_version(sizes, version, one)
    for version, why in sizes.impossible.items():
        click.echo(
            f"\n  SFrame version {version} cannot be made{' for some' if version in sizes.versions else ''}: {why}"
        )
    if sizes.replacement is not None:
        click.echo()
        _print_replacement(sizes, sizes.replacement, sizes.versions[3])


def _print_described(sizes: Sizes) -> None:
    """What the kinds of tables describe, if there are others than call frame information."""
    if set(sizes.described) - {"cfi"}:
        for kind, its in sizes.described.items():
            size = counted(its.code_bytes, "byte")
            click.echo(f"  described by {WORDS[kind]}: {counted(its.functions, 'function')}, {size} of code")


def _row(title: str, count: int, sizes: Sizes) -> str:
    """A number of bytes, and what share of the text and of the file that is."""
    shares = [
        f"{100 * count / whole:.2f} % of {name}"
        for name, whole in (("text", sizes.text_bytes), ("file", sizes.file_bytes))
        if whole
    ]
    return f"  {title:<34}{count:>11}  {', '.join(shares)}"


def _print_parts(parts: Parts) -> None:
    from dataclasses import asdict

    for name, count in asdict(parts).items():
        if count or name in {"header", "index"}:
            click.echo(f"    {_PART_WORDS[name]:<32}{count:>11}  {_ratio(count, parts.total)}")


def _print_existing(sizes: Sizes, found: ExistingSize) -> None:
    versions = " and ".join(str(one) for one in found.versions)
    title = f".sframe{f' (version {versions})' if versions else ''}"
    click.echo(_row(title, found.parts.total, sizes))
    click.echo(f"    {counted(found.functions, 'function')}, {counted(found.rows, 'row')}")
    _print_parts(found.parts)


def _print_version(sizes: Sizes, version: int, found: VersionSize) -> None:
    size = found.parts.total
    click.echo(_row(f"SFrame version {version} would take", size, sizes))
    ratio = _against(sizes, version)
    against = f", {ratio} of .eh_frame and .eh_frame_hdr" if ratio else ""
    functions = f"{found.covered} of {counted(found.functions, 'function')}"
    click.echo(f"    {functions}, {counted(found.rows, 'row')}{against}")
    _print_parts(found.parts)
    if found.what_if:
        click.echo("    what if:")
    for name, words in _WHAT_IF_WORDS.items():
        if name in found.what_if:
            click.echo(f"      {words:<30}{found.what_if[name]:>11}  {_ratio(found.what_if[name], size)}")


def _print_replacement(sizes: Sizes, found: Replacement, version: VersionSize) -> None:
    """What a full replacement carries besides."""
    click.echo("  to replace .eh_frame, version 3 would also carry:")
    personality = counted(found.personality_functions, "function")
    exceptions = f"{personality} with a personality, {found.lsda_functions} with an LSDA"
    functions, rows = counted(found.register_functions, "function"), counted(found.register_rows, "row")
    registers = f"{functions} and {rows} with other registers"
    for title, count, words in (
        ("exceptions", found.exception_bytes, exceptions),
        ("rows that are added", found.added_row_bytes, counted(found.added_rows, "row")),
        ("registers in the rows", found.register_bytes, registers),
        ("  or in numbered sets", found.numbered_bytes, counted(found.sets, "set")),
    ):
        click.echo(f"    {title:<32}{count:>11}  {words}")
    both = sizes.compared.get(3)
    for title, count, compared in (
        ("all together", found.total, both.replacement if both else 0),
        ("  with numbered sets", found.numbered_total, both.numbered if both else 0),
    ):
        whole = count + version.parts.total
        against = ""
        if both is not None:
            against = f"  {_ratio(compared + both.bytes, both.call_frames)} of .eh_frame and .eh_frame_hdr"
        click.echo(f"    {title:<32}{whole:>11}{against}")
