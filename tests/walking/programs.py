"""C and C++ programs that keep doing what is hard to walk, and gdb's view of them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define HARD __attribute__((noinline, noclone, noipa))
#ifdef __cplusplus
#undef HARD
#define HARD __attribute__((noinline, noclone))
#endif
volatile unsigned long sink;
HARD void spin(int n) { for (volatile int i = 0; i < n; i++) sink++; }
"""

RECURSION = (
    HEAD
    + r"""
HARD int deep(int n) { int r; if (n == 0) { spin(50); return 1; }
    r = deep(n - 1) + 1; spin(n & 7); sink += r; return r; }
int main(void) { for (;;) sink += deep(60 + (sink & 63)); }
"""
)

ALIGNED = (
    HEAD
    + r"""
HARD int aligned(int n, char *p) {
    __attribute__((aligned(64))) volatile double v[8];
    char *q = alloca(n * 7 + 1);
    memset(q, n, n * 7 + 1);
    v[n & 7] = q[n] + (p ? *p : 0);
    if (n == 0) { spin(20); return (int)v[0]; }
    int r = aligned(n - 1, q) + (int)v[n & 7];
    spin(5);
    return r + q[0];
}
HARD int many(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
    __attribute__((aligned(32))) volatile int w[8];
    w[a & 7] = g + h + i;
    return aligned(b & 15, 0) + w[a & 7] + c + d + e + f;
}
int main(void) { for (;;) sink += many(sink, sink + 1, 3, 4, 5, 6, 7, 8, 9); }
"""
)

SIGNALS = (
    HEAD
    + r"""
#include <sys/time.h>
#include <time.h>
static char other[1 << 16];
HARD void work(int n) { if (n) { work(n - 1); sink++; return; } spin(3000); }
static void on_alarm(int s) { work(s & 3); }
static void on_usr1(int s, siginfo_t *i, void *c) { if (sink % 7 == 0) raise(SIGUSR2); work(2); }
static void on_usr2(int s) { spin(2000); }
HARD int leaf(int n) { return n * 3 + sink; }
int main(void) {
    stack_t st = {0};
    st.ss_sp = other; st.ss_size = sizeof other;
    sigaltstack(&st, 0);
    struct sigaction sa = {0};
    sa.sa_handler = on_alarm; sa.sa_flags = SA_ONSTACK | SA_RESTART; sigaction(SIGALRM, &sa, 0);
    sa.sa_sigaction = on_usr1; sa.sa_flags = SA_SIGINFO; sigaction(SIGUSR1, &sa, 0);
    sa.sa_handler = on_usr2; sa.sa_flags = 0; sigaction(SIGUSR2, &sa, 0);
    struct itimerval it = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &it, 0);
    for (;;) { sink += leaf(3); if (sink % 3 == 0) raise(SIGUSR1); work(5); }
}
"""
)

LIBRARY = (
    HEAD
    + r"""
static int order(const void *a, const void *b) { spin(3); return *(const int *)a - *(const int *)b; }
HARD void sort(void) { int v[64];
    for (int i = 0; i < 64; i++) v[i] = i * 7919 % 101; qsort(v, 64, sizeof *v, order); sink += v[3]; }
int main(void) {
    char text[200];
    for (;;) { sort(); snprintf(text, sizeof text, "%lu %g %s", sink, sink / 3.0, "x");
        sink += strtod(text, 0); free(malloc(sink % 4000)); }
}
"""
)

LOADING = (
    HEAD
    + r"""
#include <dlfcn.h>
int main(int n, char **v) {
    for (;;) {
        void *h = dlopen(v[1], RTLD_LAZY);
        if (!h) return 1;
        int (*f)(int) = (int (*)(int))dlsym(h, "outer");
        sink += f(3);
        dlclose(h);
    }
}
"""
)

LOADED = (
    HEAD
    + r"""
int one(int n); int two(int n);
__attribute__((visibility("default"), noinline)) int one(int n) { spin(30); return n + 1; }
__attribute__((visibility("default"), noinline)) int two(int n) { return one(n) + abs(n) + atoi("12"); }
__attribute__((visibility("default"))) int outer(int n) { return two(n) + one(n); }
"""
)

THROWING = (
    HEAD
    + r"""
#include <string>
#include <vector>
struct Guard { int n; HARD ~Guard() { spin(20); sink += n; } };
HARD int thrower(int n) { Guard g{n};
    if (n == 0) throw std::string("a"); int r = thrower(n - 1); sink += r; return r + 1; }
HARD int catcher(int n) { try { return thrower(n); } catch (const std::string &s) { spin(50); return s.size(); } }
int main() { std::vector<int> v; for (;;) { v.push_back(catcher(sink % 9)); if (v.size() > 99) v.clear(); } }
"""
)

THREADS = (
    HEAD
    + r"""
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HARD void *run(void *p) {
    for (;;) { pthread_mutex_lock(&lock); spin(30); pthread_mutex_unlock(&lock); usleep(10); } return 0; }
int main(void) { pthread_t t; for (int i = 0; i < 3; i++) pthread_create(&t, 0, run, 0); run(0); }
"""
)


def built(folder: Path, name: str, text: str, *options: str, compiler: str = "gcc") -> Path:
    """A program, without frame pointers unless the options say otherwise."""
    program = shutil.which(compiler)
    if program is None:
        pytest.skip(f"needs {compiler}")
    source, output = folder / f"{name}.{'cc' if compiler == 'g++' else 'c'}", folder / name
    source.write_text(text)
    usual = ("-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w")
    done = subprocess.run(
        [program, *usual, "-o", output, source, *options], capture_output=True, text=True, check=False
    )
    if done.returncode and "-static" in options:
        pytest.skip("needs static libraries")
    assert done.returncode == 0, done.stderr
    return output


@contextlib.contextmanager
def running(*command: str | Path, lazy: bool = True) -> Iterator[int]:
    env = {} if lazy else {"LD_BIND_NOW": "1"}
    process = subprocess.Popen([str(part) for part in command], env=env, stdout=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


GDB = r"""
set pagination off
set confirm off
set backtrace past-main on
set backtrace past-entry on
python
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None and len(pcs) < 500:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            break
    print("STACK", thread.ptid[1] or thread.ptid[0], *pcs)
end
"""


def gdb_stacks(pid: int, folder: Path) -> dict[int, list[int]]:
    """The program counters of each thread of a process, innermost first.

    Inlined functions and calls that were jumps have no frame of their own; gdb knows of them by debug data.
    """
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("needs gdb")
    script = folder / "stacks.gdb"
    script.write_text(GDB)
    command: list[str | Path] = [
        gdb,
        "-nx",
        "-batch",
        "-iex",
        "set debuginfod enabled off",
        "-p",
        str(pid),
        "-x",
        script,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("STACK ")]
    if not lines:
        pytest.skip(f"gdb cannot look at a process here: {done.stderr[-200:]}")
    return {int(tid): [int(pc) for pc in pcs] for tid, *pcs in lines}
