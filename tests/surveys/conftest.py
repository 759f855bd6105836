"""What the tests of surveys share."""

from __future__ import annotations

from pathlib import Path

import pytest


# Late imports: with --interpreted nothing of the package may be imported before the tests are.
@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from surveys.surveyed import some_files, write

    return write(tmp_path_factory.mktemp("files"), some_files())


@pytest.fixture(scope="module")
def whole(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of these, to be compared with."""
    from walkback.surveys.run import survey

    output = tmp_path_factory.mktemp("whole") / "survey"
    survey([files], output, jobs=2)
    return output
