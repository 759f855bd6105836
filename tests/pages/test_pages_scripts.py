"""Scripts of modules: what they export, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from walkback.pages import scripts

if TYPE_CHECKING:
    from browser import Page


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Joins modules given by their names and texts; the first is the page's."""

    def join(**texts: str) -> str:
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text)
        monkeypatch.setattr(scripts, "files", lambda _: tmp_path)
        return scripts.joined_script(f"{next(iter(texts))}.js")

    return join


def test_modules_have_what_they_import_and_nothing_is_global(
    joined: Callable[..., str], page: Page, tmp_path: Path
) -> None:
    script = joined(
        a='import {one as first,\n  two} from "./b.js";\nimport {three} from "./c.js";\n'
        "const own = [first(), two, new three().its];\nexport const its = own;\n",
        b='import {three} from "./c.js";\n\nexport async function one() {}\nconst own = 1;\n'
        "export const two = own + 1;\n"
        "document.order = [...(document.order ?? []), typeof three];\n",
        c="/** @type {(its: number) => void}\n */\nexport class three {\n  its = (() => this && 3)();\n}\n",
    )
    assert "@type" not in script
    (tmp_path / "page.html").write_text(f"<!DOCTYPE html><script>document.its = {script}</script>")
    page.open(tmp_path / "page.html")
    assert page.evaluate("document.its.its.slice(1)") == [2, 3]
    assert page.evaluate("document.order") == ["function"]
    assert page.evaluate("[typeof own, typeof two, typeof $modules]") == ["undefined"] * 3


def test_modules_that_import_each_other_are_refused(joined: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match=r"import each other: a.js, b.js, a.js"):
        joined(a='import {b} from "./b.js";\n', b='import {a} from "./a.js";\nexport const b = 1;\n')


@pytest.mark.parametrize(
    "text",
    ['import * as b from "./b.js";', 'import "./b.js";', "export default 1;", "export {b};", "export let b = 1;"],
)
def test_other_imports_and_exports_are_refused(joined: Callable[..., str], text: str) -> None:
    with pytest.raises(ValueError, match="another kind of import or export"):
        joined(a=f"{text}\n", b="")
