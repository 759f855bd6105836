"""The page of a survey in a real browser: what it shows is what the survey says, for eyes, ears and keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reports.madesurvey import HOSTILE, Made
from walkback.base.text import printable
from walkback.pages.scripts import joined_script
from walkback.reports.chapters import CHAPTERS, FIGURES
from walkback.reports.figures import Column, ColumnUnit, ask
from walkback.reports.survey import write_survey_page
from walkback.reports.words import in_words
from walkback.surveys import layout

if TYPE_CHECKING:
    from browser import Page

Richest = tuple[dict[str, Any], list[dict[str, Any]]]
FILES = 400
LOOKS = [(1280, 900, False), (1280, 900, True), (390, 844, False), (390, 844, True)]


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(FILES)


@pytest.fixture(scope="module")
def written(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    with made.connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title=f"A survey {HOSTILE}")
    return path


@pytest.fixture
def opened(page: Page, written: Path) -> Page:
    page.look()
    page.open(written)
    page.wait_for("document.documentElement.dataset.ready")
    return page


def _rows(made: Made, table: str) -> list[dict[str, Any]]:
    return [dict(zip(layout.COLUMNS[table], row, strict=True)) for row in made.rows[table]]


def _names(made: Made) -> dict[str, list[tuple[str, str | None]]]:
    """All names of each content, with the packages that it is in."""
    found: dict[Any, Any] = {}
    for row in _rows(made, "places"):
        name = f"{row['path']}({row['member']})" if row["member"] else row["path"]
        found.setdefault(row["content"], []).append((name, row["package"]))
    return found


def _enormous(made: Made) -> Any:
    """Every number the largest that there is."""
    for table in ("files", "versions", "functions"):
        kinds = layout.COLUMNS[table].values()
        made.rows[table] = [
            tuple(
                2**64 - 1 if kind == "UBIGINT" and value is not None else value
                for kind, value in zip(kinds, row, strict=True)
            )
            for row in made.rows[table]
        ]
    return made


def _show(page: Page, name: str) -> None:
    """Search for a file, and open it with the keyboard alone."""
    page.press("/")
    page.type(name)
    page.press("ArrowDown", "Enter")
    page.wait_for("document.getElementById('file').open")


@pytest.mark.parametrize(("width", "height", "dark"), LOOKS)
def test_the_page_fits_and_all_of_it_has_names(page: Page, written: Path, width: int, height: int, dark: bool) -> None:
    page.look(width=width, height=height, dark=dark)
    page.open(written)
    page.wait_for("document.documentElement.dataset.ready")
    assert page.sideways() == 0
    assert page.unnamed() == []
    headings = [name for role, name in page.accessible() if role == "heading"]
    assert {chapter.title for chapter in CHAPTERS} < set(headings)
    roles = {role for role, _ in page.accessible()}
    assert {"banner", "navigation", "main", "search", "contentinfo", "status"} <= roles
    _show(page, "library-20")
    assert page.sideways() == 0
    assert page.unnamed() == []
    assert page.evaluate("document.getElementById('file').scrollWidth <= document.getElementById('file').clientWidth")


def test_every_figure_shows_its_rows_and_its_question(opened: Page, made: Made) -> None:
    with made.connection() as connection:
        for name, figure in FIGURES.items():
            answer = ask(connection, figure)
            place = f"document.getElementById('figure-{name}')"
            opened.evaluate(f"{place}.querySelectorAll('details').forEach((one) => {{ one.open = true; }})")
            opened.settle()
            opened.evaluate(f"{place}.querySelector('.more')?.click()")
            assert opened.evaluate(f"{place}.querySelector('pre').textContent") == figure.sql
            shown = [place for place, column in enumerate(figure.columns) if column.unit != ColumnUnit.CONTENT]
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
            if figure.drawing and rows:
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
    marks = "document.querySelector('#figure-coverage-by-machine .drawing').textContent.split('not for all files')"
    assert opened.evaluate(f"{marks}.length - 1") == 2  # beside where its bar would be, and told of it
    legend = "[...document.querySelectorAll('#figure-%s .legend li')].map((one) => one.textContent)"
    assert opened.evaluate(legend % "coverage-by-machine") == ["Version 1", "Version 2", "Version 3"]
    assert opened.evaluate(legend % "size-by-kind") == ["Version 2", "Version 3"]
    with made.connection() as connection:
        rows = ask(connection, FIGURES["versions"]).objects()
        bars = [f"Version {row['version']}: {row['ratio']:.3f} in {row['files']} files" for row in rows]
        rows = ask(connection, FIGURES["distribution"]).objects()
    told = "[...document.querySelectorAll('#figure-versions rect title')].map((one) => one.textContent)"
    assert opened.evaluate(told) == bars
    files = {version: sum(row["files"] for row in rows if row["version"] == version) for version in (1, 2, 3)}
    told = opened.evaluate("[...document.querySelectorAll('#figure-distribution h4')].map((one) => one.textContent)")
    assert told == [f"Version {version} {count} files" for version, count in files.items()]
    assert files[1] < files[2]


def test_a_version_that_can_be_made_for_no_file_is_not_drawn_at_all(page: Page, tmp_path: Path) -> None:
    made = Made(40)
    others = {row["content"] for row in _rows(made, "files") if row["machine"] != "s390x"}
    for table in layout.KEYED:
        made.rows[table] = [row for row in made.rows[table] if row[0] not in others]
    with made.connection() as connection, (tmp_path / "page.html").open("wb") as out:
        write_survey_page(connection, out, title="A survey of one architecture")
    page.look()
    page.open(tmp_path / "page.html")
    page.wait_for("document.documentElement.dataset.ready")
    figure = "document.getElementById('figure-coverage-by-machine')"
    assert page.evaluate(f"[...{figure}.querySelectorAll('svg rect title')].map((one) => one.textContent)") == [
        f"s390x, Version {version}: {in_words(share, Column('', '', ColumnUnit.SHARE))}"
        for version, share in _left_out(made).items()
    ]


def _left_out(made: Made) -> dict[int, float]:
    """The share of functions that versions 2 and 3 leave out."""
    found = {}
    for version in (2, 3):
        its = [row for row in _rows(made, "versions") if row["version"] == version and row["functions"]]
        found[version] = sum(row["functions"] - row["covered"] for row in its) / sum(row["functions"] for row in its)
    return found


def test_names_are_never_more_than_text(opened: Page) -> None:
    assert opened.evaluate("document.title") == printable(f"A survey {HOSTILE}")
    assert opened.evaluate("document.querySelector('h1').textContent") == printable(f"A survey {HOSTILE}")
    assert opened.evaluate("document.querySelectorAll('main b, body > b').length") == 0
    assert opened.evaluate("typeof fail") == "undefined"
    _show(opened, "fail()")
    assert "script" in opened.evaluate("document.getElementById('file-title').textContent")
    assert opened.evaluate("document.querySelectorAll('dialog script, dialog b').length") == 0
    assert opened.evaluate("document.querySelector('.places').textContent").count(printable(HOSTILE)) == 1


def test_keys_lead_from_the_top_into_a_file_and_back(opened: Page) -> None:
    opened.press("Tab")
    assert opened.focus() == "a# Skip to the list of files"
    opened.press("/")
    assert opened.focus().startswith("input#search")
    opened.type("c-program")
    opened.wait_for("document.getElementById('matched').textContent.includes(' of ')")
    opened.press("ArrowDown")
    first = opened.focus()
    assert "c-program" in first
    opened.press("ArrowDown", "ArrowDown", "ArrowUp")
    second = opened.focus()
    assert second != first
    opened.press("End")
    assert opened.focus() not in {first, second}
    opened.press("PageUp", "Home")
    assert opened.focus() == first
    opened.press("ArrowDown", "Enter")
    opened.wait_for("document.getElementById('file').open")
    assert opened.focus().startswith("h2#file-title")
    assert opened.evaluate("document.querySelector('dialog h2').textContent") in second
    opened.press("Escape")
    opened.wait_for("!document.getElementById('file').open")
    assert opened.focus() == second
    assert opened.evaluate("location.hash") == ""


def test_the_back_button_closes_a_file(opened: Page) -> None:
    opened.evaluate("document.querySelector('#figure-largest tbody a').click()")
    opened.wait_for("document.getElementById('file').open")
    opened.evaluate("history.back()")
    opened.wait_for("!document.getElementById('file').open")


def test_search_and_choices_find_what_they_should(opened: Page, made: Made) -> None:
    files = _rows(made, "files")
    rust = [one for one in files if one["producer"] == "rustc"]
    opened.evaluate(
        "(() => { const one = document.querySelector('select[name=producer]');"
        " one.value = [...one.options].find((option) => option.text.startsWith('rustc')).value;"
        " one.dispatchEvent(new Event('change')); })()"
    )
    told = "document.getElementById('matched').textContent"
    assert opened.evaluate(told) == f"{len(rust)} of {len(files)} files"
    assert opened.evaluate("document.querySelector('table.files').getAttribute('aria-rowcount')") == str(len(rust) + 1)
    opened.click("#clear")
    assert opened.evaluate(told) == f"{len(files)} files"
    both = sum("package8" in str(names) and "again" in str(names) for names in _names(made).values())
    assert both
    # A build ID, two words that need not stand side by side, and nothing.
    for wanted, expected in ((rust[0]["build_id"], 1), ("package8 AGAIN", both), ("no such file", 0)):
        opened.evaluate("document.getElementById('search').value = ''; document.getElementById('search').focus()")
        opened.type(wanted)
        opened.wait_for("new Promise((done) => setTimeout(() => done(true), 200))")
        assert opened.evaluate(told) == f"{expected} of {len(files)} files"


@pytest.mark.parametrize(("head", "column"), [(3, "call_frames"), (5, "v3"), (6, "left")])
def test_the_list_is_sorted_by_any_column(opened: Page, made: Made, head: int, column: str) -> None:
    button = f"document.querySelectorAll('table.files thead button')[{head}]"
    rows = "[...document.querySelectorAll('table.files tbody tr:not(.space)')]"
    shown = f"{rows}.map((row) => row.children[{head}].textContent)"
    if opened.evaluate(f"{button}.closest('th').getAttribute('aria-sort')") != "descending":
        opened.evaluate(f"{button}.click()")
    falling = opened.evaluate(shown)
    opened.evaluate(f"{button}.click()")
    rising = opened.evaluate(shown)
    assert opened.evaluate(f"{button}.closest('th').getAttribute('aria-sort')") == "ascending"
    files = {file["content"]: file for file in _rows(made, "files")}
    values = []
    for version in _rows(made, "versions"):
        file = files[version["content"]]
        frames = (file["eh_frame"] + file["eh_frame_hdr"]) if file["source"] == ".eh_frame" else 0
        if version["version"] == 3:
            ratio = version["bytes"] / frames if frames else None
            left = version["functions"] - version["covered"]
            values.append({"call_frames": frames, "v3": ratio, "left": left}[column])
    unit = {"call_frames": ColumnUnit.BYTES, "v3": ColumnUnit.RATIO, "left": ColumnUnit.COUNT}[column]
    # Files without such a number come last either way.
    known = sorted(value for value in values if value is not None)
    words = [in_words(value, Column("", "", unit)) for value in known]
    if column == "call_frames":
        words = [in_words(0, Column("", "", unit))] * 6 + words
    assert rising[:12] == words[:12]
    assert falling[:12] == words[:-13:-1]


def test_only_rows_that_are_seen_are_in_the_page(opened: Page) -> None:
    rows = "document.querySelectorAll('table.files tbody tr').length"
    assert opened.evaluate(rows) < 40
    opened.evaluate("document.querySelector('.rows').scrollTop = 9000")
    opened.settle()
    assert opened.evaluate(rows) < 40
    seen = opened.evaluate("Number(document.querySelectorAll('table.files tbody tr')[8].getAttribute('aria-rowindex'))")
    assert abs(seen - 9000 / 54) < 12


@pytest.fixture
def richest(made: Made) -> Richest:
    """The file with the most places, and of these the most functions that version 3 leaves out; and these."""
    lost: dict[Any, Any] = {}
    for one in _rows(made, "functions"):
        if one["about"] == "uncovered" and one["version"] == 3:
            lost.setdefault(one["content"], []).append(one)
    names = _names(made)
    content = max(lost, key=lambda one: (len(names[one]), len(lost[one]), one))
    return next(file for file in _rows(made, "files") if file["content"] == content), lost[content]


def test_a_file_has_all_its_numbers_and_places(opened: Page, made: Made, richest: Richest) -> None:
    file, _ = richest
    content = file["content"]
    _show(opened, file["build_id"])
    text = opened.evaluate("document.getElementById('file').innerText")
    names = _names(made)[content]
    assert opened.evaluate("document.querySelectorAll('.places li').length") == len(names) == 2
    assert all(printable(name) in text and package in text for name, package in names)
    sizes = [file[name] for name in ("bytes", "text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame", "code_bytes")]
    for version in _rows(made, "versions"):
        if version["content"] == content:
            sizes += [version[name] for name in ("bytes", *layout.WHAT_IFS)]
    assert f"Made by {file['producer']}" in text
    assert [size for size in sizes if size and in_words(size, Column("", "", ColumnUnit.BYTES)) not in text] == []
    assert content in opened.evaluate("document.querySelector('dialog code').textContent")


def test_a_file_has_the_reasons_of_its_functions(opened: Page, richest: Richest) -> None:
    file, lost = richest
    _show(opened, file["build_id"])
    headings = opened.evaluate("[...document.querySelectorAll('dialog h4')].map((one) => one.textContent)")
    assert {heading for heading in headings if heading.startswith("Version 3 cannot")} == {
        f"Version 3 cannot say: {one['message']}" for one in lost
    }
    text = opened.evaluate("document.getElementById('file').innerText")
    assert all(printable(one["name"]) in text and f"{one['address']:#x}" in text for one in lost)


def test_colours_follow_the_reader_and_the_button(opened: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened.evaluate(background)
    assert opened.evaluate("document.querySelector('#theme button').textContent") == "Colours: Auto"
    opened.click("#theme button")
    assert opened.evaluate(background) == light
    opened.click("#theme button")
    dark = opened.evaluate(background)
    assert dark != light
    opened.click("#theme button")
    opened.look(dark=True)
    assert opened.evaluate(background) == dark


def test_the_page_prints(opened: Page) -> None:
    assert opened.printed().startswith(b"%PDF")
    opened.look(media="print")
    assert opened.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert opened.evaluate("getComputedStyle(document.getElementById('files')).display") == "none"
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.look(width=680, media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.sideways() == 0
    wide = "[...document.querySelectorAll('figure .scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert opened.evaluate(wide) == 0
    assert "These are the first 10 of 50 rows." in opened.evaluate(
        "document.querySelector('#figure-largest').innerText"
    )
    scales = "[...document.querySelectorAll('svg[role=img]')].map((one) => one.clientWidth / one.viewBox.baseVal.width)"
    assert all(0.7 < scale < 1.3 for scale in opened.evaluate(scales))
    opened.look()
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert all(0.95 < scale < 1.05 for scale in opened.evaluate(scales))


def test_a_file_that_is_open_is_printed_over_all_its_sheets(opened: Page, richest: Richest) -> None:
    file, lost = richest
    _show(opened, file["build_id"])
    opened.look(media="print")
    assert opened.printed().count(b"/Type /Page\n") > 1
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = opened.evaluate("document.body.innerText")
    assert shown.startswith(opened.evaluate("document.querySelector('dialog h2').textContent"))
    assert all(f"{one['address']:#x}" in shown for one in lost)
    assert "What each version takes" not in shown
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.evaluate("document.getElementById('printed')") is None
    assert opened.evaluate("document.getElementById('file').open")


def test_without_a_script_nothing_is_shown_that_needs_one(page: Page, written: Path) -> None:
    page.ask("Emulation.setScriptExecutionDisabled", value=True)
    page.open(written)
    told = page.accessible()
    page.ask("Emulation.setScriptExecutionDisabled", value=False)
    roles = {role for role, _ in told}
    assert roles.isdisjoint({"searchbox", "search", "button", "navigation"})
    assert "All files" not in {name for _, name in told}
    assert any("This page is drawn by a script." in name for _, name in told)


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


def test_letters_with_hundreds_of_marks_make_no_file_wide(page: Page, tmp_path: Path) -> None:
    made = Made(3)
    names = list(layout.COLUMNS["places"])
    marked = "e\u0301" * 50 + "a" + "\u0336" * 200
    made.rows["places"] = [
        tuple((dict(zip(names, row, strict=True)) | {"member": marked}).values()) for row in made.rows["places"]
    ]
    path = tmp_path / "page.html"
    with made.connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title=marked)
    for width in (1280, 390):
        page.look(width=width)
        page.open(path)
        page.wait_for("document.documentElement.dataset.ready")
        page.evaluate("location.hash = '#file=0'")
        page.wait_for("document.getElementById('file').open")
        assert page.sideways() == 0
        assert (
            page.evaluate("document.getElementById('file').scrollWidth - document.getElementById('file').clientWidth")
            == 0
        )


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


def test_a_survey_of_nothing_has_a_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with Made(0).connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title="nothing", finished=False)
    page.open(path)
    page.wait_for("document.documentElement.dataset.ready")
    assert "not finished" in page.evaluate("document.getElementById('lead').textContent")
    assert page.evaluate("document.getElementById('matched').textContent") == "0 files"
    assert "NaN" not in page.evaluate("document.body.innerText")
    assert page.unnamed() == []


def test_numbers_beyond_all_sense_have_a_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with _enormous(Made(3)).connection() as connection, path.open("wb") as out:
        write_survey_page(connection, out, title="huge")
    page.look(width=390)
    page.open(path)
    page.wait_for("document.documentElement.dataset.ready")
    assert page.sideways() == 0
    page.evaluate("location.hash = '#file=0'")
    page.wait_for("document.getElementById('file').open")
    assert "NaN" not in page.evaluate("document.body.innerText")
