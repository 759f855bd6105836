"""The figures of a survey say what its tables say: counted again here, without SQL."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import duckdb
import pytest

from reports.madesurvey import HOSTILE, Made
from walkback.reports.chapters import CHAPTERS, FIGURES
from walkback.reports.figures import ColumnUnit, ask
from walkback.reports.words import in_words
from walkback.surveys import layout


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(300)


@pytest.fixture(scope="module")
def database(made: Made) -> Iterator[duckdb.DuckDBPyConnection]:
    with made.connection() as connection:
        yield connection


@pytest.fixture(scope="module")
def tables(made: Made) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table by the names of its columns."""
    return {
        table: [dict(zip(layout.COLUMNS[table], row, strict=True)) for row in rows] for table, rows in made.rows.items()
    }


@pytest.fixture(scope="module")
def compared(tables: dict[str, list[dict[str, Any]]]) -> list[tuple[dict[str, Any], dict[str, Any], int]]:
    """The files with .eh_frame, each with every version that can be made: (file, version) and its ratio."""
    files = {file["content"]: file for file in tables["files"]}
    found = []
    for version in tables["versions"]:
        file = files[version["content"]]
        if version["impossible"] is None and file["source"] == ".eh_frame":
            found.append((file, version, file["eh_frame"] + file["eh_frame_hdr"]))
    return found


def _asked(database: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    return ask(database, FIGURES[name]).objects()


def test_every_figure_has_an_answer(database: duckdb.DuckDBPyConnection) -> None:
    assert len(FIGURES) == sum(len(chapter.figures) for chapter in CHAPTERS)
    for name, figure in FIGURES.items():
        answer = ask(database, figure)
        assert answer.rows or name == "unproved", name


def test_an_empty_survey_has_answers_too() -> None:
    with Made(0).connection() as connection:
        for figure in FIGURES.values():
            answer = ask(connection, figure)
            assert len(answer.rows) == (figure.name == "survey")
            assert "None" not in answer.says


def test_answers_do_not_depend_on_the_order_of_rows(made: Made, database: duckdb.DuckDBPyConnection) -> None:
    other = Made(0)
    other.rows = {table: random.Random(7).sample(rows, len(rows)) for table, rows in made.rows.items()}
    with other.connection() as connection:
        for figure in FIGURES.values():
            rows, shuffled = ask(database, figure).rows, ask(connection, figure).rows
            # Sums of floating-point numbers depend on their order in the last place.
            assert repr(shuffled) == repr(rows) or shuffled == [pytest.approx(row) for row in rows], figure.name


def test_a_function_with_two_tables_is_proved_once(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]
) -> None:
    files = {file["content"]: file for file in tables["files"]}
    proofs = [one for one in tables["proofs"] if one["source"] == ".eh_frame"]
    assert len(proofs) < len(tables["proofs"])
    for row in _asked(database, "proof-by-machine"):
        its = [one for one in proofs if files[one["content"]]["machine"] == row["machine"]]
        reached = sum(one["bytes"] - one["not_reached"] for one in its)
        assert row["functions"] == sum(one["functions"] for one in its)
        assert row["functions_wrong"] == sum(one["functions_wrong"] for one in its)
        assert row["files"] == len(its)
        assert row["proved"] == pytest.approx(sum(one["proved"] for one in its) / reached)


