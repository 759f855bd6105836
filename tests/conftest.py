"""Runs the kernels both ways: compiled, as every run does, and as plain Python with `--interpreted`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies

import selection
from effort import QUICK
from kernels import kernels

if TYPE_CHECKING:
    from browser import Browser, Page
    from workers.cluster import Cluster

KERNELS = kernels()


class SourceFinder(MetaPathFinder):
    """Finds the modules of walkback as .py files, and so passes over the compiled ones that stand beside them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("walkback.") or path is None:
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, [".py"])).find_spec(fullname)
            if spec is not None:
                return spec
        return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--interpreted", action="store_true", help="run the kernels as plain Python, and only the tests marked kernel"
    )


def pytest_configure(config: pytest.Config) -> None:
    selection.begin(config)
    # Debuggers and recorders that `make peers` brought do where the machine has none.
    if not QUICK:
        os.environ["PATH"] += f"{os.pathsep}{Path(__file__).resolve().parent.parent / '.peers' / 'bin'}"
    if not config.getoption("--interpreted"):
        return
    loaded = [name for name in KERNELS if name in sys.modules]
    if loaded:
        message = f"--interpreted comes too late: {', '.join(loaded)} is imported already"
        raise pytest.UsageError(message)
    sys.meta_path.insert(0, SourceFinder())


def pytest_sessionfinish(session: pytest.Session) -> None:
    selection.end(session.config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    selection.choose(config, items)
    asked = bool(config.getoption("--interpreted"))
    has = [item.get_closest_marker("kernel" if asked else "inside") is not None for item in items]
    config.hook.pytest_deselected(items=[item for item, marked in zip(items, has, strict=True) if marked != asked])
    items[:] = [item for item, marked in zip(items, has, strict=True) if marked == asked]


@settings(max_examples=1, database=None)
@given(strategies.none())
def begin_to_choose(_: None) -> None:
    """Let Hypothesis make its generator: it looks for what refers to that, and finds nothing among frozen objects."""


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through thousands of tests again and again."""
    begin_to_choose()
    gc.collect()
    gc.freeze()


def is_compiled(name: str) -> bool:
    """Whether a kernel is, or would be, loaded from a compiled module; found out without running it."""
    module = sys.modules.get(name)
    if module is not None:
        return not str(module.__file__).endswith(".py")
    # `find_spec` would import the parent package, before the tests' own imports had a chance to fail in their place.
    top = next((Path(folder) for folder in sys.path if (Path(folder or ".") / "walkback").is_dir()), None)
    if top is None:
        return False
    folder, _, leaf = str(top.joinpath(*name.split("."))).rpartition("/")
    spec = FileFinder(folder, *_loaders()).find_spec(leaf)
    return spec is not None and not str(spec.origin).endswith(".py")


def _loaders() -> Any:
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader

    return (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, [".py"])


def pytest_report_header(config: pytest.Config) -> str:
    if config.getoption("--interpreted"):
        return "walkback kernels: interpreted"
    plain = [name for name in KERNELS if not is_compiled(name)]
    return "walkback kernels: compiled" + (f", but interpreted: {', '.join(plain)}" if plain else "")


@pytest.fixture(scope="session")
def interpreted(request: pytest.FixtureRequest) -> bool:
    """Whether the kernels run as plain Python: then a test may do less of the same."""
    asked: bool = request.config.getoption("--interpreted")
    return asked


@pytest.fixture(scope="session", autouse=True)
def kernels_run_as_asked(request: pytest.FixtureRequest) -> None:
    """In both runs the kernels are loaded from where they should be; WALKBACK_COMPILED=required allows no fallback."""
    from importlib import import_module

    if request.config.getoption("--interpreted"):
        wrong = [name for name in KERNELS if str(import_module(name).__file__).endswith(".so")]
        assert not wrong, f"compiled although interpreted was asked for: {wrong}"
    elif os.environ.get("WALKBACK_COMPILED") == "required":
        wrong = [name for name in KERNELS if str(import_module(name).__file__).endswith(".py")]
        assert not wrong, f"not compiled: {wrong}"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT interrupts the children that a test starts, also where a shell in the background had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from browser import Browser

    with Browser() as one:
        yield one


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser; one that complains, or loads anything, fails its test."""
    one = browser.page()
    yield one
    one.settle()
    one.close()
    assert one.errors == []
    assert one.requests == []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers of Dask."""
    pytest.importorskip("distributed")
    from workers.cluster import Cluster

    one = Cluster(tmp_path_factory.mktemp("cluster"), 2)
    yield one
    one.close()
