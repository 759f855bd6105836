"""Programs for perf to record: each does for a second what is hard to walk, most of them in several threads."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAD = r"""
#define _GNU_SOURCE
#ifndef FORKS
#define FORKS 0
#endif
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define HARD __attribute__((noinline))
volatile unsigned long sink;
/* So much of the processor's time, however busy the machine is; a parent of many processes takes little. */
static void limit(void) {
    struct itimerval t = {{0, 0}, {0, 500000}};
    setitimer(ITIMER_VIRTUAL, &t, 0);
    alarm(FORKS ? 1 : 3);
}
HARD void spin(int n) { for (volatile int i = 0; i < n; i++) sink++; }
"""

THREADED = r"""
static void *again(void *p) { for (;;) work((long)p); return 0; }
int main(int n, char **v) {
    pthread_t t;
    prepare(n, v);
    limit();
    pthread_create(&t, 0, again, (void *)1);
    again(0);
}
"""

RECURSION = r"""
static void prepare(int n, char **v) {}
HARD int deep(int n) { if (!n) { spin(300); return 1; } int r = deep(n - 1) + 1; spin(n & 3); sink += r; return r; }
HARD int wide(int n) {
    volatile char room[4000];
    room[n] = n;
    if (!n) { spin(900); return 1; }
    return wide(n - 1) + room[n];
}
HARD void work(long w) { if (w) sink += deep(300 + (sink & 127)); else sink += wide(90); }
"""
"""One thread is hundreds of frames deep, the other deeper than what perf copies of a stack."""

SIGNALS = r"""
static char other[1 << 16];
static void handler(int s) { spin(700); }
static void with_info(int s, siginfo_t *i, void *c) { if (sink % 3 == 0) raise(SIGUSR2); spin(700); }
static void elsewhere(int s) { spin(500); if (sink % 5 == 0) raise(SIGUSR1); spin(200); }
static void prepare(int n, char **v) {
    struct sigaction a = {0};
    a.sa_handler = handler; sigaction(SIGUSR2, &a, 0);
    a.sa_sigaction = with_info; a.sa_flags = SA_SIGINFO; sigaction(SIGUSR1, &a, 0);
    a.sa_handler = elsewhere; a.sa_flags = SA_ONSTACK; sigaction(SIGPROF, &a, 0);
    a.sa_handler = handler; a.sa_flags = SA_ONSTACK | SA_NODEFER; sigaction(SIGSEGV, &a, 0);
}
static __thread int ready;
HARD void leaf(int n) { sink += n; }
HARD void work(long w) {
    if (!ready) {
        stack_t s = {0};
        s.ss_sp = w ? malloc(sizeof other) : other; s.ss_size = sizeof other;
        sigaltstack(&s, 0);
        ready = 1;
    }
    for (int i = 0; i < 50; i++) leaf(i);
    if (sink % 4 == 0) raise(SIGUSR1); else if (sink % 4 == 1) raise(SIGPROF); else if (sink % 4 == 2) raise(SIGSEGV);
    else spin(300);
}
"""

ALIGNED = r"""
static void prepare(int n, char **v) {}
HARD int aligned(int n, char *p) {
    __attribute__((aligned(64))) volatile double v[8];
    char *q = alloca(n * 7 + 1);
    memset(q, n, n * 7 + 1);
    v[n & 7] = q[n] + (p ? *p : 0);
    if (n == 0) { spin(40); return (int)v[0]; }
    int r = aligned(n - 1, q) + (int)v[n & 7];
    spin(9);
    return r + q[0];
}
HARD int many(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
    __attribute__((aligned(32))) volatile int w[8];
    w[a & 7] = g + h + i;
    return aligned(b & 15, 0) + w[a & 7] + c + d + e + f;
}
HARD void work(long w) { sink += many(sink, sink + 1, 3, 4, 5, 6, 7, 8, 9); }
"""

LOADING = r"""
static char *path;
static void prepare(int n, char **v) { path = v[1]; }
HARD void work(long w) {
    void *library = dlopen(path, RTLD_LAZY);
    if (!library) abort();
    int (*f)(int) = (int (*)(int))dlsym(library, "outer");
    sink += f(3);
    if (sink % 3) dlclose(library);
    else { dlclose(library); spin(100); }
}
"""

LOADED = (
    HEAD
    + "".join(f"HARD int f{i}(int n) {{ spin(5); return n + {i}; }}\n" for i in range(60))
    + "int outer(int n) {\n"
    + "".join(f"    n += f{i}(n);\n" for i in range(60))
    + '    return n + atoi("12") + abs(n) + (int)strlen(getenv("PATH"));\n}\n'
)
"""A library whose calls, also those to itself, are bound when they are made the first time."""

LIBRARY = r"""
static void prepare(int n, char **v) {}
static int order(const void *a, const void *b) { spin(2); return *(const int *)a - *(const int *)b; }
HARD void sort(void) {
    int v[64];
    for (int i = 0; i < 64; i++) v[i] = i * 7919 % 101;
    qsort(v, 64, sizeof *v, order);
    sink += v[3];
}
HARD void work(long w) {
    char text[200];
    struct timespec now;
    sort();
    snprintf(text, sizeof text, "%lu %g %s", sink, sink / 3.0, "x");
    sink += strtod(text, 0);
    for (int i = 0; i < 99; i++) {
        clock_gettime(w ? CLOCK_MONOTONIC : CLOCK_REALTIME_COARSE, &now);
        sink += now.tv_nsec + time(0);
    }
    free(malloc(sink % 4000));
}
"""
"""The C library and the vDSO."""

FORKS = r"""
static void prepare(int n, char **v) { if (n > 1) { spin(2000000); _exit(0); } path = v[0]; }
HARD void child(int n) { spin(2000000); if (n & 1) _exit(0); execl(path, path, "child", (char *)0); abort(); }
HARD void work(long w) {
    pid_t pid = (sink & 2) ? fork() : vfork();
    if (!pid) child(sink & 1);
    waitpid(pid, 0, 0);
    sink++;
}
"""

JUMPS = r"""
static void prepare(int n, char **v) {}
static __thread jmp_buf back;
HARD int last(int n) { spin(30); return n + 1; }
HARD int tail(int n) { sink++; return n & 7 ? tail(n - 1) : last(n); }
HARD int (*volatile indirect)(int) = tail;
HARD void deeper(int n) { spin(20); if (!n) longjmp(back, 1); deeper(n - 1); spin(1); }
HARD void work(long w) {
    if (!setjmp(back)) deeper(sink & 15);
    sink += indirect(sink & 63);
}
"""
"""Tail calls and jumps out of functions."""

CPP = r"""
#include <csignal>
#include <map>
#include <regex>
#include <string>
#include <sys/time.h>
#include <thread>
#include <vector>
volatile unsigned long sink;
#define HARD __attribute__((noinline))
struct Guard { int n; HARD ~Guard() { sink += n; } };
HARD int thrower(int n) { Guard g{n}; if (n == 0) throw std::string("a"); return thrower(n - 1) + 1; }
HARD int catcher(int n) { try { return thrower(n); } catch (const std::string &s) { return s.size(); } }
HARD int matching() {
    static const std::regex pattern("(a|b)*c([0-9]+)-(x+x+)+y?");
    std::smatch found;
    std::string text = "ababababababc123-xxxxxxxx" + std::string(sink % 9, 'x');
    return std::regex_match(text, found, pattern) ? found.size() : 0;
}
__attribute__((noinline)) void run(int w) {
    std::map<int, std::string> held;
    for (;;) {
        sink += w ? matching() : catcher(sink % 19);
        held[sink % 999] = std::to_string(sink);
    }
}
int main() {
    itimerval t = {{0, 0}, {0, 500000}};
    setitimer(ITIMER_VIRTUAL, &t, nullptr);
    std::thread one(run, 1);
    run(0);
    one.join();
}
"""

PYTHON = r"""
import threading, signal
signal.setitimer(signal.ITIMER_REAL, 0.8)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def deep(n): return sorted([3, 1, 2], key=lambda one: one + (deep(n - 1) if n and one == 3 else 0))[0]
def run():
    while True: fib(12); deep(40)
