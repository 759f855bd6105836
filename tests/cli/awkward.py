"""Lines that names cannot break."""

from __future__ import annotations

import unicodedata


def lines(text: bytes) -> list[str]:
    """The lines of a text, which is sound UTF-8 and has no other control characters."""
    decoded = text.decode()
    controls = {one for one in decoded if unicodedata.category(one) == "Cc"}
    assert controls <= {"\n"}
    return decoded.split("\n")
