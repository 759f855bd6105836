"""Ways to be stopped while a file is written."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def without_privilege() -> list[str]:
    """What makes a command heed permissions even if root runs it."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if not shutil.which("setpriv") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("root may write everywhere")
    return prefix


SLOW = """
import os, time
def stop(_):
    print("writing", flush=True)
    time.sleep(60)
os.fsync = stop
from walkback.cli import main
main()
"""
