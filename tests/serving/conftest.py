"""A store of samples of many kinds, and a server of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from serving.served import Served


# Late imports: with --interpreted nothing of the package may be imported before the tests are.
@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours of two hosts, three processes and two versions."""
    from serving.madestore import fill

    folder = tmp_path_factory.mktemp("serving") / "stacks"
    fill(folder, random.Random(7), 300)
    return folder


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Served]:
    from serving.served import served

    with served(store, "--port", "0") as one:
        yield one
