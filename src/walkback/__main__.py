"""The command `walkback`, which is `python -m walkback` too."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. An interrupt during the imports ends it as it ends a C program, without a traceback."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from walkback.cli import main as run

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
