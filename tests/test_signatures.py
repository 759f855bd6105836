"""The signatures in docs/api.md are those of the source, and wrong arguments are errors of walkback."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import walkback
from recorded import hello, recording
from test_files import linked, small, written

API = (Path(__file__).resolve().parents[1] / "docs" / "api.md").read_text()
TEXT = re.sub(r"^```.*?^```", "", API, flags=re.MULTILINE | re.DOTALL)
SIGNATURES = re.findall(r"`((?:\w+\.)*\w+)\(([^`]*)\)`", TEXT)
OBJECTS = {
    "append": "store.append.Append",
    "builder": "SectionBuilder",
    "images": "ImageMap",
    "report": "Report",
    "rule": "Rule",
    "selection": "Selection",
    "shot": "Shot",
    "source": "Source",
    "store": "Store",
    "table": "UnwindTable",
}
"""What the document calls an object, and its class."""
METHODS = {
    "batches": "Recording",
    "code_bytes": "Comparison",
    "ranges": "Comparison",
    "stretches": "Comparison",
    "proof": "Derived",
    "relocations": "Derived",
    "sample": "Process",
    "shoot": "Stopper",
    "through": "Selection",
    "top": "Selection",
    "walk": "Walker",
}
"""The classes of methods that the document names alone."""
GIVEN = {"elf_of", "read", "str"}
"""Functions that the caller brings, and Python's own."""


def resolved(name: str) -> Any:
    first, *rest = name.split(".")
    if not rest and first in METHODS:
        first, rest = METHODS[first], [first]
    home, _, leaf = OBJECTS.get(first, first).rpartition(".")
    found = getattr(import_module(f"walkback.{home}") if home else walkback, leaf)
    for one in rest:
        found = inspect.getattr_static(found, one)
    return found


def documented(arguments: str) -> tuple[list[inspect.Parameter], bool]:
    """The parameters in a text, and whether there are more of them."""
    text = " ".join(arguments.split())
    more = text.endswith("...") and not text.endswith("=...")
    head = text.removesuffix("...").rstrip(", ") if more else text
    args = ast.parse(f"def f({head}): ...").body[0].args
    parameters = []
    defaults = [inspect.Parameter.empty] * (len(args.args) - len(args.defaults)) + args.defaults
    for kind, names, values in (
        (inspect.Parameter.POSITIONAL_OR_KEYWORD, args.args, defaults),
        (inspect.Parameter.VAR_POSITIONAL, [args.vararg] if args.vararg else [], [inspect.Parameter.empty]),
        (inspect.Parameter.KEYWORD_ONLY, args.kwonlyargs, args.kw_defaults),
    ):
        for one, value in zip(names, values, strict=False):
            default = ast.literal_eval(value) if isinstance(value, ast.expr) else inspect.Parameter.empty
            parameters.append(inspect.Parameter(one.arg, kind, default=default))
    return parameters, more


def told(parameter: inspect.Parameter, other: inspect.Parameter) -> tuple[object, ...]:
    """What a document says of a parameter; for a default that is no literal it writes `...`."""
    open_default = other.default is ... and parameter.default is not inspect.Parameter.empty
    return parameter.name, parameter.kind, ... if open_default else parameter.default


@pytest.mark.parametrize(("name", "arguments"), SIGNATURES)
def test_signatures_in_the_document_are_those_of_the_source(name, arguments):
    if name in GIVEN:
        return
    found = resolved(name)
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    bound = [one for one in inspect.signature(found).parameters.values() if one.name not in {"self", "cls"}]
    expected, more = documented(arguments)
    if more:
        assert len(bound) > len(expected)
        bound = bound[: len(expected)]
    assert [told(one, two) for one, two in zip(bound, expected, strict=False)] == [told(one, one) for one in expected]
    assert len(bound) == len(expected), [one.name for one in bound]


def wrong_calls(folder: Path) -> list[Any]:
    """Calls with simple arguments that make no sense."""
    machine = walkback.SectionBuilder("AMD64").machine
    table = walkback.SectionBuilder("AMD64").table()
    file = written(folder, linked(small().bytes()))
    store = walkback.Store(folder / "store", create=True)
    recorded = folder / "perf.data"
    recorded.write_bytes(recording(hello(folder)))
    return [
        lambda: walkback.SectionBuilder("x86_64"),
        lambda: walkback.SectionBuilder("AMD64").function(0, 1, ["hello"]),
        lambda: walkback.SectionBuilder("AMD64").function(-1, 1, []),
        lambda: walkback.SectionBuilder("AMD64").function(0, 1, [], pauth_key="C"),
        lambda: walkback.Rule.parse("hello", machine),
        lambda: walkback.Part.parse("what?", machine),
        lambda: walkback.build(table, version=9),
        lambda: walkback.build(table, byteorder="middle"),
        lambda: walkback.refusals(table, 9),
        lambda: list(walkback.check(file, consumer="nobody")),
        lambda: list(walkback.check(file, ignored=["nothing"])),
        lambda: walkback.add(file, consumer="nobody"),
        lambda: walkback.add(file, version=9),
        lambda: walkback.convert(file, version=9),
        lambda: walkback.link([file], folder / "out", view="sideways"),
        lambda: walkback.link([], folder / "out"),
        lambda: walkback.link([file], folder / "out", address=-5),
        lambda: walkback.link([file], folder / "out", address=2**64),
        lambda: walkback.build(table, address=-5),
        lambda: walkback.derive(walkback.ElfFile.open(file), address=2**70),
        lambda: walkback.encode_backtrace([(1, 1)], style="long"),
        lambda: walkback.encode_backtrace([(1, 1)], word=8),
        lambda: walkback.decode_backtrace(b""),
        lambda: walkback.decode_backtraces(b"\0", [0, 9]),
        lambda: walkback.decode_images(b""),
        lambda: walkback.encode_images(walkback.ImageMap(64, "", ()), style="long"),
        lambda: walkback.Ends(-1, 1),
        lambda: store.sql("selec"),
        lambda: store.select(since="yesterday"),
        lambda: store.expire("yesterday"),
        lambda: walkback.Store(folder / "none"),
        lambda: walkback.stacks_of_process(-1),
        lambda: walkback.stacks_of_process(2**40),
        lambda: walkback.stacks_of_core(__file__),
        lambda: walkback.profile(__file__),
        lambda: walkback.profile(__file__, limit=0),
        lambda: walkback.accuracy(recorded, ["guess"]),
        lambda: walkback.profile(recorded, only="guess"),
        lambda: walkback.images_of_process(-1),
        lambda: walkback.images_of_recording(__file__),
        lambda: walkback.images_from_json("{"),
        lambda: walkback.measure(folder),
        lambda: list(walkback.pairs(file, section="nothing")),
        lambda: walkback.derive(walkback.ElfFile.open(file), version=9),
        lambda: walkback.fix(file, version=9),
        lambda: walkback.split(file),
        lambda: walkback.link_object(file),
        lambda: list(walkback.lookup(__file__, "main")),
        lambda: list(walkback.sources("nul\0")),
        lambda: walkback.ElfFile.open(folder / "none"),
        lambda: walkback.LocalWorkers(0),
        lambda: walkback.survey_files([], folder / "survey"),
        lambda: walkback.write_binary_page(__file__, folder / "page"),
    ]


@pytest.mark.parametrize("number", range(53))
def test_wrong_arguments_are_errors_of_walkback(number, tmp_path):
    with pytest.raises(walkback.WalkbackError, match=r"^[^\n]+\Z"):
        wrong_calls(tmp_path)[number]()
