"""The page of a server. Nothing of the store is in it: its script asks for that."""

from __future__ import annotations

import io

from walkback.base.dataclass import dataclass
from walkback.pages.page import write_page


@dataclass(frozen=True, slots=True)
class ServedPage:
    """A page, and the content policy that goes with it."""

    body: bytes
    policy: str


def served_page() -> ServedPage:
    """The page, which may ask its own server and no other."""
    out = io.BytesIO()
    policy = write_page(
        out,
        __package__,
        "serving.html",
        title="Stacks",
        styles=["export/flamegraph.css", "serving/serving.css"],
        script="serving/serving.js",
        data={},
        more_policy="; connect-src 'self'; form-action 'none'; base-uri 'none'",
    )
    return ServedPage(out.getvalue(), f"{policy}; frame-ancestors 'none'")