threading.Thread(target=run, daemon=True).start()
run()
"""

PERL = r"""
use Time::HiRes; Time::HiRes::ualarm(700000);
sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
while (1) { fib(12); my @sorted = sort { fib(3); $a <=> $b } map { ($_ * 7919) % 101 } 1 .. 50; "aaaaab" =~ /(a|aa)+$/ }
"""

NODE = r"""
setTimeout(() => process.exit(0), 10);
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const end = Date.now() + 800;
while (Date.now() < end) {
    fib(20);
    [5, 2, 9].sort((a, b) => fib(5) * 0 + a - b);
    JSON.parse(JSON.stringify({ a: [1, 2, { b: "c" }] }));
}
"""

USUAL = ("-O2", "-fomit-frame-pointer", "-w", "-pthread")


@dataclass(frozen=True)
class Program:
    """What to record, and how much of each stack."""

    text: str
    options: tuple[str, ...] = ()
    dump: int = 16384
    language: str = "c"


KEPT = "-fno-optimize-sibling-calls"
PROGRAMS = {
    "recursion": Program(HEAD + RECURSION + THREADED, (KEPT,), dump=65528),
    "signals": Program(HEAD + SIGNALS + THREADED, (KEPT,)),
    "aligned": Program(HEAD + ALIGNED + THREADED, ("-mavx", KEPT)),
    "loading": Program(HEAD + LOADING + THREADED, ("-Wl,-z,lazy",)),
    "library": Program(HEAD + LIBRARY + THREADED, ("-Wl,-z,lazy",)),
    "forks": Program(HEAD + "static char *path;" + FORKS + THREADED, (KEPT, "-DFORKS=1")),
    "static": Program(HEAD + LIBRARY + THREADED, ("-static",)),
    "static-pie": Program(HEAD + SIGNALS + THREADED, ("-static-pie", KEPT)),
    "jumps": Program(HEAD + JUMPS + THREADED, ("-fcf-protection=full", "-fPIE", "-pie")),
    "frame-pointers": Program(HEAD + ALIGNED + THREADED, ("-fno-omit-frame-pointer", KEPT)),
    "cpp": Program(CPP, language="c++"),
    "python": Program(PYTHON, language="python3"),
    "perl": Program(PERL, language="perl"),
    "node": Program(NODE, language="node"),
}


def command_of(program: Program, folder: Path) -> list[str | Path]:
    """What runs a program, which is compiled if it has to be."""
    if program.language in {"python3", "perl", "node"}:
        return [runtime(program.language), "-e" if program.language != "python3" else "-c", program.text]
    made: list[str | Path] = [built(folder, "program", program.text, *program.options, language=program.language)]
    if "dlopen" in program.text and "path = v[1]" in program.text:
        made.append(built(folder, "loaded.so", LOADED, "-shared", "-fPIC", "-Wl,-z,lazy", "-Wno-error"))
    return made


def runtime(name: str) -> str:
    """A language's own program, not a script that looks for one."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    if name == "python3":
        done = subprocess.run(
            [found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()
    return found


def built(folder: Path, name: str, text: str, *options: str, language: str = "c") -> Path:
    """A program or a library."""
    compiler = shutil.which("g++" if language == "c++" else "gcc")
    if compiler is None:
        pytest.skip(f"needs a compiler for {language}")
    source, output = folder / f"{name}.{'cc' if language == 'c++' else 'c'}", folder / name
    source.write_text(text)
    done = subprocess.run(
        [compiler, *USUAL, "-o", output, source, *options], capture_output=True, text=True, check=False
    )
    if done.returncode and "-static" in options:
        pytest.skip("needs static libraries")
    assert done.returncode == 0, done.stderr
    return output
