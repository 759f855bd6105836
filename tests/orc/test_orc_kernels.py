"""Real kernels and their modules against the objtool that made their tables."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import walkback
from peers import peer, root, run
from walkback.elf import ElfFile
from walkback.orc import encode, from_table
from walkback.orc.layout import Base, Kind, Layout
from walkback.packages.walk import FoundFile, elf_files_in
from walkback.table import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from walkback.orc.files import OrcSource

KERNELS = {"6.1": Layout.LINUX_4_14, "6.12": Layout.LINUX_6_4, "new": Layout.LINUX_7_2}
LEAST = {"6.1": 450_000, "6.12": 520_000, "new": 440_000}
"""Entries of the kernel and of the modules."""
SAMPLE = 25
"""Modules that objtool prints: it takes a process each."""
INDIRECT = {Base.SP_INDIRECT: "(sp){:+d}", Base.BP_INDIRECT: "(bp{:+d})"}

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module", params=KERNELS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def modules(version: str, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The modules, unpacked."""
    folder, found = tmp_path_factory.mktemp("modules"), []
    for path in sorted(root(f"kernel-{version}").glob("**/*.ko*")):
        [elf] = elf_files_in(str(path))
        assert isinstance(elf, FoundFile)
        found.append(folder / path.name.partition(".ko")[0])
        found[-1].write_bytes(bytes(elf.data))
    return found


def kernel(version: str) -> OrcSource:
    """The table of the kernel itself, out of its vmlinuz."""
    [path] = root(f"kernel-{version}").glob("**/vmlinuz*")
    [found] = elf_files_in(str(path))
    assert isinstance(found, FoundFile)
    [source] = walkback.orc.read(ElfFile(found.data, str(path)))
    return source


def source_of(module: Path) -> OrcSource | None:
    try:
        [source] = walkback.orc.read(module)
    except walkback.MissingError:  # a module without code
        return None
    return source


def as_objtool_prints(source: OrcSource) -> Iterator[str]:
    """A line for each entry."""
    table, names = source.entries, source.elf.section_names()
    columns = (table.section, table.address, table.sp_offset, table.bp_offset, table.sp_base, table.bp_base)
    for section, address, sp_offset, bp_offset, sp, bp, kind, signal in zip(
        *(column.tolist() for column in (*columns, table.kind, table.signal)), strict=True
    ):
        place = f"{names[section]}+{address:x}:" if section >= 0 else f"{address:x}:"
        registers = f"sp:{value(sp, sp_offset)} bp:{value(bp, bp_offset)}"
        if source.layout is Layout.LINUX_4_14:
            word = {Kind.REGS: "regs", Kind.REGS_PARTIAL: "regs (partial)"}.get(Kind(kind), "call")
            yield f"{place} {registers} type:{word} end:{int(kind == Kind.END_OF_STACK)}"
        else:
            word = ("(und)", "end", "call", "regs", "regs (partial)")[kind]
            yield f"{place}type:{word} {registers} signal:{int(signal)}"


def value(base: int, offset: int) -> str:
    if base == Base.UNDEFINED:
        return "(und)"
    form = INDIRECT.get(Base(base))
    name = Base(base).name.lower().replace("_", "")
    return form.format(offset) if form is not None else f"{name}{offset:+d}"


