"""What is public: the names of each package, what importing costs, and that every name is documented and typed."""

from __future__ import annotations

import os
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

import walkback
from recorded import core, hello, recording
from reference.library import library

PACKAGE: Any = walkback

ROOT = Path(__file__).resolve().parents[1]
NAMESPACES = sorted(path.parent.name for path in Path(walkback.__path__[0]).glob("*/__init__.pyi"))
"""The packages of `walkback` that are public."""
NAMES = {"walkback": PACKAGE.__all__} | {f"walkback.{name}": getattr(walkback, name).__all__ for name in NAMESPACES}
"""The public names of each."""
MEANT = [f"{package}.{name}" for package, names in NAMES.items() for name in names if name not in NAMESPACES]


def test_there_are_few_public_names() -> None:
    assert len(PACKAGE.__all__) - len(NAMESPACES) <= 42
    assert set(NAMESPACES) == {name for name in PACKAGE.__all__ if isinstance(getattr(walkback, name), ModuleType)}
    for name in ("sframe", "cbf", "cif"):
        assert {"decode", "encode"} <= set(getattr(walkback, name).__all__)


def test_a_line_of_the_list_is_a_name() -> None:
    """What else stood there, type checkers would see and the import would not."""
    for path in Path(walkback.__path__[0]).glob("**/__init__.pyi"):
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        names = [line for line in lines if re.fullmatch(r"from walkback[\w.]* import (\w+) as \1", line)]
        assert [line for line in lines if line not in names] in ([], ["__version__: str"])
        assert names == sorted(set(names))


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'walkback' has no attribute 'frobnicate'"):
        PACKAGE.frobnicate  # noqa: B018
    for package, names in NAMES.items():
        assert sorted(names) == dir(import_module(package))


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """A module that is imported becomes an attribute of its package."""
    code = """
        import pkgutil, sys, types, walkback
        from importlib import import_module
        for module in pkgutil.walk_packages(walkback.__path__, "walkback."):
            if not module.name.endswith(("__main__", "symbols.cxa", "_memoryviews")):
                import_module(module.name)
        for name in sys.argv[1:]:
            package, _, name = name.rpartition(".")
            if isinstance(getattr(import_module(package), name), types.ModuleType):
                print(package, name)
    """
    command = [sys.executable, "-c", dedent(code), *MEANT]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_the_version_is_that_of_the_distribution() -> None:
    assert walkback.__version__ == version("walkback")


def test_everything_public_can_be_imported_at_once() -> None:
    names: dict[str, object] = {}
    for package, public in NAMES.items():
        exec(f"from {package} import *", names)
        assert set(public) <= set(names)


@pytest.mark.whole
def test_a_program_that_uses_public_names_passes_mypy(tmp_path: Path) -> None:
    """`make lint-scripts` has pyright look at it as well."""
    program = (ROOT / "tests" / "publicprogram.py").read_text() + "\nwalkback.nothing\n"
    (tmp_path / "program.py").write_text(program)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        tmp_path / "cache",
        tmp_path / "program.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert re.findall(r": (error.*)", done.stdout) == ['error: Module has no attribute "nothing"  [attr-defined]']


@pytest.mark.parametrize("package", NAMES)
def test_every_public_name_is_documented(package: str) -> None:
    found = re.findall(r"^:{3,4}\{py:\w+\} (\w+).*\n\n(.*)", library(package), re.MULTILINE)
    assert sorted(name for name, _ in found) == sorted(set(NAMES[package]) - {*NAMESPACES, "__version__"})
    assert [name for name, text in found if not text] == []


def test_the_page_of_the_library_names_what_there_is() -> None:
    text = (ROOT / "docs" / "reference" / "library.md").read_text()
    for target in re.findall(r"\]\(#(walkback[\w.]*)\)", text):
        assert pydoc.locate(target) is not None, target


