"""The sections of the Linux kernel's ORC table."""

from __future__ import annotations

from typing import Final

ENTRIES: Final = ".orc_unwind"
PLACES: Final = ".orc_unwind_ip"
HEADER: Final = ".orc_header"