def test_versions(
    database: duckdb.DuckDBPyConnection,
    tables: dict[str, list[dict[str, Any]]],
    compared: list[tuple[dict[str, Any], dict[str, Any], int]],
) -> None:
    some = {one["content"] for one in tables["versions"] if one["impossible"]}
    assert some
    rows = _asked(database, "versions")
    assert [(row["among"], row["version"]) for row in rows] == [(one, v) for one in ("same", "all") for v in (1, 2, 3)]
    for row in rows:
        left = some if row["among"] == "same" else set()
        its = [one for one in compared if one[1]["version"] == row["version"] and one[0]["content"] not in left]
        ratios = [version["bytes"] / frames for file, version, frames in its if file["functions"]]
        assert row["files"] == len(its)
        assert row["sframe"] == sum(version["bytes"] for _, version, _ in its)
        assert row["call_frames"] == sum(frames for *_, frames in its)
        assert row["ratio"] == pytest.approx(row["sframe"] / row["call_frames"])
        assert row["growth"] == pytest.approx(row["sframe"] / sum(file["bytes"] for file, *_ in its))
        assert row["median"] == pytest.approx(median(ratios))
        tenths = quantiles(ratios, n=10, method="inclusive")
        assert [row["low"], row["high"]] == pytest.approx([tenths[0], tenths[-1]])
        every = [one for one in tables["versions"] if one["version"] == row["version"] and one["content"] not in left]
        assert row["impossible"] == sum(one["impossible"] is not None for one in every)
        functions = sum(one["functions"] or 0 for one in every)
        assert row["functions"] == functions
        assert row["made"] == len(every) - row["impossible"]
        assert row["made"] > row["files"]  # some have no .eh_frame to compare with
        assert row["left_out"] == pytest.approx(1 - sum(one["covered"] or 0 for one in every) / functions)


def test_files_for_which_all_versions_can_be_made_are_not_told_twice() -> None:
    made = Made(20)
    machine = list(layout.COLUMNS["files"]).index("machine")
    content = {row[0] for row in made.rows["files"] if row[machine] == "s390x"}
    for table in ("files", "versions"):
        made.rows[table] = [row for row in made.rows[table] if row[0] not in content]
    with made.connection() as connection:
        assert [row["among"] for row in _asked(connection, "versions")] == ["all"] * 3
        assert all(row["v1"] for row in _asked(connection, "size-by-producer"))
        assert "every version" not in ask(connection, FIGURES["versions"]).says


@pytest.mark.parametrize("name", ["machine", "producer", "language", "kind"])
def test_versions_are_compared_over_the_same_files(
    database: duckdb.DuckDBPyConnection, compared: list[tuple[dict[str, Any], dict[str, Any], int]], name: str
) -> None:
    groups: defaultdict[Any, defaultdict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for file, version, frames in compared:
        groups[file[name]][version["version"]].append((version["bytes"], frames))
    rows = _asked(database, f"size-by-{name}")
    assert {row[name] for row in rows} == set(groups)
    assert None in {row["v1"] for row in rows}
    for row in rows:
        for number in (1, 2, 3):
            its = groups[row[name]][number]
            same = len(its) == len(groups[row[name]][3])
            expected = sum(size for size, _ in its) / sum(frames for _, frames in its) if same else None
            assert row[f"v{number}"] == (expected if expected is None else pytest.approx(expected))
        assert row["call_frames"] == sum(frames for _, frames in groups[row[name]][3])
        assert row["files"] == len(groups[row[name]][3])


def test_the_distribution_has_every_file_in_the_bin_of_its_ratio(
    database: duckdb.DuckDBPyConnection, compared: list[tuple[dict[str, Any], dict[str, Any], int]]
) -> None:
    expected: defaultdict[Any, int] = defaultdict(int)
    for file, version, frames in compared:
        if file["functions"]:
            expected[version["version"], min(int(20 * version["bytes"] / frames), 40) / 20] += 1
    assert {(row["version"], row["ratio"]): row["files"] for row in _asked(database, "distribution")} == expected


def test_parts_and_what_ifs_are_sums(
    database: duckdb.DuckDBPyConnection,
    tables: dict[str, list[dict[str, Any]]],
    compared: list[tuple[dict[str, Any], dict[str, Any], int]],
) -> None:
    for row in _asked(database, "parts"):
        its = [one for one in tables["versions"] if one["version"] == row["version"] and not one["impossible"]]
        assert row["bytes"] == sum(one[row["part"]] for one in its)
        assert row["share"] == pytest.approx(row["bytes"] / sum(one["bytes"] for one in its))
    rows = _asked(database, "what-if")
    assert {row["version"] for row in rows} == {2, 3}
    for row in rows:
        pairs = [(version, frames) for _, version, frames in compared if version["version"] == row["version"]]
        assert row["bytes"] == sum(version[row["change"]] for version, _ in pairs)
        assert row["against"] == pytest.approx(row["bytes"] / sum(version["bytes"] for version, _ in pairs))
        assert row["ratio"] == pytest.approx(row["bytes"] / sum(frames for _, frames in pairs))


def test_a_replacement_adds_up(
    database: duckdb.DuckDBPyConnection, compared: list[tuple[dict[str, Any], dict[str, Any], int]]
) -> None:
    its = [(file, version, frames) for file, version, frames in compared if version["version"] == 3]
    total = sum(
        version["bytes"] + file["exception_bytes"] + file["added_row_bytes"] + file["register_bytes"]
        for file, version, _ in its
    )
    rows = [row for row in _asked(database, "replacement") if row["form"] == "rows"]
    assert sum(row["bytes"] for row in rows) == total
    assert sum(row["ratio"] for row in rows) == pytest.approx(total / sum(frames for *_, frames in its))


@pytest.mark.parametrize("name", ["machine", "producer"])
def test_coverage_counts_where_a_version_can_be_made(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], name: str
) -> None:
    files = {file["content"]: file for file in tables["files"] if file["functions"]}
    rows = _asked(database, f"coverage-by-{name}")
    assert None in {row["v1"] for row in rows}
    for row in rows:
        for version in (1, 2, 3):
            every = [one for one in tables["versions"] if one["version"] == version and one["content"] in files]
            its = [one for one in every if files[one["content"]][name] == row[name]]
            assert row["files"] == len(its)
            if any(one["impossible"] for one in its):
                assert row[f"v{version}"] is None
            else:
                left_out = sum(one["functions"] - one["covered"] for one in its)
                assert row[f"v{version}"] == pytest.approx(left_out / sum(one["functions"] for one in its))


