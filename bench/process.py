"""Runs a command with its output in a file: prints the seconds it took, those on processors, and its peak kilobytes.

A process of its own, and a small one: the kernel counts the memory of the starting process in the peak of the started.
"""

import os
import sys
import time


def main() -> None:
    output, *command = sys.argv[1:]
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, file, 1)])
    _, status, usage = os.wait4(pid, 0)
    print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