def test_everything_says_what_it_is_in_a_line(tmp_path: Path) -> None:
    program = hello(tmp_path)
    (tmp_path / "perf.data").write_bytes(recording(program))
    (tmp_path / "core").write_bytes(core(program))
    walkback.add(program)
    elf = walkback.ElfFile(program)
    (source,) = walkback.sframe.read(program)
    (piece,) = source.pieces()
    (frames,) = walkback.dwarf.read(program)
    shot, profile = walkback.stack(tmp_path / "core"), walkback.unwind(tmp_path / "perf.data")
    images = walkback.capture.images(tmp_path / "core")
    backtraces = walkback.cbf.decode_all(walkback.cbf.encode([(1, 5)]))
    unwinding, stopper = walkback.capture.Unwinding(tmp_path / "perf.data"), walkback.capture.Stopper(tmp_path / "core")
    store = walkback.Store(tmp_path / "store", create=True)
    (pair,) = walkback.compare(program)
    for one in (
        elf, source, piece, piece.section, piece.section.functions, piece.section.shapes, piece.table,
        piece.table.machine, piece.table.find(elf.entry), frames, frames.frames, walkback.derive(elf),
        walkback.table.compare(frames.table, piece.table), *walkback.check(program), walkback.size(program), shot,
        shot.stacks, shot.snapshot, shot.snapshot.samples, profile, profile.frames, images, images.images, backtraces,
        walkback.sframe.build(piece.table), pair, pair.comparison, *walkback.find(program, "main"),
        walkback.add(program, tmp_path / "added"), walkback.convert(program, tmp_path / "converted", version=2),
        walkback.fix(program, tmp_path / "fixed"), walkback.sframe.SectionBuilder("AMD64"), walkback.cbf.Ends(3, 4),
        unwinding, unwinding.recording, unwinding.walker, unwinding.modules, walkback.capture.Collector(unwinding),
        stopper, stopper.target, store, store.overview(), store.select(), walkback.workers.LocalWorkers(2),
        walkback.naming.Locator(images.images), walkback.Process(os.getpid(), unwinding.modules),
    ):  # fmt: skip
        assert re.fullmatch(rf"{type(one).__name__}\(.{{1,300}}\)", repr(one)), repr(one)
    assert repr(walkback.ElfFile(program.read_bytes())).startswith("ElfFile('<bytes>', ")


def imported_by(code: str) -> set[str]:
    """The modules that the code loads."""
    code += "\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = imported_by("import walkback")
    assert not modules & {"numpy", "click", "Cython", "cython"}
    assert {name for name in modules if name.startswith("walkback")} == {
        "walkback",
        "walkback.base",
        "walkback.base.publicnames",
    }
    assert "numpy" in imported_by("import walkback; walkback.sframe.decode")


def test_help_loads_no_numpy() -> None:
    for args in (["--help"], ["show", "--help"], ["check", "--help"], ["find", "--help"]):
        code = (
            "import contextlib, io\nfrom walkback.cli.main import cli\n"
            f"with contextlib.redirect_stdout(io.StringIO()):\n    cli({args}, standalone_mode=False)"
        )
        assert "numpy" not in imported_by(code)


@pytest.mark.parametrize(
    "call", ["walkback.derive({0!r}, tables='cfi')", "walkback.size({0!r})", "list(walkback.compare({0!r}))"]
)
def test_a_file_with_call_frame_information_loads_no_other_reader(call: str, tmp_path: Path) -> None:
    path = hello(tmp_path)
    walkback.add(path)
    modules = imported_by(f"import walkback\n{call.format(str(path))}")
    assert "walkback.dwarf.decoding" in modules
    assert not [name for name in modules if re.match(r"walkback\.(proof|gopclntab|orc|code)\b", name)]


def test_a_proof_loads_no_cython(tmp_path: Path) -> None:
    assert not imported_by(f"import walkback\nlist(walkback.verify({str(hello(tmp_path))!r}))") & {"Cython", "cython"}


def test_a_process_without_interpreters_loads_none_of_their_readers() -> None:
    with subprocess.Popen(["sleep", "100"]) as waiting:
        try:
            modules = imported_by(f"import walkback\nwalkback.stack({waiting.pid})")
        finally:
            waiting.kill()
    others = r"walkback\.(jitdump\.(?!layout)|runtimes\.(lua|python)\.(?!finding))"
    assert "walkback.runtimes.interpreters" in modules
    assert not [name for name in modules if re.match(others, name)]


def test_the_package_is_typed() -> None:
    package = Path(walkback.__file__).parent
    assert (package / "py.typed").exists()
    kernels = re.findall(r'"(walkback\.[\w.]+)"', (ROOT / "setup.py").read_text().partition(")")[0])
    assert kernels
    for kernel in kernels:
        assert (package.parent / (kernel.replace(".", "/") + ".pyi")).exists()


def test_walking_a_process_loads_nothing_that_it_does_not_need() -> None:
    """`numpy.unique` would load masked arrays, and a face that plain Python imports would load Cython."""
    lines = ("p = subprocess.Popen(['sleep', '60'])", "try: walkback.stack(p.pid)", "finally: p.kill(), p.wait()")
    modules = imported_by("\n".join(("import subprocess, walkback", *lines)))
    assert "walkback.capture.stacks" in modules
    assert not modules & {"numpy.ma", "Cython", "duckdb", "click"}
