from typing import Any

class Tables:
    def __init__(self, columns: dict[str, Any], uses: bool) -> None: ...
