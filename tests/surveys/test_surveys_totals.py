"""The totals of a survey are those of the verbs that measure one file, run on each."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from corpus import corpus
from walkback.elf import is_archive, read_file
from walkback.surveys.reading import Survey
from walkback.surveys.run import survey

MACHINE_FILES = [Path("/bin/ls"), *sorted(Path("/lib/x86_64-linux-gnu").glob("lib[cdm]*.so.?"))[:12]]


def told_by(*words: str | Path) -> list[dict[str, Any]]:
    """What a verb prints as JSON; files that have nothing for it are none of the totals either."""
    done = subprocess.run([sys.executable, "-m", "walkback", *words, "--json"], capture_output=True, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_totals_are_those_of_size_and_compare(tmp_path: Path) -> None:
    chance = random.Random(11)
    samples = [one.path for one in corpus() if not is_archive(read_file(one.path))]
    wanted = [*chance.sample(samples, 50), *(path.resolve() for path in MACHINE_FILES)]
    different = list({path.read_bytes(): path for path in wanted}.values())
    survey(wanted, tmp_path / "survey", jobs=2)
    sizes = told_by("size", *different)[-1]
    assert (sizes["type"], sizes["files"]) == ("total", len(different))
    pairs = [pair for path in different for pair in told_by("compare", "--limit", "0", path) if "equal" in pair]
    with Survey(tmp_path / "survey").database() as database:
        files = "count(*), sum(bytes), sum(text_bytes), sum(eh_frame), sum(eh_frame_hdr), sum(debug_frame)"
        assert database.execute(f"SELECT {files} FROM files").fetchone() == (
            *(
                sizes[name]
                for name in ("members", "file_bytes", "text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame")
            ),
        )
        columns = ("functions", "covered", "entries", "rows", "bytes")
        for version in (1, 2, 3):
            sums = ", ".join(f"sum({name})" for name in ("1", *columns))
            found = database.execute(f"SELECT {sums} FROM versions WHERE version = {version} AND impossible IS NULL")
            one = sizes["versions"][str(version)]
            assert found.fetchone() == (one["files"], *(one[name] for name in columns))
            what_ifs = one["what_if"]
            sums = ", ".join(f"sum({name})" for name in what_ifs) or "1"
            row = database.execute(f"SELECT {sums} FROM versions WHERE version = {version}").fetchone()
            assert row is not None
            assert row == (tuple(what_ifs.values()) or (row[0],))
        sframe = database.execute("SELECT sum(bytes), sum(functions), sum(rows) FROM sframe").fetchone()
        assert sframe == tuple(sizes["sframe"][name] for name in ("bytes", "functions", "rows"))
        compared = "sum(equal_bytes), sum(different_bytes), sum(only_frames_bytes), sum(only_sframe_bytes)"
        names = ("equal", "different", "only_one", "only_other")
        assert database.execute(f"SELECT {compared} FROM sframe").fetchone() == tuple(
            sum(pair[name]["bytes"] for pair in pairs) for name in names
        )
    assert len(pairs) > 20
