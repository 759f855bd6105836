"""Machines on which nothing here can record: recordings made of emulated programs give the stacks that gdb shows."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from recordings.qemustops import REGISTERS, Emulated, run
from walkback.capture.unwinding import Unwinding
from walkback.stacks.stacks import END_WORDS, HOW_WORDS, End, How
from walkback.walking.moduletable import Only

pytestmark = pytest.mark.peers

COMMON = r"""
#define HARD __attribute__((noinline, noclone, noipa))
volatile long sink;
HARD long leaf(long a, long b) { return a * b + sink; }
HARD long keeping(long a, long *p) {
    long s = 0;
    for (int i = 0; i < 4; i++) s += p[i] * a + (p[i] ^ sink) * (a + i) - (p[3 - i] << (a & 3));
    return s;
}
HARD long room(int n) {
    volatile char *p = __builtin_alloca(n * 16 + 8);
    p[n] = n;
    long r = n ? room(n - 1) : leaf(n, 3);
    return r + p[n];
}
#ifdef __s390x__
HARD long kept(long a) { __asm__ volatile("lghi %%r14, 0" ::: "r14", "r10"); return a + sink; }
HARD long placed(long a) {
    volatile long held[40];
    for (int i = 0; i < 40; i++) held[i] = a + i;
    __asm__ volatile("lghi %%r14, 0" ::: "r14", "r11");
    return held[a & 31] + sink;
}
#else
HARD long kept(long a) { return leaf(a, 1); }
HARD long placed(long a) { return leaf(a, 2); }
#endif
"""

HOSTED = (
    COMMON
    + r"""
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
HARD int order(const void *a, const void *b) { return leaf(*(const int *)a, 1) - *(const int *)b; }
HARD void sort(void) {
    int v[9];
    for (int i = 0; i < 9; i++) v[i] = i * 7919 % 101;
    qsort(v, 9, sizeof *v, order);
    sink += v[3];
}
HARD long deep(int n) {
    long v[4] = {n, 2, 3, 4};
    if (!n) { sort(); return room(5) + keeping(n, v) + kept(3) + placed(4); }
    return deep(n - 1) + keeping(n, v);
}
void handler(int s) { sink += deep(2); }
int main(void) {
    static char text[1 << 16];
    int f = open("/proc/self/maps", O_RDONLY);
    for (;;) { int n = read(f, text, sizeof text); if (n <= 0) break; write(1, text, n); }
    signal(SIGUSR1, handler);
    for (;;) { sink += deep(6); raise(SIGUSR1); }
}
"""
)

FREESTANDING = (
    COMMON
    + r"""
