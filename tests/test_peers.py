"""The peers that `make peers` brings run, are what their names say, and wrote the corpus."""

import pytest
from corpus import PRODUCERS, corpus, failures, gas_object
from peers import run

PREFIXES = {"amd64": "", "aarch64": "aarch64-", "s390x": "s390x-"}
TOOLS = ("ar", "as", "ld", "objcopy", "objdump", "readelf", "strip")
PAIRS = [(arch, version) for version, archs in PRODUCERS.items() if version != "llvm" for arch in archs]
# What the programs cannot do, by the beginning of the path and by a part of the reason they give.
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


@pytest.mark.parametrize("arch", PREFIXES)
@pytest.mark.parametrize("version", ["2.40", "2.44", "new"])
def test_binutils_are_of_the_version_in_their_names(arch, version):
    for name in TOOLS:
        told = run(f"{PREFIXES[arch]}{name}-{version}", "--version", check=True).stdout.split(b"\n")[0]
        number = tuple(map(int, told.split()[-1].split(b".")[:2]))
        assert number >= (2, 46) if version == "new" else number == tuple(map(int, version.split(".")))


@pytest.mark.parametrize("name", ["llvm-mc", "llvm-objcopy", "llvm-readobj", "llvm-ar", "ld.lld"])
def test_llvm_knows_sframe_version_2(name):
    told = run(name, "--version", check=True).stdout.decode()
    assert int(told.split("LLVM version " if "LLVM version" in told else "LLD ")[1].split(".")[0]) >= 23


@pytest.mark.parametrize(("arch", "version"), PAIRS)
def test_readelf_dumps_what_its_assembler_wrote(arch, version):
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
def test_cross_compilers_write_assembly_with_cfi(arch, language, tmp_path):
    source = tmp_path / "f.cc"
    source.write_text("#include <stdlib.h>\nint f(int n) { return abs(n) + rand(); }\n")
    done = run(f"{arch}-{language}", "-O2", "-S", "-o", "-", source, check=True)
    assert b".cfi_def_cfa_offset" in done.stdout


class TestCorpus:
    def test_every_producer_made_samples_for_every_machine_it_knows(self):
        made = {(sample.producer, sample.arch) for sample in corpus()}
        assert made == {(producer, arch) for producer, archs in PRODUCERS.items() for arch in archs}

    def test_every_kind_is_there_for_every_version_of_binutils(self):
        kinds = {"object", "relocatable", "shared", "executable", "archive", "lld"}
        for arch, version in PAIRS:
            here = {sample.kind for sample in corpus() if (sample.arch, sample.producer) == (arch, version)}
            assert here == kinds, (arch, version)

    def test_samples_are_distinct_files_in_a_stable_order(self):
        paths = [sample.path for sample in corpus()]
        assert len(set(paths)) == len(paths)
        assert [sample.path for sample in corpus()] == paths
        assert all(path.is_file() for path in paths)

    def test_nothing_else_failed_than_what_the_programs_are_known_to_refuse(self):
        unknown = {
            path: why
            for path, why in failures().items()
            if not any(name in path and reason in why for name, reason in KNOWN_FAILURES)
        }
        assert unknown == {}
