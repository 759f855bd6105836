"""A command that is started, and held until somebody is ready to record it."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
from collections.abc import Mapping, Sequence

from walkback.base.errors import UnreadableError


class Command:
    """A child process, which becomes the command when it is let go.

    >>> from walkback.capture.recorder.command import Command
    >>> command = Command(["true"])
    >>> command.let_go()
    >>> command.wait()
    0
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        files: tuple[int, int] | None = None,
    ) -> None:
        """It gets this environment, and these limits of open files; without them those of this process."""
        self.words = list(words)
        self._environment = os.environ if environment is None else environment
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE) if files is None else files
        self._held, holder = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            self._become(holder)
        holder.close()

    def __repr__(self) -> str:
        return f"Command({self.words!r}, pid={self.pid})"

    def _become(self, holder: socket.socket) -> None:
        """In the child: wait, then become the command, at which the socket is closed."""
        try:
            self._held.close()
            if holder.recv(1):
                # Python ignores these, which a program does not expect.
                for number in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_NOFILE, self._files)
                os.execvpe(self.words[0], self.words, self._environment)  # noqa: S606 - that is what the user wants
        except (OSError, ValueError) as error:
            # Python has a ValueError for a name without letters.
            code = error.errno if isinstance(error, OSError) else errno.ENOENT
            with contextlib.suppress(OSError):
                holder.send(str(code).encode(), socket.MSG_NOSIGNAL)
        finally:
            os._exit(127)

    def let_go(self) -> None:
        """Let it begin; raises an error if there is no such program."""
        with self._held, contextlib.suppress(ConnectionError):  # it was killed before it began
            self._held.send(b"\0", socket.MSG_NOSIGNAL)
            refusal = self._held.recv(16)
            if refusal:
                self.wait()
                raise UnreadableError(os.strerror(int(refusal)), file=self.words[0] or "''")

    def give_up(self) -> None:
        """Do not let it begin."""
        self._held.close()
        self.wait()

    @property
    def is_running(self) -> bool:
        """Whether it has begun, and has not ended."""
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return self._held.fileno() < 0 and ended is None

    def wait(self) -> int:
        """The exit status as a shell has it, once it has ended."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code
