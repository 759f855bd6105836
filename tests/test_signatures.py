"""Signatures and calls in the documents fit the source, and wrong arguments are errors of walkback."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import walkback
from recorded import core, hello, recording
from sframefiles import linked, small, written

PACKAGE: Any = walkback

DOCS = Path(__file__).resolve().parents[1] / "docs"


def calls(*documents: Path) -> list[tuple[str, str]]:
    """What stands as a call in the text of documents, outside of examples: its name and its arguments."""
    text = "\n".join(path.read_text() for path in documents)
    return re.findall(r"`((?:\w+\.)*\w+)\(([^`]*)\)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


SIGNATURES = calls(DOCS / "api.md")
CALLS = calls(*sorted(set(DOCS.glob("*.md")) - {DOCS / "api.md"}))
OBJECTS = {
    "append": "store.append.Append",
    "builder": "sframe.SectionBuilder",
    "images": "cif.ImageMap",
    "rule": "Rule",
    "selection": "store.Selection",
    "source": "sframe.Source",
    "survey": "Survey",
    "store": "Store",
    "table": "UnwindTable",
}
"""What the document calls an object, and its class."""
METHODS = {
    "batches": "Recording",
    "code_bytes": "table.comparing.Comparison",
    "columns": "UnwindTable",
    "labels": "capture.stacks.ThreadStacks",
    "ranges": "table.comparing.Comparison",
    "stretches": "table.comparing.Comparison",
    "proof": "sections.derive.Derived",
    "relocations": "sections.derive.Derived",
    "sample": "Process",
    "shoot": "capture.Stopper",
    "through": "store.Selection",
    "top": "store.Selection",
    "walk": "Walker",
}
"""The classes of methods that the document names alone."""
GIVEN = {"elf_of", "read", "str", "pandas.DataFrame.from_arrow", "polars.DataFrame", "pyarrow.table"}
"""Functions that the caller brings, and Python's and others' own."""


def resolved(name: str) -> Any:
    """What the document means by a name; an object goes before the package of the same name."""
    first, *rest = name.split(".")
    if not rest and first in METHODS:
        return member(f"{METHODS[first]}.{first}")
    if rest and first in OBJECTS and hasattr(member(OBJECTS[first]), rest[0]):
        return member(".".join([OBJECTS[first], *rest]))
    return member(name)


def member(name: str) -> Any:
    """What has this name in the package, its subpackages and their classes."""
    found: Any = walkback
    for part in name.split("."):
        if not isinstance(found, ModuleType):
            found = inspect.getattr_static(found, part)
        elif hasattr(found, part):
            found = getattr(found, part)
        else:
            found = import_module(f"{found.__name__}.{part}")
    return found


def documented(arguments: str) -> tuple[list[inspect.Parameter], bool]:
    """The parameters in a text, and whether there are more of them."""
    text = " ".join(arguments.split())
    more = text.endswith("...") and not text.endswith("=...")
    head = text.removesuffix("...").rstrip(", ") if more else text
    (function,) = ast.parse(f"def f({head}): ...").body
    assert isinstance(function, ast.FunctionDef)
    args = function.args
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
def test_signatures_in_the_document_are_those_of_the_source(name: str, arguments: str) -> None:
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


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_calls_in_other_documents_have_arguments_that_the_source_takes(name: str, arguments: str) -> None:
    first = name.partition(".")[0]
    if first not in {"walkback", *OBJECTS, *PACKAGE.__all__}:
        return
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    found: Any = pydoc.locate(name) if first == "walkback" else resolved(name)
    signature = inspect.signature(found)
    own = [None] * ("self" in signature.parameters)
    signature.bind(*own, *call.args, **{str(one.arg): one.value for one in call.keywords})


def wrong_calls(folder: Path) -> list[Any]:
    """Calls with simple arguments that make no sense."""
    machine = walkback.sframe.SectionBuilder("AMD64").machine
    table = walkback.sframe.SectionBuilder("AMD64").table()
    file = written(folder, linked(small().bytes()))
    store = walkback.Store(folder / "store", create=True)
    recorded = folder / "perf.data"
    recorded.write_bytes(recording(hello(folder)))
    dumped = folder / "core"
    dumped.write_bytes(core(hello(folder)))
    middle: Any = "middle"
    long: Any = "long"
    guess: Any = "guess"
    offsets: Any = [0, 9]
    return [
        lambda: walkback.sframe.SectionBuilder("x86_64"),
        lambda: walkback.sframe.SectionBuilder("AMD64").function(0, 1, ["hello"]),
        lambda: walkback.sframe.SectionBuilder("AMD64").function(-1, 1, []),
        lambda: walkback.sframe.SectionBuilder("AMD64").function(0, 1, [], pauth_key="C"),
        lambda: walkback.Rule.parse("hello", machine),
        lambda: walkback.table.Part.parse("what?", machine),
        lambda: walkback.sframe.build(table, version=9),
        lambda: walkback.sframe.build(table, byteorder=middle),
        lambda: walkback.sframe.refusals(table, 9),
        lambda: list(walkback.check(file, consumer="nobody")),
        lambda: list(walkback.check(file, ignore=["nothing"])),
        lambda: walkback.add(file, consumer="nobody"),
        lambda: walkback.add(file, version=9),
        lambda: walkback.convert(file, version=9),
        lambda: walkback.link([file], folder / "out", view="sideways"),
        lambda: walkback.link([], folder / "out"),
        lambda: walkback.link([file], folder / "out", address=-5),
        lambda: walkback.link([file], folder / "out", address=2**64),
        lambda: walkback.sframe.build(table, address=-5),
        lambda: walkback.derive(walkback.ElfFile(file), address=2**70),
        lambda: walkback.cbf.encode([(1, 1)], style="long"),
        lambda: walkback.cbf.encode([(1, 1)], word=8),
        lambda: walkback.cbf.decode(b""),
        lambda: walkback.cbf.decode_all(b"\0", offsets),
        lambda: walkback.cif.decode(b""),
        lambda: walkback.cif.encode(walkback.cif.ImageMap(64, "", ()), style=long),
        lambda: walkback.cbf.Ends(-1, 1),
        lambda: store.sql("selec"),
        lambda: store.select(since="yesterday"),
        lambda: store.expire("yesterday"),
        lambda: walkback.Store(folder / "none"),
        lambda: walkback.stack(-1),
        lambda: walkback.stack(2**40),
        lambda: walkback.stack(__file__),
        lambda: walkback.unwind(__file__),
        lambda: walkback.unwind(__file__, max_stack=0),
        lambda: walkback.capture.accuracy(recorded, ["guess"]),
        lambda: walkback.unwind(recorded, only=guess),
        lambda: walkback.capture.images(-1),
        lambda: walkback.capture.images(__file__),
        lambda: walkback.cif.from_json("{"),
        lambda: walkback.size(folder),
        lambda: list(walkback.compare(file, section="nothing")),
        lambda: walkback.derive(walkback.ElfFile(file), version=9),
        lambda: walkback.fix(file, version=9),
        lambda: walkback.split(file),
        lambda: walkback.link([file], file, relocatable=True),
        lambda: list(walkback.find(__file__, "main")),
        lambda: list(walkback.sframe.read("nul\0")),
        lambda: walkback.ElfFile(folder / "none"),
        lambda: walkback.surveys.LocalWorkers(0),
        lambda: walkback.survey([], folder / "survey"),
        lambda: walkback.survey("/usr/lib", folder / "survey"),
        lambda: walkback.survey([file], recorded),
        lambda: walkback.Store(recorded, create=True),
        lambda: walkback.unwind(recorded, sysroot=folder / "none"),
        lambda: walkback.unwind(recorded, buildid_dir=recorded),
        lambda: walkback.stack(dumped, sysroot=folder / "none"),
        lambda: walkback.naming.locate_frames([], walkback.cif.ImageMap(64, "", ()), sysroot="nul\0"),
        lambda: walkback.report(__file__, folder / "page"),
    ]


@pytest.mark.parametrize("number", range(60))
def test_wrong_arguments_are_errors_of_walkback(number: int, tmp_path: Path) -> None:
    with pytest.raises(walkback.WalkbackError, match=r"^[^\n]+\Z"):
        wrong_calls(tmp_path)[number]()
