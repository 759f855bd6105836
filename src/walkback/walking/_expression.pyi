from typing import Any

DONE: int
MEMORY: int
UNKNOWN: int

class Expressions:
    def __init__(self, first: Any, end: Any, data: Any) -> None: ...
