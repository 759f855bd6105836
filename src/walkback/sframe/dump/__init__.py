"""Sections as text: readable, as GNU readelf prints them, as llvm-readobj does, and as JSON.

Each module has one function `dump(view)` that yields pieces of text; a piece is valid until the next is asked for.
"""

from walkback.sframe.dump.view import View

__all__ = ["View"]
