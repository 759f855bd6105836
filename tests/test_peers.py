"""The peers that `make peers` brings run, are what their names say, and wrote the corpus."""

from __future__ import annotations

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

pytestmark = pytest.mark.peers


def test_a_missing_peer_skips_and_fails_where_peers_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not have("readelf-0.1")
    monkeypatch.delenv("WALKBACK_PEERS", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"needs readelf-0\.1: run `make peers`"):
        peer("readelf-0.1")
    monkeypatch.setenv("WALKBACK_PEERS", "required")
    with pytest.raises(pytest.fail.Exception, match=r"needs readelf-0\.1"):
        peer("readelf-0.1")


@pytest.mark.parametrize("arch", PREFIXES)
@pytest.mark.parametrize("version", ["2.40", "2.44", "new"])
def test_binutils_are_of_the_version_in_their_names(arch: str, version: str) -> None:
    for name in TOOLS:
        told = run(f"{PREFIXES[arch]}{name}-{version}", "--version", check=True).stdout.split(b"\n")[0]
        number = tuple(map(int, told.split()[-1].split(b".")[:2]))
        assert number >= (2, 46) if version == "new" else number == tuple(map(int, version.split(".")))


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
