"""The GNU C Library, built with SFrame, walks grafted programs by SFrame alone, as it does by call frame information.

Every file is there twice: without its call frame information, so that nothing but SFrame can help, and without its
SFrame. `make test-long` runs this; the library is built once.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from glibc.walked import ALL, COMPILE, HERE, by_call_frames, by_sframe, plugin, walks
from glibcsource import library
from peers import peer
from walkback.sections.install import add
from walkback.sections.linking.convert import convert

pytestmark = [pytest.mark.peers, pytest.mark.long]
SYSTEM = Path("/lib/x86_64-linux-gnu")
KINDS = ("-fomit-frame-pointer", "-fno-omit-frame-pointer", "-static-pie")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C library and its loader with version 2 of SFrame."""
    built, folder = library(), tmp_path_factory.mktemp("libraries")
    for name, new in (("libc.so", "libc.so.6"), ("ld.so", "ld.so")):
        made = convert(built / name, folder / new, consumer="glibc", leave_out=True)
        assert (made.version, made.functions > 100) == (2, True)
    add(SYSTEM / "libgcc_s.so.1", folder / "libgcc_s.so.1", consumer="glibc")
    return folder


def static_pie(folder: Path) -> None:
    """A static program that can be loaded anywhere, linked with the library that was built."""
    built = library()
    subprocess.run([*COMPILE, "-fPIE", "-c", HERE / "walks.c", "-o", folder / "walks.o"], check=True)
    begin, end, gcc, unwind = (
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("crtbeginS.o", "crtendS.o", "libgcc.a", "libgcc_eh.a")
    )
    subprocess.run(
        [
            *(
                peer("ld-new"),
                "-static",
                "-pie",
                "--no-dynamic-linker",
                "-z",
                "text",
                "--eh-frame-hdr",
                "--discard-sframe",
            ),
            *("-o", folder / "walks", built / "rcrt1.o", built / "crti.o", begin, folder / "walks.o"),
            *("--start-group", built / "libc.a", gcc, unwind, "--end-group", end, built / "crtn.o"),
        ],
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module", params=KINDS)
def programs(request: pytest.FixtureRequest, libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders with the same files: in the first is only SFrame, in the second only call frame information."""
    folder = tmp_path_factory.mktemp("programs")
    if request.param == "-static-pie":
        static_pie(folder)
    else:
        subprocess.run([*COMPILE, request.param, HERE / "walks.c", "-o", folder / "walks"], check=True)
    for path in (folder / "walks", plugin(folder)):
        add(path, consumer="glibc")
    both = [folder / "sframe", folder / "frames"]
    for one, change in zip(both, (by_sframe, by_call_frames), strict=True):
        one.mkdir()
        for path in (folder / "walks", folder / "plugin.so", *libraries.iterdir()):
            (one / path.name).write_bytes(change(path))
            shutil.copymode(path, one / path.name)
    return both


@pytest.mark.parametrize("words", ALL, ids="-".join)
def test_backtrace_gives_the_same_frames(
    programs: list[Path], words: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    static = request.node.callspec.params["programs"] == "-static-pie"
    if static and "dlopen" in words:
        pytest.skip("a static program loads nothing")
    told: list[list[str]] = []
    for folder in programs:
        start: list[str | Path] = [] if static else [folder / "ld.so", "--library-path", folder]
        told.append(walks([*start, folder / "walks", *words], folder)["backtrace"])
    assert len(told[1]) >= 4
    assert told[0] == told[1]
