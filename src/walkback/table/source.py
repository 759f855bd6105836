"""Where an unwind table stands in a file, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine
from walkback.elf import machine_of

if TYPE_CHECKING:
    from walkback.base.arch import Machine
    from walkback.elf import ElfFile
    from walkback.table.table import UnwindTable

Kind = Literal["cfi", "go", "orc", "code"]
"""Call frame information, Go's table of functions, the kernel's ORC table, or the code itself."""


@dataclass(repr=False)
class TableSource(OneLine, ABC):
    """A section with a table, or a part of a segment."""

    kind: ClassVar[Kind]

    elf: ElfFile
    name: str
    """Of the section or the segment."""
    data: memoryview
    address: int

    @property
    def file(self) -> str:
        """The path; for a member of an archive `archive(member)`."""
        return self.elf.name

    @property
    def machine(self) -> Machine:
        """The machine whose registers the rules name."""
        return machine_of(self.elf)

    @property
    def bytes(self) -> int | None:
        """How many bytes the table takes, if that is known."""
        return len(self.data)

    def name_of(self, _function: int) -> str | None:
        """The name that the table itself has for a function."""
        return None

    @property
    @abstractmethod
    def table(self) -> UnwindTable:
        """The neutral table."""
