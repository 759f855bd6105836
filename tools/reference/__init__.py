"""The generated part of the site, as an extension of Sphinx: `make docs` uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import man
from reference.accessible import make_accessible
from reference.blocks import filled
from reference.texts import write_texts


def _fill(_app: object, _page: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def _finish(app: Any, error: Exception | None) -> None:
    """Write what stands beside the pages."""
    if error is None:
        write_texts(app.env, Path(app.srcdir), Path(app.outdir))
        man.write(Path(app.outdir) / "man")
        make_accessible(Path(app.outdir))


def setup(app: Any) -> dict[str, bool]:
    """As Sphinx calls it."""
    app.connect("source-read", _fill)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
