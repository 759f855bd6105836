"""Finds the folder of a store by its name: a path, or the address of a bucket."""

from __future__ import annotations

import os

from walkback.store.folder import StoreFolder


def open_folder(name: str | os.PathLike[str], *, create: bool = False) -> StoreFolder:
    """The folder of a store; with `create` it is made if it is not there."""
    text = os.fspath(name)
    if isinstance(text, str) and "://" in text:
        from walkback.store.bucket.folder import BucketFolder

        return BucketFolder(text, create=create)
    return StoreFolder(name, create=create)
