"""What `walkback verify --explain` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from walkback.sections.explain import Explained, Explanation
    from walkback.sections.verified import Verified


def print_explained(file: str, table: str | None, wanted: str, limit: int, *, as_json: bool) -> int:
    """Print the instructions of a function, from each table: all of them as JSON, else at most `limit`."""
    from walkback.proof.values import Verdict
    from walkback.sections.verify import explained

    status = EXIT_FINE
    for verified, explanation in explained(file, wanted, table=table):
        if as_json:
            for one in explanation.instructions():
                click.echo(json.dumps(_object(verified, one)))
        else:
            click.echo(printable(f"{verified.file}: {verified.table}: {wanted}"))
            _print(explanation, limit)
        if explanation.counts.get(Verdict.WRONG):
            status = EXIT_FINDINGS
    return status


class _Line(NamedTuple):
    place: str
    verdict: str
    text: str
    rule: str
    state: str


_HEADINGS = _Line("address", "verdict", "instruction", "the table has", "the code has")


def _print(explanation: Explanation, limit: int) -> None:
    from walkback.proof.values import Verdict

    counts = explanation.counts
    lines = [_HEADINGS, *_lines(explanation.instructions(limit))]
    *widths, _ = (max(map(len, column)) for column in zip(*lines, strict=True))
    for line in lines if len(lines) > 1 else ():
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        click.echo(f"  {'  '.join([*padded, line.state])}".rstrip())
    more = sum(counts.values()) - len(lines) + 1
    if more:
        wrong = f"; {counts[Verdict.WRONG]} of all are wrong" if counts.get(Verdict.WRONG) else ""
        click.echo(f"  and {counted(more, 'more instruction')}{wrong}")


def _lines(instructions: Iterable[Explained]) -> Iterable[_Line]:
    """What the table and the code have stands where it changed, and in full where the verdict did, unless proved."""
    from walkback.proof.values import Verdict
    from walkback.sections.explain import listed

    rules: Mapping[str, str] | None = None
    state: Mapping[str, str] | None = None
    last = "proved"
    for one in instructions:
        verdict = _verdict(one)
        if verdict != last and one.verdict is not Verdict.PROVED:
            rules = state = None
        last = verdict
        place = f"{one.section}+{one.address:#x}" if one.section else f"{one.address:#x}"
        has = listed(one.state, state) if one.state else one.computed if state is None else ""
        yield _Line(*map(printable, (place, verdict, one.text, listed(one.rules, rules), has)))
        rules, state = one.rules, one.state


def _verdict(one: Explained) -> str:
    word = one.verdict.name.lower()
    cause = one.what or (one.why.word if one.why is not None else None)
    return f"{word}: {cause}" if cause else word


class InstructionObject(TypedDict):
    """An instruction, as JSON."""

    type: Literal["instruction"]
    """The type of the object."""
    file: str
    """The file."""
    table: str
    """The section of the table."""
    section: str | None
    """In an object, the section of the code."""
    address: int
    """The address; in an object, the offset in its section."""
    code: str
    """The bytes of the instruction, in hexadecimal."""
    text: str
    """The instruction in assembly language."""
    verdict: str
    """`proved`, `wrong`, `assumed`, `unknown` or `not_reached`."""
    what: str | None
    """The value that the table has wrong."""
    why: str | None
    """The reason why it is not proved."""
    rule: str
    """The rule of the table in words, without registers that are unchanged."""
    computed: str
    """The state of the code in words, without registers that are unchanged."""
    rules: Mapping[str, str]
    """Where the CFA, the return address, the frame pointer and other registers are by the table."""
    state: Mapping[str, str]
    """Where they are by the code; empty if the proof does not know."""


def _object(verified: Verified, one: Explained) -> InstructionObject:
    return {
        "type": "instruction",
        "file": verified.file,
        "table": verified.table,
        "section": one.section,
        "address": one.address,
        "code": one.code.hex(),
        "text": one.text,
        "verdict": one.verdict.name.lower(),
        "what": one.what,
        "why": None if one.why is None else one.why.word,
        "rule": one.rule,
        "computed": one.computed,
        "rules": one.rules,
        "state": one.state,
    }
