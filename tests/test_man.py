"""The man pages that `make man` writes: one for each verb, with all its options, and nothing that troff warns of."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from walkback.cli.main import HEADINGS, cli

TOOL = Path(__file__).resolve().parents[1] / "tools" / "man.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, TOOL, folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("verb", [verb for verbs in HEADINGS.values() for verb in verbs])
def test_every_verb_has_a_page_that_names_its_options(folder: Path, verb: str) -> None:
    text = (folder / f"walkback-{verb}.1").read_text()
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    for option in (option for parameter in command.params for option in parameter.opts if option.startswith("-")):
        assert option.replace("-", "\\-") in text
    assert f".BR walkback\\-{verb} (1)" in (folder / "walkback.1").read_text()


@pytest.mark.skipif(not shutil.which("groff"), reason="needs groff")
@pytest.mark.whole
def test_troff_has_nothing_to_warn_of(folder: Path) -> None:
    for page in sorted(folder.glob("*.1")):
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert page.stem in done.stdout


def test_no_line_begins_with_what_troff_takes_for_its_own(folder: Path) -> None:
    requests = {"TH", "SH", "SS", "TP", "PP", "B", "BR", "nf", "fi"}
    for page in folder.glob("*.1"):
        assert set(re.findall(r"^[.'](\w*)", page.read_text(), re.MULTILINE)) <= requests
