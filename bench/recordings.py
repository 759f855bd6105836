"""The recording that the measures of backtraces and of the store take their stacks from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from inputs import BIN, CACHE

_PERF = shutil.which("perf") or str(BIN / "perf")
_PYTHON = """
import ast, json, os, pathlib
for path in pathlib.Path(os.__file__).parent.glob("*.py"):
    try: json.dumps(ast.dump(ast.parse(path.read_bytes())))
    except (SyntaxError, RecursionError): pass
"""


def recording() -> Path:
    """A recording of g++ and of Python with its C code, made once: more than 20,000 different stacks."""
    folder = CACHE.with_name("bench-recording")
    data = folder / "perf.data"
    if not data.exists():
        folder.mkdir(parents=True, exist_ok=True)
        record = (_PERF, "record", "-q", "-e", "cpu-clock", "-F", "3000", "-m", "32M", "--call-graph", "dwarf,16384")
        source = Path(__file__).with_name("accuracy.cc")
        work = f"for i in 1 2; do g++ -O2 -c -o {os.devnull} {source}; done; {sys.executable} -I -c '{_PYTHON}'"
        subprocess.run([*record, "-o", data.with_suffix(".new"), "--", "sh", "-c", work], check=True)
        data.with_suffix(".new").rename(data)
    return data
