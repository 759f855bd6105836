"""Runs `walkback unwind` on damaged recordings, in a process that may not use much memory or time.

Given a folder of recordings and a list of arguments for each; prints a line of JSON for each run.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

MEMORY = 2 << 30
SECONDS = 20


class Output(io.TextIOWrapper):
    """Keeps what is printed."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", errors="surrogateescape")

    @property
    def contents(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(errors="replace")


def run(arguments: list[str]) -> dict[str, object]:
    """One command line, from its arguments to its exit status."""
    import click

    from walkback.cli.main import cli

    out, err = Output(), Output()
    begun = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        signal.alarm(SECONDS)
        try:
            status = cli.main(["unwind", *arguments], standalone_mode=False)
        except click.ClickException as error:
            status = f"usage: {error.format_message()}"
        except BaseException:
            status = traceback.format_exc()
        finally:
            signal.alarm(0)
    return {
        "arguments": arguments,
        "status": status or 0,
        "out": out.contents[-200_000:],
        "err": err.contents[-4000:],
        "seconds": time.process_time() - begun,
    }


def main() -> None:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("too long")))
    for line in Path(sys.argv[1]).read_text().splitlines():
        print(json.dumps(run(json.loads(line))), flush=True)
    # Not getrusage's, which begins with what the process had that started this one.
    peak = re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[0]
    print(json.dumps({"peak": int(peak)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