@pytest.mark.parametrize("name", ["machine", "producer"])
def test_code_without_call_frames_is_counted_with_all_code(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], name: str
) -> None:
    files = [file for file in tables["files"] if file["outcome"] in {"measured", "without"}]
    covered = {one["content"]: one["covered_bytes"] for one in tables["versions"] if one["version"] == 3}
    rows = _asked(database, f"code-by-{name}")
    assert {row[name] for row in rows} == {file[name] for file in files}
    for row in rows:
        its = [file for file in files if file[name] == row[name]]
        assert row["files"] == len(its)
        assert row["without"] == sum(not file["functions"] for file in its)
        assert row["text"] == sum(file["text_bytes"] for file in its)
        assert row["code"] == sum(file["code_bytes"] or 0 for file in its)
        assert row["described"] == pytest.approx(row["code"] / row["text"])
        assert row["covered"] == pytest.approx(sum(covered.get(file["content"], 0) for file in its) / row["text"])
    [survey] = _asked(database, "survey")
    assert survey["text"] == sum(row["text"] for row in rows)
    assert survey["described"] == pytest.approx(sum(row["code"] for row in rows) / survey["text"])


def test_the_file_without_call_frames_is_named(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]
) -> None:
    [without] = [file for file in tables["files"] if file["outcome"] == "without"]
    [row] = [row for row in _asked(database, "undescribed") if row["producer"] == "Go"]
    assert (row["file"], row["content"]) == ("usr/lib/without.so", without["content"])
    assert row["undescribed"] >= without["text_bytes"]
    assert "% is in files of Go" in ask(database, FIGURES["undescribed"]).says
    little = [{"producer": "GCC", "undescribed": 1, "share": 1.0, "text": 21}]
    says = FIGURES["undescribed"].says
    assert says is not None
    assert says(little) == ""
    assert _asked(database, "undescribed-files")[0]["content"] == without["content"]
    made = [row for row in _asked(database, "producers") if row["producer"] == "Go"]
    assert sum(row["files"] for row in made) == 1 + sum(row["measured"] for row in made)


def test_reasons_are_ranked_and_have_their_largest_function(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]
) -> None:
    groups = defaultdict(list)
    for one in tables["functions"]:
        if one["about"] == "uncovered":
            groups[one["version"], one["code"]].append(one)
    rows = _asked(database, "reasons")
    assert [(row["version"], row["code"]) for row in rows] == sorted(
        groups, key=lambda key: (-key[0], -len(groups[key]), key[1])
    )
    for row in rows:
        its = groups[row["version"], row["code"]]
        assert row["functions"] == len(its)
        assert row["files"] == len({one["content"] for one in its})
        assert row["bytes"] == sum(one["size"] for one in its)
        largest = max(one["size"] for one in its)
        assert any(
            one["size"] == largest and one["name"] == row["name"] and one["content"] == row["content"] for one in its
        )


