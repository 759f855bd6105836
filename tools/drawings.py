"""Draws what the documents show of code and of formats anew (`make drawings`); `--check` only compares.

Between `<!-- record NAME -->` and `<!-- end -->` a document has the drawing of a record and a table of its fields;
between `<!-- table NAME -->` and that it has a table alone. Behind `<!-- bars ... -->` stand numbers of its tables.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import otherrecords
import plots
import records
import sframerecords
import stackpage
import stacksteps

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[1] / "docs"
EXPLAINED, FORMATS = DOCS / "explained", DOCS / "reference" / "formats"
FUNCTIONS = EXPLAINED / "one-function.s"
RECORDS = {record.name: record for record in (*sframerecords.RECORDS, *otherrecords.RECORDS)}
MARKED = re.compile(r"(<!-- (?:record|table) ([\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def shown(match: re.Match[str]) -> str:
    """A record or a table in a document."""
    if match[2] in otherrecords.TABLES:
        return f"{match[1]}\n{otherrecords.TABLES[match[2]]}\n\n{match[3]}"
    record = RECORDS[match[2]]
    picture = f"![{record.title}, drawn]({record.name}.svg)"
    return f"{match[1]}\n{picture}\n\n{records.table(record)}\n\n{match[3]}"


def files() -> Iterator[tuple[Path, str]]:
    """All that is drawn, and where it is kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = stacksteps.assembled(FUNCTIONS, Path(folder))
        for name in ("total", "total_omitted"):
            fragment = stackpage.fragment(name, stacksteps.steps(path, name))
            yield FUNCTIONS.with_name(f"{name.replace('_', '-')}.html"), fragment
    yield FUNCTIONS.with_name("steps-head.html"), stackpage.head()
    yield FUNCTIONS.with_name("steps-foot.html"), stackpage.foot()
    for document in sorted(EXPLAINED.glob("*.md")):
        yield from plotted(document)
    used = set()
    for document in sorted(FORMATS.glob("*.md")):
        text = document.read_text()
        used |= {match[2] for match in MARKED.finditer(text)}
        yield document, MARKED.sub(shown, text)
    for name in sorted(used & RECORDS.keys()):
        yield FORMATS / f"{name}.svg", records.drawing(RECORDS[name])
    unused = sorted(RECORDS.keys() - used)
    assert not unused, f"no document shows {', '.join(unused)}"


def plotted(document: Path) -> Iterator[tuple[Path, str]]:
    """The plots of a document, and the document with them."""
    text = document.read_text()
    found = [plots.read(match, text) for match in plots.MARKED.finditer(text)]
    pictures = iter(f"\n![Numbers of the tables as bars]({bars.name}.svg)\n\n" for bars in found)
    yield document, plots.MARKED.sub(lambda match: f"{match[1]}{next(pictures)}{match[6]}", text)
    for bars in found:
        yield EXPLAINED / f"{bars.name}.svg", plots.drawing(bars)


def main(arguments: list[str]) -> int:
    stale = [(path, text) for path, text in files() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        if "--check" in arguments:
            print(f"{path.relative_to(DOCS)} is not what `make drawings` draws")
        else:
            path.write_text(text)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
