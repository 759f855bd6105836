"""`walkback compare`: what it tells of what is the same, different or in one table only, and its exit statuses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from cli.commands import run as process
from cli.commands import told
from cli.compared import NOT_TWO, PUSHED, added, objects
from cli.documented import undocumented
from cli.hello import derived, hello_object, narrow, patched, program, shell, whole
from cli.inprocess import run
from elfbuilder import ElfBuilder
from sframefiles import written

LEAP = "leap (3 bytes): CFA = rsp+8, RA = *(CFA-8), FP unchanged"
UNSAID = "leap+0x3 (6 bytes): no rule"
REASON = "the caller's SP is not the CFA"
ADDRESS = 0x500000


@pytest.fixture
def both(hello: Path) -> Path:
    return added(hello)


@pytest.fixture
def wrong(both: Path) -> Path:
    """In which SFrame has another CFA for 6 bytes of `main`."""
    data = both.read_bytes()
    assert data.count(PUSHED) == 1
    return written(both.parent, data.replace(PUSHED, PUSHED[:2] + b"\x18"), "wrong")


@pytest.fixture
def raw(hello: Path) -> Path:
    """The bytes of the section for `ADDRESS`."""
    return written(hello.parent, derived(hello, "--address", ADDRESS), "raw.sframe")


def counts(*args: object) -> dict[str, int]:
    """Bytes of code by verdict, where there are some."""
    summary = objects(*args)[0]
    verdicts = ("equal", "different", "only_one", "only_other", "neither")
    return {verdict: summary[verdict]["bytes"] for verdict in verdicts if summary[verdict]["bytes"]}


SAME = {"equal": 35, "only_one": 3, "neither": 6}


# What it tells


def test_a_file_is_compared_with_its_own_section(both: Path) -> None:
    done = run("compare", both)
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.sub(r"0x[0-9a-f]{6,}", "0x...", done.stdout) == (
        f"{both}: .eh_frame and .sframe\n"
        "  the same rule: 3 functions, 35 bytes of code\n"
        "  only in .eh_frame: 1 function, 3 bytes of code\n"
        f"    0x... {LEAP}\n"
        "  no rule in either: 1 function, 6 bytes of code\n"
        f"    0x... {UNSAID}: {REASON}\n"
    )


def test_a_difference_is_told_with_both_rules_and_1(wrong: Path) -> None:
    done = run("compare", wrong)
    assert (done.exit_code, done.stderr) == (1, "")
    assert (
        "  the same rule: 3 functions, 29 bytes of code\n  different rules: 1 function, 6 bytes of code\n"
        in done.stdout
    )
    assert re.search(
        r"^    0x[0-9a-f]+ main\+0x1 \(6 bytes\): CFA = rsp\+16, RA = \*\(CFA-8\), FP unchanged"
        r" \| CFA = rsp\+24, RA = \*\(CFA-8\), FP unchanged$",
        done.stdout,
        re.MULTILINE,
    )


def test_bytes_without_relocations_are_not_compared_with_an_object(tmp_path: Path) -> None:
    path = written(tmp_path, derived(hello_object(tmp_path)), "raw")
    done = run("compare", tmp_path / "hello.o", f"{path}@0")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.endswith("a relocatable file can only be compared with another\n")


def test_sections_of_two_objects_are_matched_by_name(tmp_path: Path) -> None:
    path = added(hello_object(tmp_path))
    other = tmp_path / "other.o"
    source = tmp_path / "other.s"
    source.write_text('\t.section .before,"ax"\n\tnop\n' + Path(__file__).parents[1].joinpath("hello.s").read_text())
    subprocess.run(["gcc", "-c", "-o", other, source], check=True)
    assert counts(other, path) == SAME


@pytest.mark.parametrize(("kind", "advice"), [(1, ""), (3, "; `walkback add` makes a .sframe section")])
def test_one_table_is_not_compared_with_itself(tmp_path: Path, kind: int, advice: str) -> None:
    path = hello_object(tmp_path) if kind == 1 else program(tmp_path)
    done = run("compare", path)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"walkback: {path}: the file does not have two tables to compare{advice}\n"


def test_in_an_object_a_place_has_its_section(tmp_path: Path) -> None:
    path = added(hello_object(tmp_path))
    text = run("compare", path).stdout
    assert f"    .text+0x23 {LEAP}\n" in text
    found = objects(path)
    assert {one["section"] for one in found if one["type"] == "stretch" and one["verdict"] == "only_one"} == {".text"}


@pytest.mark.parametrize(("limit", "more"), [(0, 9), (2, 7), (9, 0), (None, 0)])
def test_the_limit_bounds_what_is_listed_of_each_kind(hello: Path, raw: Path, limit: int | None, more: int) -> None:
    options = [] if limit is None else ["--limit", limit]
    text = run("compare", hello, f"{raw}@0", *options).stdout
    listed = re.findall(r"  only in \.eh_frame: .*\n((?:    .*\n)*)", text)[0].splitlines()
    assert len(listed) == 9 - more + bool(more)
    assert (listed[-1] == f"    and {more} more") == bool(more)
    assert len(objects(hello, f"{raw}@0", *options)) == 1 + 9 + 8 + 1


# JSON


def test_json_is_the_comparison_and_then_each_stretch_that_is_not_equal(both: Path) -> None:
    summary, only, neither = objects(both)
    starts = only.pop("start"), neither.pop("start")
    assert starts[1] == starts[0] + 3
    nothing = {"functions": 0, "bytes": 0}
    assert summary == {
        "type": "comparison",
        "file": str(both),
        "one": ".eh_frame",
        "other": ".sframe",
        "equal": {"functions": 3, "bytes": 35},
        "different": nothing,
        "only_one": {"functions": 1, "bytes": 3},
        "only_other": nothing,
        "neither": {"functions": 1, "bytes": 6},
    }
    rule = LEAP.partition(": ")[2]
    place = {"type": "stretch", "section": None}
    sources = {"one_source": ".eh_frame", "other_source": None}
    alone = {"verdict": "only_one", "size": 3, "name": "leap", "one": rule, "other": "no rule"}
    assert only == place | alone | sources
    unsaid = {"one": f"no rule: {REASON}", "other": "no rule", **sources}
    assert neither == place | {"verdict": "neither", "size": 6, "name": "leap+0x3", **unsaid}


def test_json_has_the_documented_keys(both: Path, wrong: Path) -> None:
    found = [*objects(both), *objects(wrong, "--verify")]
    assert undocumented(found, "compare") == []
    assert [one["verdict"] for one in found[4:]] == ["different", "only_one", "neither"]


# Which tables


def test_another_file_gives_its_sframe_and_without_one_its_call_frame_information(hello: Path, both: Path) -> None:
    for other, section, expected in ((both, ".sframe", SAME), (hello, ".eh_frame", {"equal": 38, "neither": 6})):
        assert objects(hello, other)[0]["other"] == f"{other} {section}"
        assert counts(hello, other) == expected


def test_a_file_without_call_frame_information_gives_its_sframe(both: Path, wrong: Path) -> None:
    image = both.read_bytes()
    bare = written(both.parent, image.replace(b".eh_frame\0", b".eh_other\0"), "bare")
    assert objects(bare, wrong)[0]["one"] == ".sframe"
    assert counts(bare, wrong) == {"equal": 29, "different": 6}


@pytest.mark.parametrize(
    ("options", "one", "other", "expected"),
    [
        (["--section", ".eh_frame"], ".eh_frame", ".sframe", SAME),
        (["--section", ".sframe"], ".sframe", ".sframe", {"equal": 35}),
        (["--other-section", ".eh_frame"], ".eh_frame", ".eh_frame", {"equal": 38, "neither": 6}),
        (
            ["--section", ".sframe", "--other-section", ".eh_frame"],
            ".sframe",
            ".eh_frame",
            {"equal": 35, "only_other": 3, "neither": 6},
        ),
    ],
)
def test_sections_are_chosen_by_name(
    both: Path, options: list[str], one: str, other: str, expected: dict[str, int]
) -> None:
    summary = objects(both, *options)[0]
    assert (summary["one"], summary["other"]) == (one, other)
    assert counts(both, *options) == expected
    assert objects(both, both, *options)[0]["other"] == f"{both} {other}"


def test_what_only_the_other_has_is_told_with_its_rule(both: Path) -> None:
    text = run("compare", both, "--section", ".sframe", "--other-section", ".eh_frame").stdout
    assert re.search(rf"  only in \.eh_frame: 1 function, 3 bytes of code\n    0x[0-9a-f]+ {re.escape(LEAP)}\n", text)


@pytest.mark.parametrize("address", [hex(ADDRESS), str(ADDRESS), hex(ADDRESS).replace("x", "X")])
def test_raw_bytes_have_their_address_behind_an_at_sign(hello: Path, raw: Path, address: str) -> None:
    assert objects(hello, f"{raw}@{address}")[0]["other"] == f"{raw}@{address}"
    assert counts(hello, f"{raw}@{address}") == SAME


def test_raw_bytes_at_a_wrong_address_are_different_or_say_nothing_of_the_code(hello: Path, raw: Path) -> None:
    near, far = f"{raw}@{ADDRESS + 1}", f"{raw}@0"
    assert run("compare", hello, near).exit_code == 1
    assert counts(hello, near)["different"] > 0
    assert counts(hello, far) == {"only_one": 38, "only_other": 35, "neither": 6}
    assert run("compare", hello, far, "--strict").exit_code == 1


def test_a_file_whose_name_has_an_at_sign_is_that_file(hello: Path, both: Path) -> None:
    named = both.rename(both.with_name("hello@0x10"))
    assert counts(hello, named) == SAME


@pytest.mark.whole
@pytest.mark.parametrize(
    "address",
    [
        "010",
        "0x10000000000000000",
        pytest.param("1" * 5000, id="digits"),
        "-1",
        "0x",
        "here",
        "",
    ],
)
def test_what_is_no_address_is_one_line(hello: Path, raw: Path, address: str) -> None:
    done = process("compare", hello, f"{raw}@{address}")
    assert (done.returncode in {2, 3}, done.stdout) == (True, b"")
    assert b"Traceback" not in done.stderr


# Exit statuses


def test_strict_is_1_if_only_one_of_the_two_has_a_rule(both: Path, tmp_path: Path) -> None:
    assert run("compare", both, "--strict").exit_code == 1
    assert run("compare", both, "--strict", "--section", ".sframe", "--other-section", ".eh_frame").exit_code == 1
    assert run("compare", both, "--strict", "--section", ".sframe").exit_code == 0
    assert run("compare", added(whole(tmp_path)), "--strict").exit_code == 0


def refused(path: Path) -> list[tuple[str, Path]]:
    folder = path.parent
    return [
        ("No such file or directory", folder / "missing"),
        ("this is a directory", folder),
        ("the file is empty", written(folder, b"", "empty")),
        ("this is not an ELF file", written(folder, b"some text\n", "text")),
        ("32-bit ELF files are not supported", narrow(path)),
        (".eh_frame: e_machine 99 is none", patched(path, "e_machine", 99)),
    ]


def test_what_cannot_be_read_is_one_line_that_names_the_file_and_3(hello: Path) -> None:
    for message, path in refused(hello):
        for command in ([path], [path, hello], [hello, path]):
            done = run("compare", *command)
            assert (done.exit_code, done.stdout) == (3, "")
            assert done.stderr.startswith(f"walkback: {path}: {message[:7]}")
            assert done.stderr.count("\n") == 1


def test_raw_bytes_that_cannot_be_read_are_one_line_and_3(hello: Path, raw: Path) -> None:
    text = written(hello.parent, b"some text\n", "text")
    for path in (text, hello.parent / "missing"):
        done = run("compare", hello, f"{path}@0x1000")
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (3, "", 1)
        assert done.stderr.startswith(f"walkback: {path}: ")
    damaged = bytearray(raw.read_bytes())
    damaged[8] = 99
    raw.write_bytes(damaged)
    done = run("compare", hello, f"{raw}@{ADDRESS}")
    assert (done.exit_code, done.stderr.count("\n")) == (3, 1)
    assert "[index-bounds]" in done.stderr


def test_without_two_tables_it_is_one_line_and_1(hello: Path, both: Path) -> None:
    bare = written(hello.parent, ElfBuilder(kind=3), "bare")
    missing = NOT_TWO
    for command, path, message in (
        ([hello], hello, missing),
        ([bare], bare, missing),
        ([bare, hello], bare, missing),
        ([hello, bare], bare, "there is no unwind table"),
        ([both, "--section", ".sframe.cold"], both, missing),
        ([both, "--other-section", ".sframe.cold"], both, missing),
        ([hello, both, "--other-section", ".sframe.cold"], both, "there is no .sframe.cold"),
    ):
        done = run("compare", *command)
        assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"walkback: {path}: {message}\n")


def test_files_of_different_machines_are_one_line_and_3(hello: Path) -> None:
    done = run("compare", hello, patched(hello, "e_machine", 183))
    assert (done.exit_code, done.stdout) == (3, "")
    message = "a table for AMD64 cannot be compared with one for AArch64"
    assert done.stderr == f"walkback: {hello}: {message}\n"


@pytest.mark.parametrize(
    "args", [[], ["x", "y", "z"], ["x", "--limit", "-1"], ["x", "--limit", "all"], ["x", "--address", "0"]]
)
def test_wrong_usage_is_2(args: list[str]) -> None:
    done = run("compare", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


# Standard output


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    ("redirection", "message"),
    [(">&-", "standard output is closed"), (">/dev/full", "cannot write the output: No space left on device")],
)
def test_output_that_is_closed_or_full_is_one_line_and_3(
    both: Path, options: list[str], redirection: str, message: str
) -> None:
    assert told(shell("", "compare", both, *options, redirection=redirection)) == (3, message)


def test_the_machine_code_says_which_of_two_rules_is_wrong(wrong: Path) -> None:
    [line] = [one for one in run("compare", "--verify", wrong).output.splitlines() if " | " in one]
    assert line.endswith("; proved | wrong")
    [stretch] = [one for one in objects(wrong, "--verify") if one.get("verdict") == "different"]
    assert (stretch["one_verdict"], stretch["other_verdict"]) == ("proved", "wrong")
    assert not [one for one in objects(wrong) if "one_verdict" in one or "both_proved" in one]


def test_rules_that_are_both_proved_are_counted_and_come_last(tmp_path: Path) -> None:
    """The first function has its CFA by either register, the other is wrong."""
    push = "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6,-16; mov %rsp,%rbp; {rule}; nop; "
    leave = "pop %rbp; .cfi_def_cfa 7,8; .cfi_restore 6; ret"
    function = "{name}: .cfi_startproc; " + push + leave + "; .cfi_endproc; "
    for file, rules in {"one": ("7,16", "7,16"), "two": ("6,16", "7,24")}.items():
        functions = zip("fg", rules, strict=True)
        text = "".join(function.format(name=name, rule=f".cfi_def_cfa {rule}") for name, rule in functions)
        subprocess.run(["as", "-o", tmp_path / file, "-"], input=text.encode(), check=True)
    paths = tmp_path / "one", tmp_path / "two"
    listed = [
        line for line in run("compare", "--verify", *paths).output.splitlines() if " | " in line or "these" in line
    ]
    assert listed[0] == "  of these, both are proved and find the caller: 1 function, 2 bytes of code"
    assert [line.partition("; ")[2] for line in listed[1:]] == ["proved | wrong", "proved | proved"]
    summary, *_ = objects("--verify", *paths)
    assert summary["different"] == {"functions": 2, "bytes": 4}
    assert summary["both_proved"] == {"functions": 1, "bytes": 2}
