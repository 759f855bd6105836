"""Image maps of live processes, core files and recordings, against the kernel's own account and readelf's."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capture.corebuilder import CoreBuilder
from capture.targets import THREADS, compiled, started
from perfbuilder import Attr, Builder
from recorded import KINDS, PID, core, hello, recording, text
from walkback.base.errors import MissingError, UnreadableError
from walkback.capture import imagemaps
from walkback.cif.decoding import check as check_images
from walkback.cif.decoding import decode
from walkback.cif.encoding import encode
from walkback.cif.imagemap import Image, ImageMap


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("mapped"), THREADS, "-g", "-Wl,--build-id")


def build_id_of(path: str) -> str | None:
    """As readelf prints it."""
    told = subprocess.run(["readelf", "-n", "-W", path], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", told)
    return found[1] if found else None


def mapped_by(pid: int) -> dict[str, tuple[int, int]]:
    """Of each file with code where its first mapping begins, and its last one with code ends."""
    found: dict[str, tuple[int, int]] = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        addresses, flags, _, _, inode, *path = line.split(None, 5)
        start, end = (int(one, 16) for one in addresses.split("-"))
        if path and (int(inode) or path[0].startswith("[v")):
            first, last = found.get(path[0], (start, 0))
            found[path[0]] = (first, end if "x" in flags else last)
    return {path: place for path, place in found.items() if place[1]}


def agrees_with_the_kernel(images: ImageMap, pid: int) -> None:
    assert {one.path: (one.base, one.end) for one in images.images} == mapped_by(pid)
    for one in images.images:
        assert one.path is not None
        if one.path.startswith("/"):
            assert (one.build_id.hex() if one.build_id else None) == build_id_of(one.path), one.path


def comes_back(images: ImageMap) -> None:
    for style in ("short", "swift"):
        data = encode(images, style=style)
        assert decode(data) == images
        assert check_images(data) == []


def test_the_images_of_a_process_are_those_that_it_has_mapped(program: Path) -> None:
    with started(program) as process:
        found = imagemaps.images(process.pid)
        agrees_with_the_kernel(found.images, process.pid)
    assert (found.troubles, found.notes) == ([], [])
    assert (found.images.word, found.images.platform) == (64, f"Linux {os.uname().release} ({machine()})")
    assert {Path(one.path).name for one in found.images.images if one.path} >= {"target", "libc.so.6", "[vdso]"}
    comes_back(found.images)


def machine() -> str:
    return {"x86_64": "AMD64", "aarch64": "AArch64"}.get(os.uname().machine, os.uname().machine)


def test_a_process_with_many_libraries_agrees_too() -> None:
    script = "import numpy, sqlite3, ssl, lzma; print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = imagemaps.images(process.pid).images
        agrees_with_the_kernel(found, process.pid)
        process.kill()
    assert len(found.images) > 20
    comes_back(found)
    assert len(encode(found)) <= len(encode(found, style="swift"))


def test_every_address_of_code_is_found_in_its_file(program: Path) -> None:
    with started(program) as process:
        images = imagemaps.images(process.pid).images
        lines = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    for line in lines:
        addresses, flags, *_, inode, path = f"{line} -".split(None, 5)
        if "x" in flags and int(inode):
            for address in (int(addresses.split("-")[0], 16), int(addresses.split("-")[1], 16) - 1):
                image = images.find(address)
                assert image is not None
                assert path.startswith(str(image.path))


def test_a_program_at_a_fixed_address_begins_where_it_is_mapped(tmp_path: Path) -> None:
    fixed = compiled(tmp_path, THREADS, "-no-pie", "-static", name="fixed")
    with started(fixed) as process:
        found = imagemaps.images(process.pid).images
        assert (
            next((one.base, one.end) for one in found.images if one.path == str(fixed))
            == mapped_by(process.pid)[str(fixed)]
        )


def test_a_file_whose_name_is_not_utf8_is_told(tmp_path: Path) -> None:
    odd = compiled(tmp_path, THREADS)
    odd = odd.rename(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    with started(odd) as process:
        found = imagemaps.images(process.pid)
    assert [one.path for one in found.images.images if one.path and "odd" in one.path] == [f"{tmp_path}/odd\ufffd"]
    (told,) = found.troubles
    assert told.endswith("its name is not UTF-8, and is changed in the map")
    comes_back(found.images)


def test_there_is_no_map_of_no_process() -> None:
    with pytest.raises(UnreadableError):
        imagemaps.images(2**22 + 1)


def test_a_core_file_has_the_images_of_its_process(program: Path, tmp_path: Path) -> None:
    """The images that gcore's core file leads to are those of the live process."""
    path = tmp_path / "core"
    with started(program) as process:
        live = imagemaps.images(process.pid).images
        done = subprocess.run(["gcore", "-o", path, str(process.pid)], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("gcore is not to be had")
        found = imagemaps.images(f"{path}.{process.pid}")
        process.send_signal(signal.SIGKILL)
    named = {one.path: one for one in found.images.images}
    assert found.images.platform == f"Linux ({machine()})"
    for one in live.images:
        if one.path and one.path.startswith("/"):
            assert named[one.path] == one
    comes_back(found.images)


def test_a_file_of_data_is_no_image_of_a_core_file(tmp_path: Path) -> None:
    """gcore leaves unchanged files out, so the core file does not say which of them were mapped as code."""
    data = tmp_path / "data"
    data.write_bytes(b"some text\n" * 1000)
    maps = f"import mmap, time; f = open({str(data)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)"
    path = tmp_path / "core"
    with started(sys.executable, "-c", f"{maps}; m[0]; print('ready', flush=True); time.sleep(60)") as process:
        assert str(data) in Path(f"/proc/{process.pid}/maps").read_text()
        done = subprocess.run(["gcore", "-o", path, str(process.pid)], capture_output=True, check=False)
        process.send_signal(signal.SIGKILL)
    if done.returncode:
        pytest.skip("gcore is not to be had")
    found = imagemaps.images(f"{path}.{process.pid}")
    assert found.troubles == []
    assert str(data) not in {one.path for one in found.images.images}


def test_a_made_core_file_has_one_image(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(core(hello(tmp_path)))
    found = imagemaps.images(tmp_path / "core")
    (one,) = found.images.images
    start, _, offset = text(tmp_path / "hello")
    assert (one.path, one.base) == (str(tmp_path / "hello"), (start - offset) & -4096)
    assert one.base < start < one.end
    assert one.build_id is None or one.build_id.hex() == build_id_of(str(one.path))


def test_a_file_that_is_no_core_file_has_no_images(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(CoreBuilder().build())
    with pytest.raises(UnreadableError):
        imagemaps.images(tmp_path / "core")
    with pytest.raises(UnreadableError):
        imagemaps.images(hello(tmp_path))


def test_a_recording_has_the_images_of_each_process(tmp_path: Path) -> None:
    program = hello(tmp_path, "-Wl,--build-id")
    (tmp_path / "perf.data").write_bytes(recording(program))
    found = imagemaps.images(tmp_path / "perf.data")
    assert found == imagemaps.images(tmp_path / "perf.data", pid=PID)
    (one,) = found.images.images
    start, _, offset = text(program)
    assert (one.path, one.base) == (str(program), (start - offset) & -4096)
    assert one.build_id is not None
    assert one.build_id.hex() == build_id_of(str(program))
    comes_back(found.images)


def test_which_process_of_a_recording_has_to_be_said(tmp_path: Path) -> None:
    program = hello(tmp_path)
    (tmp_path / "perf.data").write_bytes(recording(program))
    with pytest.raises(MissingError, match=f"no sample is of process 7; there is {PID}"):
        imagemaps.images(tmp_path / "perf.data", pid=7)


def test_a_recording_whose_file_is_gone_has_its_images_too(tmp_path: Path) -> None:
    program = hello(tmp_path)
    (tmp_path / "perf.data").write_bytes(recording(program))
    before = imagemaps.images(tmp_path / "perf.data")
    assert before.notes == [f"{program}: its build ID was not recorded; that of the current file is used"]
    program.unlink()
    after = imagemaps.images(tmp_path / "perf.data")
    assert after.images.images == (before.images.images[0]._replace(build_id=None),)
    assert (after.troubles, after.notes) == ([], [])


def test_a_recording_without_samples_has_no_images(tmp_path: Path) -> None:
    made = Builder(attrs=[Attr(KINDS)])
    made.comm(PID, PID, "hello", time=1)
    made.finished_round()
    (tmp_path / "perf.data").write_bytes(made.file())
    with pytest.raises(MissingError, match="no sample is of a process whose code is known"):
        imagemaps.images(tmp_path / "perf.data")


def test_of_several_processes_one_is_chosen(tmp_path: Path) -> None:
    """Each as it was at its last sample; code that is in no file is told."""
    made = Builder(attrs=[Attr(KINDS)])
    for pid in (5, 6):
        made.mmap2(pid, 0x10000 * pid, 0x1000, 0, f"/nowhere/{pid}", time=1, build_id=bytes([pid] * 20))
        made.sample(ip=0x10000 * pid, pid=pid, tid=pid, time=2, period=1, chain=[], registers=None, stack=b"", room=0)
    made.mmap2(6, 0x90000, 0x2000, 0x3000, "/nowhere/late", time=3)
    made.mmap2(6, 0xA0000, 0x2000, 0, "//anon", time=3)
    made.sample(ip=0x90000, pid=6, tid=6, time=4, period=1, chain=[], registers=None, stack=b"", room=0)
    made.finished_round()
    (tmp_path / "perf.data").write_bytes(made.file())
    with pytest.raises(MissingError, match="which process is meant has to be said; there are 5, 6"):
        imagemaps.images(tmp_path / "perf.data")
    found = imagemaps.images(tmp_path / "perf.data", pid=6)
    assert found.images.images == (
        Image("/nowhere/6", bytes([6] * 20), 0x60000, 0x61000),
        Image("/nowhere/late", None, 0x8D000, 0x92000),
    )
    assert found.notes[-1] == "1 mapping with code that is in no file"


def test_what_perf_records_agrees_with_the_kernel(program: Path, tmp_path: Path) -> None:
    if shutil.which("perf") is None:
        pytest.skip("needs perf")
    path = tmp_path / "perf.data"
    with started(program) as process:
        command: list[str | Path] = [
            "perf",
            "record",
            "-q",
            "-o",
            path,
            "-g",
            "-p",
            str(process.pid),
            "--",
            "sleep",
            "0.3",
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            pytest.skip("perf may not record here")
        found = imagemaps.images(path, pid=process.pid).images
        assert {one.path for one in found.images} >= {str(program)}
        places = mapped_by(process.pid)
        live = {one.path: one for one in imagemaps.images(process.pid).images.images}
    for one in found.images:
        assert one.path is not None
        assert (one.base, one.end) == places[one.path]
        assert one == live[one.path]
    comes_back(found)