def printed(version: str, path: Path) -> list[str]:
    command = [peer(f"objtool-{version}"), "--dump=orc", str(path)]
    environment = os.environ | {"SRCARCH": "x86"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_entries_of_modules_are_those_that_objtool_prints(version: str, modules: list[Path]) -> None:
    for path in modules[:: len(modules) // SAMPLE]:
        source = source_of(path)
        lines = [] if source is None else list(as_objtool_prints(source))
        assert lines == printed(version, path)


def test_entries_of_the_kernel_are_those_that_objtool_prints(version: str, tmp_path: Path) -> None:
    source = kernel(version)
    path, stripped = tmp_path / "vmlinux", tmp_path / "stripped"
    stripped.write_bytes(bytes(source.elf.data))
    # Without any symbol objtool prints nothing.
    run("objcopy-2.44", "--add-symbol", "some=.text:0,function,global", stripped, path, check=True)
    assert list(as_objtool_prints(source)) == printed(version, path)


def test_every_table_is_written_as_it_was(version: str, modules: list[Path]) -> None:
    """Byte for byte; and through the neutral table but for entries that say nothing new."""
    entries = 0
    whole = kernel(version)
    [place] = whole.elf.sections["addr"][whole.elf.sections_named(".orc_unwind_ip")].tolist()
    encoded = encode(whole.entries, address=place)
    assert (encoded.entries, encoded.places) == (bytes(whole.data), bytes(whole.places))
    for source in filter(None, map(source_of, modules)):
        entries += len(source.entries)
        assert source.layout is KERNELS[version]
        assert encode(source.entries).entries == bytes(source.data)
        again = from_table(source.table, source.layout)
        assert len(again) <= len(source.entries)
        assert rules_at_every_entry(source) == rules_at_every_entry(source, again)
        if len(again) == len(source.entries) and is_ordered(source):
            assert encode(again).entries == bytes(source.data)
    assert entries + len(whole.entries) > LEAST[version]


def is_ordered(source: OrcSource) -> bool:
    """Whether objtool ran once, and not on each of the objects that the module was linked from."""
    table = source.entries
    key = (table.section.astype(np.uint64) << np.uint64(40)) + table.address
    return bool((key[1:] > key[:-1]).all())


def rules_at_every_entry(source: OrcSource, other: walkback.orc.OrcTable | None = None) -> list[list[str]]:
    """The rules of a table, or of one made from other entries, at the places of the entries."""
    table = source.table if other is None else walkback.orc.to_table(other)
    found, texts = [], [*table.rule_texts(), "none"]
    for section in np.unique(source.entries.section).tolist():
        places = np.unique(source.entries.address[source.entries.section == section])
        _, rows = table.find_many(places, section=section)
        found.append([texts[table.row_rule[row]] if row >= 0 else texts[-1] for row in rows.tolist()])
    return found


def test_sframe_of_a_module_says_the_same(version: str, modules: list[Path], tmp_path: Path) -> None:
    for path in modules[:: len(modules) // 5]:
        if source_of(path) is None:
            continue
        made = walkback.add(path, tmp_path / "with.ko")
        assert made.derived.covered == made.derived.functions
        [pair] = walkback.compare(tmp_path / "with.ko")
        assert (pair.one, pair.other, pair.comparison.equal) == (".orc_unwind", ".sframe", True)


def test_modules_are_proved(version: str, modules: list[Path]) -> None:
    proved = reached = wrong = 0
    for path in modules[::20]:
        if source_of(path) is None:
            continue
        [verified] = walkback.verify(path)
        assert verified.table == ".orc_unwind"
        wrong += verified.functions_wrong
        proved, reached = proved + verified.proved, reached + verified.reached
    assert wrong == 0
    assert proved > 0.999 * reached > 0


def test_rules_from_the_code_are_those_of_the_table(version: str, modules: list[Path]) -> None:
    """Functions return by a jump to a thunk. The CFA may count from another register, where the stack is aligned.

    Bytes alone are in the alternatives of an instruction that the kernel patches.
    """
    equal = only_orc = 0
    for module in modules[:: len(modules) // SAMPLE]:
        if source_of(module) is None:
            continue
        [pair] = walkback.compare(module, tables="orc", other_tables="code")
        equal += pair.comparison.code_bytes(Verdict.EQUAL)
        only_orc += pair.comparison.code_bytes(Verdict.ONLY_ONE)
        for stretch in pair.comparison.stretches(Verdict.DIFFERENT):
            rules = [rule.partition(", FP")[0] for rule in (stretch.one, stretch.other)]
            assert rules[0] == rules[1] or stretch.size == 1 or re.match(r"CFA = r1[03],", rules[0]), (module, stretch)
    assert equal > 0.8 * (equal + only_orc)
