"""Programs of Debian's that other compilers made than tests can run: `make peers` brings them, unpacked."""

from __future__ import annotations

import os
from pathlib import Path

import peers
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile

ARCHITECTURES = ("amd64", "arm64", "s390x")


def sampled(architecture: str, pattern: str) -> Path:
    """A file of the packages for an architecture, by its path, in which `*` may stand."""
    found = sorted(peers.root(f"samples-{architecture}").glob(pattern))
    return next((path for path in found if not path.is_symlink()), None) or peers.missing(
        f"{pattern} for {architecture}"
    )


def opened(path: str | os.PathLike[str]) -> tuple[ElfFile, list[FrameSource]]:
    """A file with its call frame information."""
    elf = ElfFile(path)
    return elf, list(frame_sources(elf))
