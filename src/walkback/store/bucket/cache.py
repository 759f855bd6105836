"""Where the files of a bucket's store are kept on this machine, so that they come once."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from walkback.base.arraycache import default_folder
from walkback.base.errors import UnreadableError
from walkback.base.locks import locked
from walkback.store import layout

_LARGEST = 4 << 30
"""Bytes that are kept from one run to the next, as far as nobody reads."""


def cache_folder(url: str, identity: str) -> Path:
    """The folder for a store at an address; one that was made anew there has another identity, and another folder."""
    name = hashlib.sha256(f"{url}\n{identity}".encode()).hexdigest()[:24]
    folder = default_folder() / "stores" / name
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for one in (folder.parent, folder):
        one.mkdir(mode=0o700, exist_ok=True)
        found = one.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise UnreadableError(
                "this is not a folder that only you can write, so nothing is kept in it", file=str(one)
            )
    return folder


def shrink(folder: Path, largest: int = _LARGEST) -> None:
    """Let those segments go that nobody used for longest, if all are too large and nobody reads."""
    with locked(folder / layout.LOCK, wait=False) as alone:
        if not alone:
            return
        segments = sorted(folder.glob(f"{layout.SEGMENT}*"), key=lambda path: -path.stat().st_mtime)
        size = 0
        for path in segments:
            size += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            if size > largest:
                shutil.rmtree(path)
