from typing import Any

from walkback.walking._memory import Segments
from walkback.walking._tables import Tables

class Frame:
    def __init__(self, columns: dict[str, Any], settings: dict[str, int], memory: Segments, tables: Tables) -> None: ...