HARD long deep(int n) {
    long v[4] = {n, 2, 3, 4};
    if (!n) return room(5) + keeping(n, v) + kept(3) + placed(4);
    return deep(n - 1) + keeping(n, v);
}
int main(void) { for (;;) sink += deep(9); }
"""
)

PLACES = ["leaf", "keeping", "room", "kept", "placed"]
MACHINES = {
    "aarch64": ("aarch64", ()),
    "s390x": ("s390x", ()),
    "s390x-z10": ("s390x", ("-march=z10", "-ffreestanding")),
    "aarch64-freestanding": ("aarch64", ("-ffreestanding",)),
    "aarch64-big": ("aarch64", ("-ffreestanding", "-mbig-endian")),
    "s390x-chained": ("s390x", ("-ffreestanding", "-march=z10", "-mbackchain")),
    "aarch64-unsigned": ("aarch64", ("-ffreestanding",)),
    "aarch64-signed": ("aarch64", ("-ffreestanding", "-mbranch-protection=pac-ret")),
    "aarch64-signed-all": ("aarch64", ("-ffreestanding", "-mbranch-protection=pac-ret+leaf+b-key")),
}
SIGNED = ("aarch64-signed", "aarch64-signed-all")


@pytest.fixture(scope="module")
def emulations(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Emulated]:
    made: dict[str, Emulated] = {}

    def of(name: str) -> Emulated:
        if name not in made:
            arch, options = MACHINES[name]
            alone = "-ffreestanding" in options
            text, places = (FREESTANDING, PLACES) if alone else (HOSTED, [*PLACES, "order", "sort"])
            if "signed" not in name:
                places = [f"*{place}" for place in places]
            made[name] = run(
                tmp_path_factory.mktemp(name), arch, text, places, *options,
                steps=() if "signed" in name else (1, 1, 1, 2, 5), most=120 if not alone else 240,
                freestanding=alone, big="-mbig-endian" in options,
            )  # fmt: skip
        return made[name]

    return of


def walked(
    emulated: Emulated, folder: Path, only: Only | None = None
) -> list[tuple[list[int], list[str], list[str], str]]:
    """Of each stop the program counters, the functions, how each was found, and how it ended."""
    path = folder / "perf.data"
    path.write_bytes(emulated.recording())
    found = []
    for batch in Unwinding(path, only=only, cache=False):
        for i in range(len(batch)):
            chosen = slice(int(batch.first[i]), int(batch.first[i + 1]))
            names = [batch.frames.symbol[number] or "" for number in batch.frame[chosen].tolist()]
            how = [HOW_WORDS[How(one)] for one in batch.how[chosen].tolist()]
            found.append((batch.pc[chosen].tolist(), names, how, END_WORDS[End(int(batch.end[i]))]))
    assert len(found) == len(emulated.stops)
    return found


@pytest.mark.parametrize("only", [None, "cfi", "sframe"])
@pytest.mark.parametrize("name", [name for name in MACHINES if name not in SIGNED])
def test_stacks_are_those_of_gdb(
    emulations: Callable[[str], Emulated], name: str, only: Only | None, tmp_path: Path
) -> None:
    emulated = emulations(name)
    assert len(emulated.stops) >= 40
    through_signals = 0
    for (pcs, names, how, end), stop in zip(walked(emulated, tmp_path, only), emulated.stops, strict=True):
        assert end == "complete", (names, stop.names)
        assert names[-1] == "_start"
        assert set(how[1:]) <= {"cfi", "derived", "signal"}
        if pcs == stop.pcs:
            continue
        # The emulator's own code that handlers return to is in no file, and gdb does not know it.
        assert "handler" in names
        assert how[names.index("handler") + 2] == "signal"
        assert pcs[: len(stop.pcs)] == stop.pcs
        assert len(stop.pcs) <= names.index("handler") + 2
        assert "raise" in names[names.index("handler") :]
        through_signals += 1
    assert "freestanding" in str(MACHINES[name]) or through_signals


def test_return_addresses_in_floating_point_registers(emulations: Callable[[str], Emulated], tmp_path: Path) -> None:
    """GCC keeps r14 and r15 of leaf functions there; gdb fails on that, but shows the callers where they begin."""
    emulated = emulations("s390x-z10")
    assembly = (emulated.program.parent / "program.s").read_text()
    kept = assembly[assembly.index("\nkept:") :].partition(".cfi_endproc")[0]
    moves = re.findall(r"ldgr\t%(f\d+),%(r\d+)", kept)
    assert ".cfi_register 14," in kept
    assert "r14" in dict(moves).values()
    stops = []
    for stop in emulated.stops:
        if stop.names[0] == "kept":
            # Behind the instructions that save, and the one that sets r14: each has 4 bytes.
            changed = {floating: stop.registers[general] for floating, general in moves}
            changed |= {"r14": 0, "pswa": stop.registers["pswa"] + 4 * len(moves) + 4}
            stops.append(dataclasses.replace(stop, registers=stop.registers | changed))
    assert stops
    inside = dataclasses.replace(emulated, stops=stops)
    for only in (None, "cfi", "sframe"):
        for (pcs, names, _, end), stop in zip(walked(inside, tmp_path, only), stops, strict=True):
            assert (pcs[1:], end) == (stop.pcs[1:], "complete")
            assert names == stop.names


@pytest.mark.parametrize("name", SIGNED)
def test_signed_return_addresses(emulations: Callable[[str], Emulated], name: str, tmp_path: Path) -> None:
    """gdb cannot take the signatures off here; it shows at the same breakpoints of the same program without them."""
    emulated, plain = emulations(name), emulations("aarch64-unsigned")
    assert sum(stop.pcs[1] >> 48 != 0 for stop in emulated.stops) > 10, "nothing is signed"
    assert len(plain.stops) == len(emulated.stops)
    for only in (None, "cfi", "sframe"):
        for (pcs, names, _, end), stop in zip(walked(emulated, tmp_path, only), plain.stops, strict=True):
            assert end == "complete"
            assert not any(pc >> 48 for pc in pcs)
            assert names == stop.names


@pytest.mark.parametrize("name", ["aarch64", "aarch64-freestanding", "aarch64-big", "s390x-chained"])
def test_chains_of_frame_pointers_have_all_but_the_caller(
    emulations: Callable[[str], Emulated], name: str, tmp_path: Path
) -> None:
    """A function that has no frame (yet) hides its caller from a chain; all others are as gdb shows them."""
    emulated = emulations(name)
    exact = unmade = 0
    for (pcs, names, how, end), stop in zip(walked(emulated, tmp_path, "fp"), emulated.stops, strict=True):
        if "handler" in names:
            continue
        without_caller = [stop.pcs[0], *stop.pcs[2:]]
        shown = [pc for pc, one in zip(pcs, names, strict=True) if one != "_start"]
        if len(pcs) == 1 or shown not in (stop.pcs[: len(shown)], without_caller[: len(shown)]):
            # On s390x the stack pointer moves before the back chain is written to where it points.
            unmade += 1
            continue
        assert set(how[1:]) == {"fp-guess"}
        assert "main" in names, (names, stop.names)
        assert end == "zero"
        exact += shown == stop.pcs[: len(shown)]
    assert exact
    assert unmade <= (len(emulated.stops) // 8 if "s390x" in name else 0)


@pytest.mark.parametrize("name", ["aarch64", "s390x", "aarch64-big"])
def test_perf_reads_these_recordings(emulations: Callable[[str], Emulated], name: str, tmp_path: Path) -> None:
    """What we take from a recording is what perf sees in it."""
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("needs perf")
    emulated = emulations(name)
    path = tmp_path / "perf.data"
    path.write_bytes(emulated.recording())
    done = subprocess.run(
        [perf, "script", "-D", "-i", path], capture_output=True, text=True, errors="replace", check=False
    )
    dumps = [(one.start(), one.group()) for one in re.finditer(r"PERF_RECORD_SAMPLE\(.*", done.stdout)]
    assert len(dumps) == len(emulated.stops), done.stderr
    edges = [*(place for place, _ in dumps), len(done.stdout)]
    for stop, (begin, end) in zip(emulated.stops, pairwise(edges), strict=True):
        text = done.stdout[begin:end]
        pc = stop.registers[REGISTERS[emulated.arch][-1]]
        assert re.search(rf"\.\.\.\. pc\s+0x0*{pc:x}\n", text, re.IGNORECASE), text[:3000]
        assert f"ustack: size {len(stop.stack)}" in text
        assert "user regs: mask" in text
