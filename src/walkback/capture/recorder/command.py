"""A command that is started, and held until somebody is ready to record it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence

from walkback.base.errors import UnreadableError


class Command:
    """A child process, which becomes the command when it is let go.

    >>> from walkback.capture.recorder.command import Command
    >>> command = Command(["true"])
    >>> command.let_go()
    >>> command.wait()
    0
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        started, self._go = os.pipe2(os.O_CLOEXEC)
        self._refused, refusal = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if not self.pid:
            self._become(started, refusal)
        os.close(started)
        os.close(refusal)

    def __repr__(self) -> str:
        return f"Command({self.words!r}, pid={self.pid})"

    def _become(self, started: int, refusal: int) -> None:
        """In the child: wait, then become the command."""
        try:
            os.close(self._go)
            if os.read(started, 1):
                # Python ignores these, which a program does not expect.
                for number in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                os.execvp(self.words[0], self.words)  # noqa: S606 - that is what the user wants
        except OSError as error:
            with contextlib.suppress(OSError):
                os.write(refusal, str(error.errno).encode())
        finally:
            os._exit(127)

    def let_go(self) -> None:
        """Let it begin; raises an error if there is no such program."""
        os.write(self._go, b"\0")
        os.close(self._go)
        refusal = os.read(self._refused, 16)
        os.close(self._refused)
        if refusal:
            self.wait()
            raise UnreadableError(os.strerror(int(refusal)), file=self.words[0])

    def give_up(self) -> None:
        """Do not let it begin."""
        os.close(self._go)
        os.close(self._refused)
        self.wait()

    def wait(self) -> int:
        """The exit status as a shell has it, once it has ended."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code
