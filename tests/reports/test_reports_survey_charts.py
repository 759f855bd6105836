"""Charts and figures on the page of a survey are what the survey says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from reports.madesurvey import Made
from reports.surveypage import rows_of
from walkback.pages.scripts import joined_script
from walkback.reports.chapters import FIGURES
from walkback.reports.figures import Column, ColumnUnit, ask
from walkback.reports.survey import write_survey_page
from walkback.reports.surveyhead import CHARTED, is_shown
from walkback.reports.words import in_words
from walkback.surveys import layout

if TYPE_CHECKING:
    from browser import Page


def test_every_figure_shows_its_rows_and_its_question(opened: Page, made: Made) -> None:
    with made.connection() as connection:
        for name, figure in FIGURES.items():
            answer = ask(connection, figure)
            place = f"document.getElementById('figure-{name}')"
            if not answer.rows:
                assert opened.evaluate(f"{place} === null")
                assert figure.empty in opened.evaluate("document.getElementById('chapters').textContent")
                continue
            opened.evaluate(f"{place}.querySelectorAll('details').forEach((one) => {{ one.open = true; }})")
            opened.settle()
            opened.evaluate(f"{place}.querySelector('.more')?.click()")
            assert opened.evaluate(f"{place}.querySelector('pre').textContent") == figure.sql
            shown = [place for place, column in enumerate(figure.columns) if is_shown(answer, column)]
            assert len(shown) < 9
            expected = [[in_words(row[place], figure.columns[place]) for place in shown] for row in answer.rows]
            if figure.single:
                told = opened.evaluate(f"[...{place}.querySelectorAll('dd')].map((one) => one.textContent)")
                assert [told] == expected
                continue
            cells = opened.evaluate(
                f"[...{place}.querySelectorAll('tbody tr')]"
                ".map((row) => [...row.children].map((cell) => cell.textContent))"
            )
            for column, number in enumerate(shown):
                if figure.columns[number].name == "file" and ColumnUnit.CONTENT in {one.unit for one in figure.columns}:
                    for row in [*expected, *cells]:
                        row[column] = ""
            assert cells == expected, name


def test_charts_have_marks_for_their_rows(opened: Page, made: Made) -> None:
    with made.connection() as connection:
        for name, figure in FIGURES.items():
            rows = ask(connection, figure).rows
            count = opened.evaluate(f"document.querySelectorAll('#figure-{name} svg[role=img]').length")
            panels = 0
            if figure.drawing and rows and name != CHARTED:
                panel = figure.drawing.panel
                at = [column.name for column in figure.columns].index(panel) if panel else None
                panels = 1 if at is None else len({row[at] for row in rows})
            assert count == panels, name
    marks = opened.evaluate(
        "[...document.querySelectorAll('#figure-size-by-machine circle title')].map((one) => one.textContent)"
    )
    with made.connection() as connection:
        told = {row["machine"]: row["v3"] for row in ask(connection, FIGURES["size-by-machine"]).objects()}
    assert marks == [f"{machine}, version 3: {ratio:.3f}" for machine, ratio in told.items()]


def test_a_version_that_cannot_be_made_for_all_files_is_not_drawn(opened: Page, made: Made) -> None:
    marks = (
        "document.querySelector('#figure-coverage-by-machine .drawing').textContent.split('not supported by all files')"
    )
    assert opened.evaluate(f"{marks}.length - 1") == 2  # beside where its bar would be, and told of it
    legend = "[...document.querySelectorAll('#figure-%s .legend li')].map((one) => one.textContent)"
    assert opened.evaluate(legend % "coverage-by-machine") == ["Version 1", "Version 2", "Version 3"]
    assert opened.evaluate(legend % "size-by-kind") == ["Version 2", "Version 3"]
    with made.connection() as connection:
        rows = ask(connection, FIGURES["versions"]).objects()
        bars = [f"Version {row['version']}: {row['ratio']:.3f}" for row in rows if row["among"] == "same"]
        rows = ask(connection, FIGURES["distribution"]).objects()
    told = "[...document.querySelectorAll('#head-chart rect title')].map((one) => one.textContent)"
    assert opened.evaluate(told) == bars
    files = {version: sum(row["files"] for row in rows if row["version"] == version) for version in (1, 2, 3)}
    told = opened.evaluate("[...document.querySelectorAll('#figure-distribution h4')].map((one) => one.textContent)")
    assert told == [f"Version {version} {count} files" for version, count in files.items()]
    assert files[1] < files[2]


def test_a_version_that_can_be_made_for_no_file_is_not_drawn_at_all(page: Page, tmp_path: Path) -> None:
    made = Made(40)
    others = {row["content"] for row in rows_of(made, "files") if row["machine"] != "s390x"}
    for table in layout.KEYED:
        made.rows[table] = [row for row in made.rows[table] if row[0] not in others]
    with made.connection() as connection, (tmp_path / "page.html").open("wb") as out:
        write_survey_page(connection, out, title="A survey of one architecture")
    page.look()
    page.open(tmp_path / "page.html")
    page.wait_for("document.documentElement.dataset.ready")
    titles = (
        "[...document.querySelectorAll('#figure-coverage-by-producer svg rect title')].map((one) => one.textContent)"
    )
    assert page.evaluate(titles) == [
        f"{producer}, Version {version}: {in_words(share, Column('', '', ColumnUnit.SHARE))}"
        for producer, shares in _left_out(made).items()
        for version, share in shares.items()
    ]
    drawn = page.evaluate("[...document.querySelectorAll('#head-chart rect title')].map((one) => one.textContent)")
    assert [title.split(":")[0] for title in drawn] == ["Version 2", "Version 3"]


def _left_out(made: Made) -> dict[str, dict[int, float]]:
    """The share of functions that versions 2 and 3 leave out, by producer, the one with most functions first."""
    producers = {row["content"]: row["producer"] for row in rows_of(made, "files")}
    sums: dict[str, dict[int, list[int]]] = {}
    for row in rows_of(made, "versions"):
        if row["version"] > 1 and row["functions"]:
            its = sums.setdefault(producers[row["content"]], {}).setdefault(row["version"], [0, 0])
            its[0] += row["functions"] - row["covered"]
            its[1] += row["functions"]
    ranked = sorted(sums.items(), key=lambda one: (-one[1][3][1], one[0]))
    return {name: {version: lost / total for version, (lost, total) in its.items()} for name, its in ranked}


def test_words_in_charts_do_not_stand_on_the_line_at_one(opened: Page) -> None:
    crossed = """
    [...document.querySelectorAll('svg[role=img] .one')].flatMap((line) => {
      const at = line.getBoundingClientRect(), texts = [...line.ownerSVGElement.querySelectorAll('text:not(.strong)')];
      return texts.filter((one) => {
        const box = one.getBoundingClientRect();
        return box.left < at.left && box.right > at.right && box.top < at.bottom && box.bottom > at.top;
      }).map((one) => one.textContent);
    })
    """
    # The line at 1 goes through the middle of the last part.
    figure = {
        "columns": [{"name": "part", "unit": "text", "words": {}}, {"name": "share", "unit": "ratio", "words": {}}],
        "drawing": {"label": "part", "values": ["share"], "one": True},
    }
    rows = [["a", 0.9], ["b", 0.2]]
    given = f"{json.dumps(figure)}, {json.dumps(rows)}, 600, ['a', 'b'], 1.1"
    chart = f"{joined_script('reports/survey_charts.js')}.stack({given})"
    opened.evaluate(f"document.querySelector('main').prepend({chart})")
    assert (
        opened.evaluate("document.querySelector('main svg').textContent").count("0.200") == 2
    )  # and told to those who point
    for width in (1280, 390):
        opened.look(width=width)
        opened.settle()
        assert opened.evaluate(crossed) == []


def test_numbers_are_written_alike_on_the_page_and_the_terminal(opened: Page) -> None:
    sizes = [0, 1, 1023, 1024, 1500, 10239, 10240, 1047552, 1048063, 1048576, 123456789, 2**40, 2**53]
    shares = [0, 1, 0.5, 0.1, 0.0999, 0.123456, 0.99, 0.999, 0.99999, 0.999999999, 1e-7, 3e-12, 1.5, 0.01]
    for function, unit, values in (
        ("bytes", ColumnUnit.BYTES, sizes),
        ("percent", ColumnUnit.SHARE, shares),
        ("count", ColumnUnit.COUNT, sizes),
    ):
        told = opened.evaluate(f"{json.dumps(values)}.map({joined_script('pages/common.js')}.{function})")
        assert told == [in_words(value, Column("", "", unit)) for value in values]
