"""Names of code addresses."""

from walkback.symbols.index import SymbolIndex

__all__ = ["SymbolIndex"]
