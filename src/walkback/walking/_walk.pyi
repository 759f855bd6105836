from typing import Any

WANTED: int

class Walk:
    def __init__(self, columns: dict[str, Any], settings: dict[str, int]) -> None: ...
    def run(self, order: Any, position: int, samples: tuple[Any, ...], found: tuple[Any, ...], ends: Any) -> int: ...
