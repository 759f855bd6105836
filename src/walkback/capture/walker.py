"""The walker for what a source of stacks has."""

from __future__ import annotations

from typing import Any, Protocol

from walkback.base.arch import ByteOrder, Machine
from walkback.base.arraycache import ArrayCache, default_folder
from walkback.naming.modules import VDSO, Modules
from walkback.walking.cache import TableCache
from walkback.walking.walker import Walker


class StackSource(Protocol):
    """A process, a core file or a recording."""

    machine: Machine
    byteorder: ByteOrder


def walker_for(source: StackSource, modules: Modules, *, cache: bool, **options: Any) -> Walker:
    """A walker with the files of these modules; the options are those of `Walker`.

    With `cache` tables of large files are kept on disk.
    """
    return Walker(
        source.machine,
        source.byteorder,
        lambda number: modules[number].elf,
        is_kernels=lambda number: modules[number].name == VDSO,
        rules_of=lambda number: modules[number].rules,
        cache=TableCache(ArrayCache(default_folder()) if cache else None),
        **options,
    )
