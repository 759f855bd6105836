"""What happened while a recording was read, as numbers."""

from __future__ import annotations

from dataclasses import fields

from walkback.base.dataclass import dataclass


@dataclass
class RecordingCounts:
    """What happened while a recording was read."""

    records: int = 0
    samples: int = 0
    lost: int = 0
    """Records that the kernel had no room for."""
    lost_samples: int = 0
    unknown_records: int = 0
    unknown_ids: int = 0
    """Samples whose event is unknown."""
    damaged: int = 0
    """Records whose contents contradict their size."""
    without_registers: int = 0
    """Samples without the program's registers, as those of the kernel's own threads."""
    narrow: int = 0
    """Samples of 32-bit programs, whose registers are not taken."""
    early: int = 0
    """How often records were delivered before older ones might have come, so that not too many had to wait."""

    def add(self, others: RecordingCounts) -> None:
        """Count with what happened while another one was read."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(others, one.name))
