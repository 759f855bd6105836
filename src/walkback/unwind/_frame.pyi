from typing import Any

from walkback.unwind._memory import Segments
from walkback.unwind._tables import Tables

class Frame:
    def __init__(self, columns: dict[str, Any], settings: dict[str, int], memory: Segments, tables: Tables) -> None: ...
