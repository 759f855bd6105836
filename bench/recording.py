"""Records programs by `walkback record` and by `perf record --call-graph dwarf`, in turn, and compares what they say.

For each program: by how much the shares of its hottest functions differ, between runs of perf and from perf to
walkback; how many stacks are complete; how much longer the program took under each than alone; and the bytes on disk,
which for walkback are those of a store.

`recording.py [--runs N] [--frequency HERTZ] [PROGRAM...]`
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HOTTEST = 30
COLUMNS = ("perf-perf", "to perf", "complete", "of perf", "slower", "of perf", "bytes", "of perf")
WALKBACK = Path(sys.executable).with_name("walkback")
_CXX = "#include <regex>\n#include <map>\n#include <iostream>\n" + "".join(
    f"std::map<int, std::string> m{n};\n"
    f'bool f{n}(std::string s) {{ return std::regex_match(s, std::regex("a{n}+")); }}\n'
    for n in range(12)
)
_PYTHON = """
import json, re
for n in range(200):
    data = [{"n": i, "s": "x" * (i % 30)} for i in range(2000)]
    text = json.dumps(data, indent=n % 3)
    json.loads(text)
    re.findall(r"x{3,5}[^x]", text)
    sorted(data, key=lambda one: one["s"])
"""
_NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (let i = 0; i < 250; i++) {
  fib(24);
  JSON.parse(JSON.stringify({ all: [...Array(20000).keys()] }));
  /(\\d+)x/.test([...Array(30000).keys()].join(' '));
}
"""
_GO = """
package main
import ("fmt"; "sort"; "strings")
func work(n int) int { m := map[string]int{}; for i := 0; i < n; i++ { m[fmt.Sprint(i%9999)] += i }
  k := make([]string, 0); for s := range m { k = append(k, s) }; sort.Strings(k); return len(strings.Join(k, ",")) }
func main() { done := make(chan int); for g := 0; g < 4; g++ { go func() { done <- work(8000000) }() }
  for g := 0; g < 4; g++ { fmt.Println(<-done) } }
"""
_RUST = """
use std::collections::HashMap;
fn work(n: u64) -> usize { let mut m = HashMap::new();
  for i in 0..n { *m.entry(format!("{}", i % 9999)).or_insert(0) += i; }
  let mut k: Vec<_> = m.keys().cloned().collect(); k.sort(); k.join(",").len() }
fn main() { println!("{}", work(20_000_000)); }
"""
_THREADS = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static int order(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static void *work(void *_) { int n[4000]; for (int r = 0; r < 120; r++) {
  for (int i = 0; i < 4000; i++) n[i] = rand(); qsort(n, 4000, 4, order); memmove(n, n + 1, 4000); } return 0; }
int main(void) { pthread_t t[200]; for (int i = 0; i < 200; i++) pthread_create(t + i, 0, work, 0);
  for (int i = 0; i < 200; i++) pthread_join(t[i], 0); }
"""
_FORKS = "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done"


def programs(folder: Path) -> dict[str, list[str]]:
    """Ten programs, as far as this machine has what builds them."""
    for name, text in {
        "a.cc": _CXX, "a.py": _PYTHON, "a.js": _NODE, "a.go": _GO, "a.rs": _RUST, "threads.c": _THREADS
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    subprocess.run(["gcc", "-O2", "-pthread", "-o", "threads", "threads.c"], cwd=folder, check=True)
    peers = Path(__file__).parent.parent / ".peers"
    go = next((one for root in (Path("/"), peers / "go-new") for one in root.glob("usr/lib/go-*/bin/go")), None)
    if go is not None:
        env = {**os.environ, "GOFLAGS": "-mod=mod", "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
        subprocess.run([go, "build", "-o", "go", "a.go"], cwd=folder, check=True, env=env)
    if (
        shutil.which("rustc")
        and not subprocess.run(["rustc", "-O", "-o", "rust", "a.rs"], cwd=folder, check=False).returncode
    ):
        pass
    data = folder / "data"
    data.write_bytes(Path(sys.executable).resolve().read_bytes() * 400)
    found = {
        "gcc": ["g++", "-O1", "-c", "a.cc", "-o", "a.o"],
        "python": [sys.executable, "a.py"],
        "node": ["node", "a.js"],
        "git": ["git", "-C", str(Path(__file__).parent), "log", "--stat", "-n", "2500"],
        "go": ["./go"],
        "rust": ["./rust"],
        "200 threads": ["./threads"],
        "1000 forks": ["sh", "-c", _FORKS],
        "perl": [
            "perl",
            "-e",
            "my %h; for (1..12000000) { $h{$_ % 9999} .= 'x' if $_ =~ /7$/ } print length join ',', sort keys %h",
        ],
        "xz": ["xz", "-k", "-c", "-6", "-T1", "data"],
    }
    return {
        name: words
        for name, words in found.items()
        if shutil.which(words[0], path=f"{os.environ['PATH']}:{folder}") or (folder / words[0]).exists()
    }


def timed(command: list[str], folder: Path) -> float:
    """The seconds that the program itself takes, whatever comes before and after it."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, cwd=folder, **quiet, check=False)
    return float((folder / "elapsed").read_text().split()[-1])


def shares(folded: str) -> tuple[dict[str, float], float]:
    """The share of samples of each innermost function, and that of complete stacks."""
    own: Counter[str] = Counter()
    complete = 0
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        own[stack.rpartition(";")[2]] += int(weight)
        complete += 0 if "[incomplete" in stack else int(weight)
    total = max(sum(own.values()), 1)
    return {name: count / total for name, count in own.items()}, complete / total


def run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def farthest(one: dict[str, float], other: dict[str, float], names: list[str]) -> float:
    return max((abs(one.get(name, 0) - other.get(name, 0)) for name in names), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="*")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--frequency", type=int, default=499)
    parser.add_argument("--perf", default="perf")
    options = parser.parse_args()
    print(f"{'program':12}" + "".join(f"{one:>10}" for one in COLUMNS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, words in programs(folder).items():
            if not options.program or title in options.program:
                compare(title, words, folder, options)


def compare(title: str, words: list[str], folder: Path, options: argparse.Namespace) -> None:
    """A line for a program."""
    rate = str(options.frequency)
    words = ["time", "-f", "%e", "-o", "elapsed", *words]
    perf = [
        options.perf,
        "record",
        "-q",
        "-F",
        rate,
        "-e",
        "cpu-clock",
        "--call-graph",
        "dwarf,16384",
        "-o",
        "perf.data",
    ]
    options_of_ours = ("-F", rate, "--no-inline", "--mark-incomplete", "--store", "store", "-o", "out.folded")
    ways = {
        "alone": words,
        "perf": [*perf, "--", *words],
        "walkback": [str(WALKBACK), "record", *options_of_ours, "--", *words],
    }
    ours, theirs = [], []
    times: dict[str, list[float]] = {way: [] for way in ways}
    sizes: dict[str, int] = {}
    for _ in range(options.runs):
        # In another order each time: a machine that has just worked hard may be slower.
        for way in random.sample(list(ways), len(ways)):
            times[way].append(timed(ways[way], folder))
        sizes["perf"] = (folder / "perf.data").stat().st_size
        sizes["walkback"] = sum(one.stat().st_size for one in (folder / "store").rglob("*.parquet"))
        theirs.append(shares(run([str(WALKBACK), "unwind", "perf.data", "--no-inline", "--mark-incomplete"], folder)))
        ours.append(shares((folder / "out.folded").read_text()))
        shutil.rmtree(folder / "store")
    mean: Counter[str] = Counter()
    for found, _ in theirs:
        for function, share in found.items():
            mean[function] += share / len(theirs)
    names = [function for function, _ in mean.most_common(HOTTEST)]
    between = [farthest(a[0], b[0], names) for a, b in itertools.combinations(theirs, 2)]
    across = [farthest(a[0], b[0], names) for a in ours for b in theirs]
    medians = {way: statistics.median(values) for way, values in times.items()}
    slower = {way: median / medians["alone"] - 1 for way, median in medians.items()}
    complete = [statistics.mean(one[1] for one in side) for side in (ours, theirs)]
    figures = [statistics.median(between), statistics.median(across), *complete, slower["walkback"], slower["perf"]]
    counts = [sizes["walkback"], sizes["perf"]]
    print(
        f"{title:12}" + "".join(f"{one:10.2%}" for one in figures) + "".join(f"{one:10}" for one in counts), flush=True
    )


if __name__ == "__main__":
    main()
