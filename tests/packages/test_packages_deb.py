"""ELF files in Debian packages, as dpkg-deb and ar write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from packed import ELF, deb_of, look, run, write
from walkback.packages import deb
from walkback.packages.walk import Broken, FoundFile, Package, elf_files_in

PROGRAM = ELF + b"program" * 100
FILES = {"usr/bin/hello": PROGRAM, "usr/share/doc/hello": b"text", "usr/lib/libh.so": ELF + b"library"}
PROGRAMS = {name: data for name, data in FILES.items() if data.startswith(ELF)}
HELLO = Package("hello", "1:2.10-3", "arm64", "deb")


def packages(path: Path) -> set[Package | None]:
    return {one.package for one in elf_files_in(str(path)) if isinstance(one, FoundFile)}


@pytest.mark.parametrize("packer", ["none", "gzip", "xz", "zstd"])
@pytest.mark.parametrize("uniform", [True, False])
def test_each_compressor_is_read(packer: str, uniform: bool, tmp_path: Path) -> None:
    option = "--uniform-compression" if uniform else "--no-uniform-compression"
    package = deb_of(tmp_path, FILES, f"-Z{packer}", option)
    assert look(package) == (PROGRAMS, [])
    assert packages(package) == {HELLO}


def repacked(folder: Path, data: str, *, packer: str = "", control: str = "control.tar.gz") -> Path:
    """The package with its parts made by tar and ar."""
    made = deb_of(folder, FILES, "-Znone", "--uniform-compression")
    run("ar", "x", made, cwd=folder)
    (folder / "data.tar").rename(folder / data)
    if packer:
        run(packer, folder / data)
    run("gzip", folder / "control.tar")
    (folder / "control.tar.gz").rename(folder / control)
    (folder / "old.deb").unlink(missing_ok=True)
    suffix = {"bzip2": ".bz2", "lzma": ".lzma"}.get(packer, "")
    run("ar", "rc", "old.deb", "debian-binary", control, f"{data}{suffix}", cwd=folder)
    return folder / "old.deb"


@pytest.mark.parametrize("packer", ["bzip2", "lzma"])
def test_older_packages_are_read(packer: str, tmp_path: Path) -> None:
    package = repacked(tmp_path, "data.tar", packer=packer)
    assert look(package) == (PROGRAMS, [])
    assert packages(package) == {HELLO}


def test_programs_that_help_to_install_it_are_found(tmp_path: Path) -> None:
    package = deb_of(tmp_path, FILES, control={"preinst": ELF + b"before", "postinst": b"#!/bin/sh\n"})
    assert look(package) == (PROGRAMS | {"DEBIAN/preinst": ELF + b"before"}, [])
    assert packages(package) == {HELLO}


def test_all_names_of_hard_links_are_found(tmp_path: Path) -> None:
    links = {"usr/bin/again": "usr/bin/hello", "usr/games/z": "usr/bin/hello", "DEBIAN/postinst": "DEBIAN/preinst"}
    package = deb_of(tmp_path, FILES, control={"preinst": ELF + b"before"}, links=links)
    more = {"usr/bin/again": PROGRAM, "usr/games/z": PROGRAM}
    more |= dict.fromkeys(["DEBIAN/preinst", "DEBIAN/postinst"], ELF + b"before")
    assert look(package) == (PROGRAMS | more, [])
    assert {one.package for one in elf_files_in(str(package))} == {HELLO}


def test_a_package_that_does_not_say_what_it_is_is_read(tmp_path: Path) -> None:
    package = repacked(tmp_path, "data.tar", control="_other")
    assert look(package) == (PROGRAMS, [])
    assert packages(package) == {None}


def test_a_broken_control_archive_does_not_hide_the_files(tmp_path: Path) -> None:
    package = repacked(tmp_path, "data.tar")
    data = bytearray(package.read_bytes())
    start = data.index(b"\x1f\x8b\x08")
    data[start + 30 : start + 60] = bytes(30)
    package.write_bytes(data)
    found, broken = look(package)
    assert found == PROGRAMS
    assert [(one.member, one.what) for one in broken] == [("control.tar.gz", "damaged")]


def test_a_package_that_ends_before_its_files_is_told(tmp_path: Path) -> None:
    package = deb_of(tmp_path, FILES, "-Znone", "--uniform-compression")
    data = package.read_bytes()
    package.write_bytes(data[: data.index(b"data.tar")])
    assert look(package) == ({}, [Broken(None, "damaged", "ends without data.tar")])


def test_archives_of_objects_in_it_are_read_through(tmp_path: Path) -> None:
    write(tmp_path, {"one.o": ELF + b"one", "a_name_of_more_than_16_bytes.o": ELF + b"long", "text.txt": b"no object"})
    run("ar", "rc", "libx.a", "one.o", "a_name_of_more_than_16_bytes.o", "text.txt", cwd=tmp_path)
    package = deb_of(tmp_path, {"usr/lib/libx.a": (tmp_path / "libx.a").read_bytes(), "usr/bin/x": PROGRAM})
    inside = {"usr/lib/libx.a(one.o)": ELF + b"one", "usr/lib/libx.a(a_name_of_more_than_16_bytes.o)": ELF + b"long"}
    assert look(package) == (inside | {"usr/bin/x": PROGRAM}, [])
    assert packages(package) == {HELLO}


@pytest.mark.parametrize("packer", ["none", "gzip", "xz", "zstd"])
def test_it_ends_anywhere_and_what_was_before_is_found(packer: str, tmp_path: Path) -> None:
    package = deb_of(tmp_path, {"a": ELF + b"a" * 600, "b": ELF}, f"-Z{packer}", "--uniform-compression")
    data = package.read_bytes()
    everything = {"a": ELF + b"a" * 600, "b": ELF}
    assert look(package) == (everything, [])
    # What ar pads the last member with may be missing, as dpkg-deb has it, too.
    last = len(data) - (data[-1:] == b"\n")
    for length in range(len(b"!<arch>\ndebian-binary "), last, 1 if len(data) < 2000 else 31):
        package.write_bytes(data[:length])
        found, broken = look(package)
        assert found.items() <= everything.items(), length
        assert [one.what for one in broken] == ["damaged"], length


def test_spaces_in_a_field_take_no_time_of_their_own() -> None:
    # An expression that goes back over them would take hours.
    control = b"Package:" + b" " * 100_000 + b"a" + b" " * 100_000 + b"b \nVersion:\nArchitecture: c\r\n"
    assert deb.fields(control) == {"package": "a" + " " * 100_000 + "b", "version": "", "architecture": "c"}
