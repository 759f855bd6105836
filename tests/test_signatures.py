"""Signatures and calls in the documents fit the source, and wrong arguments are errors of walkback."""

from __future__ import annotations

import ast
import inspect
import io
import pydoc
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import walkback
from recorded import core, hello, recording
from sframefiles import linked, small, written
from walkback.elf import FileSearch as Search

PACKAGE: Any = walkback
"""For what its types forbid."""

DOCS = Path(__file__).resolve().parents[1] / "docs"


def calls(*documents: Path) -> list[tuple[str, str]]:
    """What stands as a call in the text of documents, outside of examples: its name and its arguments."""
    text = "\n".join(path.read_text() for path in documents)
    return re.findall(r"`((?:\w+\.)*\w+)\(([^`]*)\)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


CALLS = calls(*sorted(set(DOCS.glob("**/*.md")) - {DOCS / "reference" / "library.md"}))
OBJECTS = {
    "append": "store.append.Append",
    "builder": "sframe.SectionBuilder",
    "functions": "gopclntab.FunctionTable",
    "images": "cif.ImageMap",
    "lines": "gopclntab.lines.GoLines",
    "rule": "Rule",
    "selection": "store.Selection",
    "source": "sframe.Source",
    "survey": "Survey",
    "store": "Store",
    "table": "UnwindTable",
}
"""What documents call an object, and its class."""


def resolved(name: str) -> Any:
    """What the document means by a name; an object goes before the package of the same name."""
    first, *rest = name.split(".")
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


class Simple:
    """Simple arguments, most of them as they should be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.builder = walkback.sframe.SectionBuilder("AMD64")
        self.table = self.builder.table()
        self.file = written(folder, linked(small().bytes()))
        self.recorded = written(folder, recording(hello(folder)), "perf.data")
        self.dumped = written(folder, core(hello(folder)), "core")
        self.elf = walkback.ElfFile(self.file)
        self.images = walkback.cif.ImageMap(64, "", ())
        self.store = walkback.Store(folder / "store", create=True)


WRONG: dict[str, Callable[[Simple], object]] = {
    "machine-of-builder": lambda its: walkback.sframe.SectionBuilder("x86_64"),
    "row-of-function": lambda its: its.builder.function(0, 1, ["hello"]),
    "start-of-function": lambda its: its.builder.function(-1, 1, []),
    "key-of-function": lambda its: its.builder.function(0, 1, [], pauth_key="C"),
    "rule-text": lambda its: walkback.Rule.parse("hello", its.builder.machine),
    "part-text": lambda its: walkback.table.Part.parse("what?", its.builder.machine),
    "version-to-build": lambda its: walkback.sframe.build(its.table, version=9),
    "byte-order-to-build": lambda its: PACKAGE.sframe.build(its.table, byteorder="middle"),
    "version-to-refuse": lambda its: walkback.sframe.refusals(its.table, 9),
    "consumer-to-check": lambda its: list(walkback.check(its.file, consumer="nobody")),
    "code-to-ignore": lambda its: list(walkback.check(its.file, ignore=["nothing"])),
    "consumer-to-add": lambda its: walkback.add(its.file, consumer="nobody"),
    "version-to-add": lambda its: walkback.add(its.file, version=9),
    "version-to-convert": lambda its: walkback.convert(its.file, version=9),
    "view-to-link": lambda its: walkback.link([its.file], its.folder / "out", view="sideways"),
    "nothing-to-link": lambda its: walkback.link([], its.folder / "out"),
    "address-to-link-below-0": lambda its: walkback.link([its.file], its.folder / "out", address=-5),
    "address-to-link-of-65-bits": lambda its: walkback.link([its.file], its.folder / "out", address=2**64),
    "address-to-build": lambda its: walkback.sframe.build(its.table, address=-5),
    "address-to-derive": lambda its: walkback.derive(its.elf, address=2**70),
    "style-to-encode": lambda its: walkback.cbf.encode([(1, 1)], style="long"),
    "word-to-encode": lambda its: walkback.cbf.encode([(1, 1)], word=8),
    "empty-backtrace": lambda its: walkback.cbf.decode(b""),
    "offsets-of-backtraces": lambda its: PACKAGE.cbf.decode_all(b"\0", [0, 9]),
    "empty-image-map": lambda its: walkback.cif.decode(b""),
    "style-of-image-map": lambda its: PACKAGE.cif.encode(its.images, style="long"),
    "ends-of-backtrace": lambda its: walkback.cbf.Ends(-1, 1),
    "sql": lambda its: its.store.sql("selec"),
    "time-to-select": lambda its: its.store.select(since="yesterday"),
    "time-to-expire": lambda its: its.store.expire("yesterday"),
    "missing-store": lambda its: walkback.Store(its.folder / "none"),
    "process-below-0": lambda its: walkback.stack(-1),
    "process-of-41-bits": lambda its: walkback.stack(2**40),
    "file-that-is-no-core": lambda its: walkback.stack(__file__),
    "file-that-is-no-recording": lambda its: walkback.unwind(__file__),
    "no-stack-to-walk": lambda its: walkback.unwind(__file__, max_stack=0),
    "way-to-judge": lambda its: walkback.capture.accuracy(its.recorded, ["guess"]),
    "way-to-unwind": lambda its: PACKAGE.unwind(its.recorded, only="guess"),
    "process-of-images": lambda its: walkback.capture.images(-1),
    "core-of-images": lambda its: walkback.capture.images(__file__),
    "json-of-image-map": lambda its: walkback.cif.from_json([]),
    "folder-to-size": lambda its: walkback.size(its.folder),
    "section-to-compare": lambda its: list(walkback.compare(its.file, section="nothing")),
    "machine-that-is-none": lambda its: walkback.Rule.parse("CFA = sp", "Z80"),
    "byte-order-of-frames": lambda its: PACKAGE.dwarf.decode(b"", "AMD64", byteorder="middle"),
    "address-of-frames": lambda its: walkback.dwarf.decode(b"", "AMD64", address=-1),
    "one-rule-to-ignore": lambda its: list(walkback.check(its.elf, ignore="nothing")),
    "one-method": lambda its: walkback.capture.accuracy(its.folder / "perf.data", "nothing"),
    "limit-of-frames": lambda its: walkback.cbf.to_json(walkback.cbf.decode(b""), limit=-1),
    "open-file-as-list": lambda its: walkback.link(io.BytesIO(b"x"), its.folder / "out"),
    "path-of-nothing": lambda its: walkback.ElfFile(""),
    "text-as-version": lambda its: PACKAGE.convert(its.elf, version="2"),
    "limit-of-findings": lambda its: list(walkback.check(its.elf, limit=-1)),
    "version-to-derive": lambda its: walkback.derive(its.elf, version=9),
    "version-to-fix": lambda its: walkback.fix(its.file, version=9),
    "linked-file-to-split": lambda its: walkback.split(its.file),
    "linked-file-to-link": lambda its: walkback.link([its.file], its.file, relocatable=True),
    "file-to-find-in": lambda its: list(walkback.find(__file__, "main")),
    "name-with-a-nul": lambda its: list(walkback.sframe.read("nul\0")),
    "missing-file": lambda its: walkback.ElfFile(its.folder / "none"),
    "no-workers": lambda its: walkback.workers.LocalWorkers(0),
    "nothing-to-survey": lambda its: walkback.survey([], its.folder / "survey"),
    "text-to-survey": lambda its: walkback.survey("/usr/lib", its.folder / "survey"),
    "file-as-survey": lambda its: walkback.survey([its.file], its.recorded),
    "file-as-store": lambda its: walkback.Store(its.recorded, create=True),
    "missing-sysroot-to-unwind": lambda its: walkback.unwind(its.recorded, search=Search(sysroot=its.folder / "none")),
    "file-as-folder-of-build-ids": lambda its: walkback.unwind(its.recorded, search=Search(buildid_dir=its.recorded)),
    "missing-sysroot-of-stack": lambda its: walkback.stack(its.dumped, search=Search(sysroot=its.folder / "none")),
    "sysroot-with-a-nul": lambda its: walkback.naming.locate_frames([], its.images, search=Search(sysroot="nul\0")),
    "file-to-report": lambda its: walkback.report(__file__, its.folder / "page"),
}
"""Calls with simple arguments that make no sense, by what is wrong."""


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_errors_of_walkback(call: Callable[[Simple], object], tmp_path: Path) -> None:
    simple = Simple(tmp_path)
    with pytest.raises(walkback.WalkbackError, match=r"^[^\n]+\Z"):
        call(simple)
