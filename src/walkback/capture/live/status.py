"""What `/proc` says of processes and threads, and why some cannot be looked at."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from walkback.base.errors import UnreadableError
from walkback.capture.live.tracing import NOT_IN_TIME

ZOMBIE = "it has ended, and its parent has not asked for its status yet (a zombie)"


def _status(pid: int) -> dict[str, str]:
    """`/proc/PID/status`, empty if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="backslashreplace")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in lines}


def checked(pid: int, label: str) -> int:
    """The number of the process that a thread belongs to, if it can have stacks of this machine at all."""
    status = _status(pid)
    if not status:
        raise UnreadableError("there is no such process", file=label)
    if status.get("Kthread") == "1":
        raise UnreadableError("a kernel thread has no user stack", file=label)
    number = int(status.get("Tgid", pid))
    if status.get("State", "").startswith(("Z", "X")) and status.get("Threads", "1") == "1":
        raise UnreadableError(ZOMBIE, file=label)
    if _is_32_bit(number):
        raise UnreadableError("it is a 32-bit process, and these are not supported", file=label)
    return number


def _is_32_bit(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/exe").open("rb") as file:
            return file.read(5) == b"\x7fELF\x01"
    except OSError as error:
        # Without the right to look at it, stopping it will say why.
        if error.errno not in {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ESRCH}:
            raise UnreadableError(error.strerror or str(error), file=f"process {pid}") from error
        return False


def inner_number(tid: int) -> int:
    """The number that a thread has for itself, which is another one in a container."""
    numbers = _status(tid).get("NSpid", "").split()
    return int(numbers[-1]) if numbers else tid


def has_ended(tid: int) -> bool:
    """Also the first thread, which stays a zombie until all others have ended."""
    return _status(tid).get("State", "X").startswith(("Z", "X"))


def reason(tid: int, why: str) -> str:
    """The reason with who traces it already, if somebody does."""
    status = _status(tid)
    tracer = status.get("TracerPid", "0")
    if why.startswith("it may not") and tracer != "0":
        # A thread is.
        return f"{why}: process {_status(int(tracer)).get('Tgid', tracer)} is tracing it"
    if why == NOT_IN_TIME:
        return f"{why} (state {status.get('State', 'unknown')})"
    return why


def name_in(path: str) -> str:
    """What a file as `/proc/PID/comm` has; empty if there is none."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read().removesuffix(b"\n"))
    except OSError:
        return ""


def is_held(pid: int) -> bool:
    """Whether a process is stopped, by a signal or a tracer."""
    return _status(pid).get("State", "").startswith(("T", "t"))


def is_foreign(pid: int) -> bool:
    """Whether a process is that of another user."""
    owner = _status(pid).get("Uid", "").split()
    return bool(owner) and int(owner[0]) != os.geteuid()
