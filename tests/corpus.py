"""The corpus: files with a `.sframe` section that real assemblers and linkers wrote, for tests to compare on.

Made from the hand-written `cfi-cases/` and from the C and C++ of `corpus-src/`, by every peer for every machine, once:
they stay in `.cache/corpus/` until a source, a peer or this file changes. What a program refuses or crashes on is not
fatal; `failures()` names it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from peers import BIN, peer

if TYPE_CHECKING:
    from collections.abc import Iterable

TESTS = Path(__file__).resolve().parent
CASES = TESTS / "cfi-cases"
SOURCES = TESTS / "corpus-src"
CACHE = TESTS.parent / ".cache" / "corpus"

PREFIXES = {"amd64": "", "aarch64": "aarch64-", "s390x": "s390x-"}
PRODUCERS = {  # the assemblers, and the machines for which each writes SFrame
    "2.40": ("amd64", "aarch64"),
    "2.44": ("amd64", "aarch64"),
    "new": ("amd64", "aarch64", "s390x"),
    "llvm": ("amd64",),
}
PAIRS = [(arch, producer) for producer, archs in PRODUCERS.items() for arch in archs]
LEVELS = ("-O0", "-O2", "-O2 -fno-omit-frame-pointer", "-Os")
PROTECTED = {"amd64": ("-O2 -fcf-protection=full",), "aarch64": ("-O2 -mbranch-protection=standard",)}

OPEN = "--unresolved-symbols=ignore-all"
PROGRAM = "plain.c-O2.o shapes.cc-O2.o"
COMDAT = "amd64-comdat-a.o amd64-comdat-b.o"
# Kind, name, command and inputs: made of one assembler's objects for one machine, by the tools of its version,
# wherever all the inputs are there.
LINKS = (
    ("shared", "libcalls.so", "ld -shared -soname libcalls.so", "calls.c-O2.o"),
    ("shared", "program.so", "ld -shared", PROGRAM),
    ("shared", "program-now.so", "ld -shared -z now", PROGRAM),
    ("shared", "program-emit-relocs.so", "ld -shared --emit-relocs", PROGRAM),
    ("shared", "program-discard.so", "ld -shared --discard-sframe", PROGRAM),
    ("shared", "large-and-plain.so", "ld -shared", "large.c-O0.o plain.c-O0.o shapes.cc-O0.o"),
    ("shared", "comdat.so", "ld -shared", COMDAT),
    ("shared", "plt-ibt.so", "ld -shared -z ibtplt", "amd64-plt-lazy.o"),
    ("shared", "plt-now.so", "ld -shared -z now", "amd64-plt-lazy.o"),
    ("shared", "plt-got-ibt.so", "ld -shared -z ibtplt", "amd64-plt-got.o"),
    ("relocatable", "program-r.o", "ld -r", PROGRAM),
    ("relocatable", "comdat-r.o", "ld -r", COMDAT),
    ("executable", "program-static", f"ld -e 0 {OPEN}", PROGRAM),
    ("executable", "comdat-gc", "ld -e _start --gc-sections", COMDAT),
    ("executable", "nested-state", f"ld -e 0 {OPEN}", "amd64-nested-state-and-cold-part.o"),
    ("executable", "far-text", "ld -T CASES/amd64-far-text.ld", "amd64-frame-and-big-stack.o"),
    ("archive", "program.a", "ar rcs", f"{PROGRAM} calls.c-O2.o"),
    ("archive", "thin.a", "ar rcsT", PROGRAM),
    ("lld", "program-lld.so", "ld.lld -shared", PROGRAM),
    ("lld", "program-lld-r.o", "ld.lld -r", PROGRAM),
    ("lld", "plt-lazy-lld.so", "ld.lld -shared", "amd64-plt-lazy.o"),
)
LINKS_OF_LINKED = (
    ("executable", "program-dynamic", f"ld -e 0 {OPEN}", f"{PROGRAM} libcalls.so"),
    ("executable", "program-pie", f"ld -pie -e 0 {OPEN}", f"{PROGRAM} libcalls.so"),
    ("executable", "plt-lazy-pie", "ld -pie", "amd64-plt-lazy.o libcalls.so"),
    ("executable", "plt-got-pie", "ld -pie", "amd64-plt-got.o libcalls.so"),
    ("executable", "plt-pie-aarch64", "ld -pie -e foo", "aarch64-plt-calls.o libcalls.so"),
    ("executable", "plt-pie-s390x", "ld -pie -e foo", "s390x-plt-calls.o libcalls.so"),
    ("shared", "program-stripped.so", "strip", "program.so"),
)


@dataclass(frozen=True)
class Sample:
    """One file of the corpus; `producer` is the assembler, and also the linker unless the kind is `lld`."""

    path: Path
    arch: str  # amd64, aarch64, s390x
    producer: str  # 2.40, 2.44, new, llvm
    kind: str  # object, relocatable, shared, executable, archive, lld
    source: str  # the sources, and the options that matter


@dataclass(frozen=True)
class Job:
    """A command that makes a sample's file; its path, and those in the command, are relative to the corpus."""

    sample: Sample
    command: tuple[str, ...]

    def run(self, folder: Path) -> str:
        """Makes the file; returns what went wrong, or nothing."""
        output = folder / self.sample.path
        output.parent.mkdir(parents=True, exist_ok=True)
        env = os.environ | {"LC_ALL": "C"}
        try:
            done = subprocess.run(self.command, cwd=folder, env=env, capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "no end in two minutes"
        if done.returncode == 0:
            return ""
        output.unlink(missing_ok=True)
        lines = done.stderr.decode(errors="replace").splitlines()
        return [*(line for line in lines if "rror" in line), *lines, f"exit status {done.returncode}"][0]


def tool(arch: str, name: str, version: str) -> str:
    """The path of a tool of a producer; LLVM has no `ld` of its own version apart from lld."""
    if name == "ld.lld" or version == "llvm":
        return peer(name if name == "ld.lld" else f"llvm-{name}")
    return peer(f"{PREFIXES[arch]}{name}-{version}")


def assembler(arch: str, version: str) -> tuple[str, ...]:
    """The command that assembles with SFrame; `-o`, the output and the input are to follow."""
    if version == "llvm":
        return peer("llvm-mc"), "--gsframe", "-filetype=obj", "-triple=x86_64-linux-gnu"
    return tool(arch, "as", version), "--gsframe"


def compiler(arch: str, source: Path) -> str:
    """The host's own compiler for AMD64, since there the peers run; a cross compiler for the others."""
    name = "g++" if source.suffix == ".cc" else "gcc"
    return peer(PREFIXES[arch] + name) if PREFIXES[arch] else shutil.which(name) or peer(name)


def compilations(arch: str) -> list[Job]:
    """The C and C++ sources to assembly."""
    levels = (*LEVELS, *PROTECTED.get(arch, ()))
    wanted = [(SOURCES / name, level) for name in ("plain.c", "shapes.cc") for level in levels]
    wanted += [(SOURCES / "amalgamated.c", level) for level in LEVELS[:3]]
    wanted += [(SOURCES / "large.c", "-O0"), (SOURCES / "large.c", "-O2"), (SOURCES / "calls.c", "-O2")]
    wanted += [(source, "-O2") for source in sorted(CASES.glob(f"{arch}-*.cc"))]
    jobs = []
    for source, options in wanted:
        path = Path(arch, "assembly", f"{source.name}{options.replace(' ', '')}.s")
        flags = (
            *options.split(),
            "-idirafter",
            str(BIN.parent / "bookworm" / "usr" / "include"),
            "-fPIC",
            "-fasynchronous-unwind-tables",
            "-fno-use-cxa-atexit",
        )
        command = (compiler(arch, source), *flags, "-S", "-o", str(path), str(source))
        sample = Sample(path, arch, "", "assembly", f"{source.name} {options}")
        jobs.append(Job(sample, command))
    return jobs


def assemblies(arch: str, producer: str, compiled: Iterable[Sample]) -> list[Job]:
    """The hand-written cases and the compilers' output to objects."""
    sources = [(path, path.name) for path in sorted(CASES.glob(f"{arch}-*.s"))]
    sources += [(sample.path, sample.source) for sample in compiled if sample.arch == arch]
    jobs = []
    for source, title in sources:
        path = Path(arch, producer, f"{source.stem}.o")
        sample = Sample(path, arch, producer, "object", title)
        jobs.append(Job(sample, (*assembler(arch, producer), "-o", str(path), str(source))))
    return jobs


def made_of(inputs: list[Sample], kind: str, name: str, command: str) -> Job:
    """A job beside its inputs, for their machine and producer."""
    like = inputs[0]
    program, *options = command.split()
    path = like.path.with_name(name)
    output = [str(path)] if program == "ar" else ["-o", str(path)]
    files = [str(sample.path) for sample in inputs]
    options = [option.replace("CASES", str(CASES)) for option in options]
    sample = replace(like, path=path, kind=kind, source=" ".join([command, *(Path(name).name for name in files)]))
    return Job(sample, (tool(like.arch, program, like.producer), *options, *output, *files))


def singles(objects: list[Sample]) -> list[Job]:
    """A shared library of each hand-written case, and of each other source at -O2."""
    wanted = [sample for sample in objects if sample.source.endswith((".s", "-O2"))]
    kinds = {sample: "lld" if sample.producer == "llvm" else "shared" for sample in wanted}
    commands = {"lld": "ld.lld -shared", "shared": "ld -shared"}
    return [
        made_of([sample], kind, sample.path.with_suffix(".so").name, commands[kind]) for sample, kind in kinds.items()
    ]


def links(made: list[Sample], table: tuple[tuple[str, str, str, str], ...]) -> list[Job]:
    """What a table says, as far as the inputs and the tools are there."""
    jobs = []
    for arch, producer in PAIRS:
        here = {sample.path.name: sample for sample in made if (sample.arch, sample.producer) == (arch, producer)}
        for kind, name, command, inputs in table:
            taken = [here[part] for part in inputs.split() if part in here]
            gnu_ld = command.startswith("ld ")
            if len(taken) == len(inputs.split()) and not (gnu_ld and producer == "llvm"):
                jobs.append(made_of(taken, kind, name, command))
    return jobs


def build(folder: Path) -> None:
    """Makes the whole corpus in an empty folder, and its list."""
    failures: dict[str, str] = {}

    def run(jobs: list[Job]) -> list[Sample]:
        told = list(pool.map(lambda job: job.run(folder), jobs))
        failures.update({str(job.sample.path): why for job, why in zip(jobs, told, strict=True) if why})
        return [job.sample for job, why in zip(jobs, told, strict=True) if not why]

    with ThreadPoolExecutor(2) as pool:
        compiled = run([job for arch in PREFIXES for job in compilations(arch)])
        made = run([job for pair in PAIRS for job in assemblies(*pair, compiled)])
        made += run(singles(made) + links(made, LINKS))
        made += run(links(made, LINKS_OF_LINKED))
    # A thin archive only names its members, which have theirs beside it.
    kept = [one for one in made if one.kind == "archive" or b".sframe\0" in (folder / one.path).read_bytes()]
    samples = [asdict(sample) | {"path": str(sample.path)} for sample in sorted(kept, key=lambda one: one.path)]
    (folder / "corpus.json").write_text(json.dumps({"samples": samples, "failures": failures}, indent=1))


def contents() -> str:
    """A name for all that the corpus is made from."""
    sources = [Path(__file__), BIN.parent / "peers.json", *sorted(CASES.iterdir()), *sorted(SOURCES.iterdir())]
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    version = [compiler("amd64", Path("any.c")), "--version"]
    digest.update(subprocess.run(version, capture_output=True, check=True).stdout)
    return digest.hexdigest()[:16]


@cache
def folder_of_corpus() -> Path:
    """The folder with the corpus, which the first of several test processes makes while the others wait."""
    for arch, producer in PAIRS:
        assembler(arch, producer)
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / f"corpus-{contents()}"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for stale in CACHE.glob("corpus-*"):
                shutil.rmtree(stale)
            new = Path(tempfile.mkdtemp(prefix="corpus-", dir=CACHE))
            build(new)
            new.rename(folder)
    return folder


def corpus() -> list[Sample]:
    """All samples, in a stable order. Call it inside a test or fixture: without peers it skips."""
    folder = folder_of_corpus()
    told = json.loads((folder / "corpus.json").read_text())["samples"]
    return [Sample(**fields | {"path": folder / fields["path"]}) for fields in told]


def failures() -> dict[str, str]:
    """What could not be made, and the program's reason."""
    told: dict[str, str] = json.loads((folder_of_corpus() / "corpus.json").read_text())["failures"]
    return told


def gas_object(text: str, *, arch: str = "amd64", version: str = "new") -> Path:
    """An object assembled from a snippet with SFrame; the same snippet is assembled once."""
    command = assembler(arch, version)
    stamp = (BIN.parent / "peers.json").read_text()
    digest = hashlib.sha256(f"{arch} {version} {stamp} {text}".encode()).hexdigest()[:32]
    path = CACHE / "snippets" / f"{digest}.o"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            source, output = Path(scratch, "snippet.s"), Path(scratch, "snippet.o")
            source.write_text(text)
            done = subprocess.run([*command, "-o", output, source], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            output.rename(path)
    return path


if __name__ == "__main__":
    folder_of_corpus()
