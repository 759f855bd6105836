"""What this process was started with, before it changed some of it: a command is started with the same."""

from __future__ import annotations

import os
import resource
from dataclasses import field

from walkback.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Inherited:
    """The environment, and how many files may be open."""

    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    files: tuple[int, int] = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_NOFILE))
