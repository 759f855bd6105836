"""What each program that reads SFrame wants of it: one place for all that writes or checks a section for one.

Read were: the GNU C Library 2.43 (`sysdeps/generic/sframe*.c`), and Linux's readers for user space and for the arm64
kernel (`kernel/unwind/sframe.c`, `kernel/unwind/user.c`, `arch/arm64/kernel/stacktrace.c`) in the newest published
revisions; docs/reference/consumers.md says which.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.arch import AARCH64, AMD64, MACHINES, Machine
from walkback.base.arrays import Bools
from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError
from walkback.sframe import layout
from walkback.table.rule import PartKind, of_kind
from walkback.table.table import UnwindTable

SIGNAL_CODE = "code that signal handlers return to"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A program that reads SFrame, and what it wants."""

    name: str
    title: str
    """As a sentence about it begins."""
    version: int
    """The one that it reads."""
    machines: tuple[Machine, ...]
    flags: int
    """Those that it demands."""
    walks: bool
    """Whether it walks stacks."""
    looks_up_returns: bool = True
    """Whether it looks return addresses up, as they are; else only where a thread was interrupted."""
    without_rule: str = "the walk falls back"
    """What happens where it finds no rule that it can follow."""
    reads_outermost: bool = True
    """Whether it knows a row without words. Otherwise such a row is an error, and no row can be the end of a stack."""
    finds_signals: bool = False
    """Whether it knows by its bytes the code that signal handlers return to, where there is no function."""
    needs_row: bool = False
    """Whether an address without a row is an error if a function has it, and not if none has."""

    def unwanted(self, table: UnwindTable) -> Iterator[tuple[str, Bools]]:
        """Which ranges must not be in a section for it: the reason, and for each range whether it is one of them."""
        if not self.reads_outermost:
            outermost = table.rows_where(of_kind(table.rules["ra"], PartKind.UNDEFINED)) > 0
            yield f"an outermost frame, where {self.title} wants no function", outermost
        if self.finds_signals:
            yield f"{SIGNAL_CODE}, where {self.title} wants no function", table.range_signal
        if self.needs_row:
            first = np.zeros(len(table), np.uint32)
            some = table.range_rows > 0
            first[some] = table.row_offset[table.range_first_row[some]]
            yield f"code without a row, for which {self.title} drops the whole section", ~some | (first > 0)


LINUX = Consumer(
    name="linux",
    title="Linux",
    version=3,
    machines=MACHINES,
    flags=layout.F_FDE_SORTED | layout.F_FDE_FUNC_START_PCREL,
    walks=True,
    needs_row=True,
)
GLIBC = Consumer(
    name="glibc",
    title="the GNU C Library",
    version=2,
    machines=(AMD64, AARCH64),
    flags=layout.F_FDE_SORTED,
    walks=True,
    reads_outermost=False,
    finds_signals=True,
)
LINUX_KERNEL = Consumer(
    name="linux-kernel",
    title="the arm64 kernel",
    version=3,
    machines=(AARCH64,),
    flags=layout.F_FDE_SORTED | layout.F_FDE_FUNC_START_PCREL,
    walks=True,
    looks_up_returns=False,
    without_rule="the stack is unreliable",
    reads_outermost=False,
)
GNU_LD = Consumer(
    name="gnu-ld",
    title="GNU ld",
    version=3,
    machines=MACHINES,
    flags=layout.F_FDE_FUNC_START_PCREL,
    walks=False,
)
CONSUMERS = {one.name: one for one in (LINUX, LINUX_KERNEL, GLIBC, GNU_LD)}
WALKERS = {one.name: one for one in (LINUX, GLIBC)}
"""Those that a finished file is made for."""
TARGETS = {**WALKERS, GNU_LD.name: GNU_LD}
"""Those that tables are made for. The arm64 kernel reads what its own linker wrote."""


def consumer_named(name: str, among: dict[str, Consumer] = TARGETS) -> Consumer:
    """The consumer of this name."""
    if name not in among:
        raise ArgumentError(f"there is no consumer {name!r}; known: {', '.join(among)}")
    return among[name]


def check_version(version: object) -> None:
    """Refuse what is not the number of a version."""
    if version not in {None, *layout.VERSIONS}:
        raise ArgumentError(f"version {version!r} is not known; versions 1, 2 and 3 are")


def version_for(version: int | None, consumer: Consumer | None) -> int:
    """The version to write: what is asked for, or what the consumer reads, or 3."""
    check_version(version)
    if consumer is None:
        return 3 if version is None else version
    if version not in {None, consumer.version}:
        raise ArgumentError(f"{consumer.title} reads version {consumer.version}, not {version}")
    return consumer.version
