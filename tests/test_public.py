"""What is public: the names of each package, what importing costs, and that every name is documented and typed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import walkback

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = {
    "walkback": """
        CODES FORMATS Accuracy Added Built Code Collector Comparing Comparison Converted CoreFile Derived
        DwarfError ElfError ElfFile End ExistingSize Finding Fixed Format Found FrameKind FrameSource Frames
        Functions GraftError How IncompleteError InexpressibleError Kind LeftOut Linked Machine Match Memory
        MissingError Module Modules Pair Part Parts Piece Place Process Profile Reason Recording Refusal Refused
        Replacement Report Rule SFrameError SampleBatch Samples Section SectionBuilder Severity Shapes Shot
        Sizes Snapshot Source Space Split Stacks Stopper Stray Stretch Uncovered UnreadableError UnwindTable
        Unwinding Verdict VersionSize WalkbackError Walker accuracy add build cfi_sources check check_source
        compare convert decode derive drop encode fix from_bytes link link_object lookup measure pairs pieces
        Backtrace Backtraces Ends Located Locator check_backtraces decode_backtrace decode_backtraces
        encode_backtrace encode_backtraces explain_backtraces kept_ends locate_frames split_backtraces
        ArgumentError BacktraceError CapturedImages Dropped Image ImageMap check_images decode_images encode_images
        explain_images images_from_json images_object images_of_core images_of_process images_of_recording
        Change Difference Hot Naming Neighbour Selection Store Through difference hottest write_difference
        DaskWorkers LocalWorkers Progress Surveyed open_survey survey_files write_binary_page write_survey_page
        profile refusals sources split stacks_of_core stacks_of_process to_table total_size with_byteorder
    """,
    "walkback.cif": """
        STYLES Image ImageMap Part Style check_images decode_images encode_images explain_images images_from_json
        images_object
    """,
    "walkback.graft": """
        Grafted ObjectSection Rewriting add add_to_object drop is_grafted is_recorded planned_address set_sections
    """,
    "walkback.cbf": """
        MOST_FRAMES MOST_OF_ALL STYLES SWIFT_MOST_REPEATS Backtrace Backtraces Ends Fault Instruction Kind backtrace
        check_backtraces decode_backtrace decode_backtraces encode_backtrace encode_backtraces encode_columns
        explain_backtraces from_objects kept_ends split_backtraces to_objects
    """,
    "walkback.table": """
        OUTERMOST REASON_WORDS RULE Found Kind Part Reason Rule UnwindTable inexpressible joined rule_array
    """,
    "walkback.elf": """
        DEBUG_ROOTS RELOCATION_TABLE RELOCATION_TARGET SECTION_RELOCATION SYMBOL_TABLE
        Contents DebugLink ElfFile Member Note OpenFile Relocated Relocations
        debug_data debug_file debug_link elf_files in_pieces is_archive is_elf is_stored members read_file relocated
        relocations_for whole
    """,
    "walkback.symbols": "SymbolIndex",
    "walkback.cli": "main",
    "walkback.sframe.check": """
        CODES CONSUMERS LISTED Code Finding Report Severity Witness Witnesses check_section
    """,
    "walkback.sframe.dump": "View",
}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_these(package: str) -> None:
    module = import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'walkback' has no attribute 'frobnicate'"):
        walkback.frobnicate  # noqa: B018
    assert set(walkback.__all__) <= set(dir(walkback))


def test_every_public_name_is_documented() -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert set(walkback.__all__) <= words


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name in walkback.__all__ if name != "CODES" and not getattr(walkback, name).__doc__] == []


def imported_by(code: str) -> set[str]:
    """The modules that the code loads."""
    code += "\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = imported_by("import walkback")
    assert not modules & {"numpy", "click", "Cython", "cython"}
    assert {name for name in modules if name.startswith("walkback")} == {"walkback"}
    assert "numpy" in imported_by("import walkback; walkback.decode")


def test_help_loads_no_numpy() -> None:
    for args in (["--help"], ["show", "--help"], ["check", "--help"], ["find", "--help"]):
        code = (
            "import contextlib, io\nfrom walkback.cli.main import cli\n"
            f"with contextlib.redirect_stdout(io.StringIO()):\n    cli({args}, standalone_mode=False)"
        )
        assert "numpy" not in imported_by(code)


def test_the_package_is_typed() -> None:
    package = Path(walkback.__file__).parent
    assert (package / "py.typed").exists()
    kernels = re.findall(r'"(walkback\.[\w.]+)"', (ROOT / "setup.py").read_text().partition(")")[0])
    assert kernels
    for kernel in kernels:
        assert (package.parent / (kernel.replace(".", "/") + ".pyi")).exists()
