"""What `walkback verify --explain` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from walkback.base.errors import MissingError
from walkback.base.text import printable
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE

if TYPE_CHECKING:
    from walkback.proof.values import Why
    from walkback.sections.explain import Explained
    from walkback.sections.verify import Verified


def print_explained(file: str, table: str | None, wanted: str, *, as_json: bool) -> int:
    """Print each instruction of a function, from each table."""
    from walkback.sections.verify import verify

    status, found = EXIT_FINE, False
    for verified in verify(file, table=table):
        for place in verified.places_of(wanted):
            found = True
            status = max(status, _print_function(verified, place, wanted, as_json=as_json))
    if not found:
        raise MissingError(f"no table describes code at {wanted}", file=file)
    return status


def _print_function(verified: Verified, place: int, wanted: str, *, as_json: bool) -> int:
    from walkback.code.disassembly import instruction_texts
    from walkback.proof.values import Verdict

    explained = list(verified.explain(place))
    texts = instruction_texts(verified.proof.machine, [(one.address, one.code) for one in explained])
    if not as_json:
        click.echo(printable(f"{verified.file}: {verified.table}: {wanted}"))
    rule = None
    for one, plain in zip(explained, texts, strict=True):
        text = _with_target(one, plain)
        if as_json:
            click.echo(json.dumps(_object(verified, one, text)))
        else:
            _print(one, text, one.rule if one.rule != rule else "")
        rule = one.rule
    return EXIT_FINDINGS if any(one.verdict is Verdict.WRONG for one in explained) else EXIT_FINE


def _with_target(one: Explained, text: str) -> str:
    """The text with the name of what is called; in an object only that, because the linker gives the address."""
    from walkback.symbols.demangle import demangle

    if one.target is None or one.target_name is None:
        return text
    name = demangle([one.target_name], parameters=False)[0]
    if text == one.code.hex(" "):
        return f"{text} <{name}>"
    operation, space, operands = text.rpartition(" ")
    return f"{operation}{space}{f'{operands} ' if one.section is None else ''}<{name}>"


def _print(one: Explained, text: str, rule: str) -> None:
    place = f"{one.section}+{one.address:#x}" if one.section else f"{one.address:#x}"
    click.echo(printable(f"  {place}  {one.verdict.name.lower():<8} {text:<36} {rule}".rstrip()))
    if one.computed != one.rule or one.what or one.why:
        doubt = f"wrong {one.what}; " if one.what else f"{_word(one.why)}; " if one.why else ""
        click.echo(printable(f"    {doubt}the code has {one.computed}"))


def _word(why: Why) -> str:
    return why.name.lower().replace("_", "-")


def _object(verified: Verified, one: Explained, text: str) -> dict[str, object]:
    return {
        "type": "instruction",
        "file": verified.file,
        "table": verified.table,
        "section": one.section,
        "address": one.address,
        "code": one.code.hex(),
        "text": text,
        "verdict": one.verdict.name.lower(),
        "what": one.what,
        "why": None if one.why is None else _word(one.why),
        "rule": one.rule,
        "computed": one.computed,
    }
