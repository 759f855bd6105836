"""`show` and `find` with names as people write them: C++ that g++ made, and entries of procedure linkage tables."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import click
import pytest

import walkback
from cli.commands import run, told
from walkback.symbols.demangle import is_called

_SOURCE = """
#include <cstdio>
#include <vector>
struct Point {
    int x;
    __attribute__((noinline)) bool operator==(Point const& other) const { return x == other.x; }
    __attribute__((noinline)) operator bool() const { return x != 3; }
};
template <class T> __attribute__((noinline)) int call(T what) { return what(4); }
template <class T> struct Box { T held; __attribute__((noinline)) int run(int x) { return held + x; } };
namespace ns {
__attribute__((noinline)) int run(int a) { return a + 1; }
__attribute__((noinline)) int run(double a, char) { return a + 2; }
}
int main(int count, char **)
{
    Box<int> box{1};
    std::puts("x");
    Point one{count}, other{4};
    std::vector<int> many(static_cast<unsigned>(count));
    return static_cast<int>(many.size()) + (one == other) + bool(one) + call([&](int x) { return x + one.x; }) +
           box.run(count) + ns::run(count) + ns::run(2.0, 'c');
}
"""

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "program.cc").write_text(_SOURCE)
    subprocess.run(
        ["g++", "-O1", "-no-pie", "-fcf-protection=none", "-o", "program", "program.cc"], cwd=folder, check=True
    )
    walkback.add(folder / "program")
    return folder / "program"


def heads(*args: str | Path) -> list[str]:
    """The lines that begin a function or an answer."""
    done = run(*args)
    assert (done.returncode, done.stderr) == (0, b"")
    return [line for line in done.stdout.decode().splitlines() if line and not line.startswith(" ")]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("ns::run(int)", ["ns::run(int)+0x0"]),
        ("ns::run(double,char)+4", ["ns::run(double, char)+0x4"]),
        ("ns::run", ["ns::run(int)+0x0", "ns::run(double, char)+0x0"]),
        ("Box<int>::run(int)", ["Box<int>::run(int)+0x0"]),
        ("_ZN2ns3runEi", ["ns::run(int)+0x0"]),
        ("puts@plt", ["puts@plt+0x0"]),
    ],
)
def test_find_takes_and_prints_names_as_people_write_them(program: Path, target: str, names: list[str]) -> None:
    found = heads("find", program, target)
    assert sorted(line.removeprefix(f"{target}: ").partition(" (function ")[0] for line in found) == sorted(names)


def test_a_name_that_is_none_is_not_found(program: Path) -> None:
    expected = (1, f"{program}: there is no symbol or section ns::run(long)")
    assert told(run("find", program, "ns::run(long)")) == expected


def test_show_prints_demangled_names_and_those_of_linkage_tables(program: Path) -> None:
    names = [line.partition("  0x")[0] for line in heads("show", program)[1:]]
    assert {"ns::run(int)", "ns::run(double, char)", "Box<int>::run(int)", "main", ".plt"} <= set(names)
    (line,) = heads("show", "--function", "ns::run(int)", program)[1:]
    assert line.startswith("ns::run(int)  0x")


def test_names_can_be_short_or_those_of_the_file(program: Path) -> None:
    assert (
        heads("find", program, "--short-names", "Box<int>::run")[0].split(": ")[1].startswith("Box<...>::run(int)+0x0")
    )
    assert heads("find", program, "--no-demangle", "ns::run(int)")[0].startswith("ns::run(int): _ZN2ns3runEi+0x0 ")
    shown = [line.partition("  0x")[0] for line in heads("show", "--no-demangle", program)]
    assert "_ZN2ns3runEi" in shown
    done = run("find", "--json", program, "ns::run(int)")
    assert json.loads(done.stdout)["name"] == "_ZN2ns3runEi"


@pytest.mark.whole
def test_every_name_that_show_prints_is_found(program: Path) -> None:
    for options in ([], ["--short-names"]):
        names = [line.partition("  0x")[0] for line in heads("show", *options, program)[1:]]
        assert len(names) > 9
        for name in names:
            assert heads("find", program, name)


def test_a_target_of_a_megabyte_is_answered_at_once(program: Path) -> None:
    start = time.process_time()
    for target in ("a<a" * 300_000, " " * 900_000, "a<b>" * 200_000 + "+", "(" * 900_000):
        assert list(walkback.find(program, target)) == []
    assert time.process_time() - start < 20


def test_shells_complete_demangled_names(program: Path) -> None:
    from walkback.cli.completion import functions

    context = click.Context(click.Command("find"))
    context.params["file"] = str(program)
    items = functions(context, click.Argument(["targets"]), "ns::")
    assert [item.value for item in items] == ["ns::run", "ns::run(double, char)", "ns::run(int)"]


@pytest.mark.parametrize(
    "name", ["tmpl<int>", "tmpl<...>", "tmpl<int>(int, char const*)", "int tmpl<int>(int, char const*)"]
)
def test_a_template_is_found_with_its_result_and_without(name: str) -> None:
    assert is_called("int tmpl<int>(int, char const*)", name.replace(" ", ""))
    assert not is_called("int tmpl<int>(int, char const*)", "tmpl<int>(int)")