def test_findings_and_frame_pointers(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]
) -> None:
    findings = [one for one in tables["functions"] if one["about"] == "finding"]
    assert sum(row["findings"] for row in _asked(database, "findings")) == len(findings) > 0
    for row in _asked(database, "frame-pointers-by-machine"):
        its = [file for file in tables["files"] if file["functions"] and file["machine"] == row["machine"]]
        functions = sum(file["functions"] for file in its)
        assert row["based"] == pytest.approx(sum(file["fp_functions"] for file in its) / functions)
        assert row["saved"] == pytest.approx(sum(file["fp_saved"] for file in its) / functions)


def test_what_has_no_eh_frame_is_not_compared(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]
) -> None:
    others = {file["content"] for file in tables["files"] if file["source"] == ".debug_frame"}
    assert others
    assert others.isdisjoint(row["content"] for row in _asked(database, "largest"))
    assert others.isdisjoint(row["content"] for row in _asked(database, "worst-ratio"))


def test_the_worst_are_not_small(
    database: duckdb.DuckDBPyConnection, compared: list[tuple[dict[str, Any], dict[str, Any], int]]
) -> None:
    most = max(
        version["bytes"] / frames for _, version, frames in compared if version["version"] == 3 and frames >= 4096
    )
    rows = _asked(database, "worst-ratio")
    assert rows[0]["v3"] == pytest.approx(most)
    assert min(row["call_frames"] for row in rows) >= 4096


def test_outcomes_errors_and_troubles_are_all_told(
    database: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]]
) -> None:
    assert sum(row["files"] for row in _asked(database, "outcomes")) == len(tables["files"])
    assert {row["outcome"] for row in _asked(database, "outcomes")} == set(layout.OUTCOMES)
    assert [row["file"] for row in _asked(database, "errors")] == [HOSTILE]
    assert len(_asked(database, "troubles")) == len(tables["troubles"])


def test_numbers_beyond_all_sense_are_added_up() -> None:
    huge = Made(2)
    for table in ("files", "versions"):
        kinds = layout.COLUMNS[table].values()
        huge.rows[table] = [
            tuple(
                2**64 - 1 if kind == "UBIGINT" and value is not None else value
                for kind, value in zip(kinds, row, strict=True)
            )
            for row in huge.rows[table]
        ]
    with huge.connection() as connection:
        for figure in FIGURES.values():
            for row in ask(connection, figure).rows:
                assert all(in_words(value, column) for value, column in zip(row, figure.columns, strict=True))


def test_damaged_call_frames_describe_no_more_than_all_code() -> None:
    made = Made(40)
    files = list(layout.COLUMNS["files"])
    versions = list(layout.COLUMNS["versions"])
    text = {row[0]: row[files.index("text_bytes")] for row in made.rows["files"]}
    for number, row in enumerate(made.rows["files"]):
        if row[files.index("functions")]:
            changed = dict(zip(files, row, strict=True)) | {"code_bytes": 70 * text[row[0]]}
            made.rows["files"][number] = tuple(changed.values())
    for number, row in enumerate(made.rows["versions"]):
        changed = dict(zip(versions, row, strict=True)) | {"covered_bytes": 69 * text[row[0]]}
        made.rows["versions"][number] = tuple(changed.values())
    with made.connection() as connection:
        for figure in FIGURES.values():
            shares = [place for place, column in enumerate(figure.columns) if column.unit == ColumnUnit.SHARE]
            for row in ask(connection, figure).rows:
                assert all((row[place] or 0) <= 1 for place in shares), (figure.name, row)
        [survey] = _asked(connection, "survey")
        assert survey["code_bytes"] <= survey["text"]


def test_every_figure_and_its_columns_are_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "report.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for name, figure in FIGURES.items():
        [row] = [line for line in rows if f"`{name}`" in line.split("|")[1]]
        group = name.partition("-by-")[2]
        missing = [column.name for column in figure.columns if f"`{column.name}`" not in row.split("|", 2)[2]]
        assert missing in ([], [group]), name
