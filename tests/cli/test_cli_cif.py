"""`walkback cif`: every verb, form of input and option, and what is told of what is wrong."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest

from capture.targets import THREADS, compiled, started
from cli.commands import WALKBACK, on_a_terminal, run, told
from recorded import PID, core, hello, recording
from walkback.base.errors import UnreadableError
from walkback.cif.decoding import decode as decode_images
from walkback.cif.encoding import encode as encode_images
from walkback.cif.imagemap import Image, ImageMap
from walkback.cif.objects import from_json, to_json

pytestmark = pytest.mark.whole

IMAGES = ImageMap(
    64,
    "Linux 6.1 (AMD64)",
    (
        Image("/opt/app/bin/server", bytes.fromhex("c0ffee00"), 0x400000, 0x480000),
        Image("/opt/app/lib/libcalls.so", None, 0x7F0000000000, 0x7F0000010000),
        Image(None, b"\1", 0x7FFF00000000, 0x7FFF00001000),
    ),
)
DATA = encode_images(IMAGES)
TEXT = json.dumps(to_json(IMAGES))


def fed(data: bytes | str, *args: str) -> subprocess.CompletedProcess[bytes]:
    given = data if isinstance(data, bytes) else data.encode()
    return subprocess.run([WALKBACK, "cif", *args], input=given, capture_output=True, check=False)


def decoded(*args: str | Path) -> ImageMap:
    done = run("cif", "decode", "--json", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    return from_json(json.loads(done.stdout))


# Forms of input


def test_input_comes_in_many_forms(tmp_path: Path) -> None:
    path = tmp_path / "images.cif"
    path.write_bytes(DATA)
    assert decoded(path) == IMAGES
    for text in (DATA.hex(), DATA.hex(" ").upper(), base64.b64encode(DATA).decode()):
        assert decoded(text) == IMAGES
        path.write_text(text)
        assert decoded(path) == IMAGES
    path.write_text(json.dumps({"crash": [{"backtrace": "", "imageMap": base64.b64encode(DATA).decode()}]}))
    assert decoded(path) == decoded("--from", "swift", path) == IMAGES


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_input_may_be_standard_input(arguments: tuple[str, ...]) -> None:
    done = fed(DATA, "decode", "--json", *arguments)
    assert (done.returncode, from_json(json.loads(done.stdout))) == (0, IMAGES)
    assert from_json(json.loads(fed(DATA.hex(), "decode", "--from", "hex", "--json").stdout)) == IMAGES


def test_what_is_no_input_is_told(tmp_path: Path) -> None:
    status, line = told(run("cif", "decode", tmp_path / "absent"))
    assert status == 3
    assert line.startswith(f"{tmp_path}/absent: there is no such file")
    (tmp_path / "crash.json").write_text('{"backtrace": ""}')
    assert told(run("cif", "decode", "--from", "swift", tmp_path / "crash.json")) == (
        1,
        f'{tmp_path}/crash.json: no object in this JSON has a blob "imageMap"',
    )


# decode


def test_images_are_printed_a_line_each() -> None:
    done = run("cif", "decode", DATA.hex())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == [
        "Linux 6.1 (AMD64), 64 bits",
        "0x400000-0x480000  c0ffee00  /opt/app/bin/server",
        "0x7f0000000000-0x7f0000010000  no build ID  /opt/app/lib/libcalls.so",
        "0x7fff00000000-0x7fff00001000  01  no path",
    ]
    assert run("cif", "decode", "02 00").stdout == b"no platform, 64 bits\n"


def test_a_damaged_map_is_refused_or_kept_as_far_as_it_is_good() -> None:
    cut = DATA[:-2].hex()
    place = len(DATA) - 2
    assert told(run("cif", "decode", cut)) == (
        3,
        f"{cut}: offset {place:#x}: the data ends within image 2: the build ID [data-missing]",
    )
    done = run("cif", "decode", "--lenient", "--json", cut)
    assert done.returncode == 1
    assert from_json(json.loads(done.stdout)).images == IMAGES.images[:2]
    assert told(done)[1].endswith("wrong: the data ends within image 2: the build ID [data-missing]")


def test_a_path_that_cannot_be_read_is_told() -> None:
    done = run("cif", "decode", "02 00 01 00 10 10 00 94 00")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (1, [b"0x10-0x20  no build ID  no path"])
    assert told(done)[1].endswith("image 0: nothing has taught what the code 20 stands for [path-code]")


def test_names_cannot_take_the_terminal_over() -> None:
    data = encode_images(ImageMap(64, "\x1b[2J", (Image("/a\nb\x07", None, 1, 2),)))
    for verb in ("show", "decode"):
        assert not re.search(rb"[\x00-\x09\x0b-\x1f]", run("cif", verb, data.hex()).stdout)


# show


def test_every_byte_is_shown() -> None:
    done = run("cif", "show", DATA.hex())
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "0x0000  info      02  version 0, words of 64 bits"
    assert lines[2:5] == [
        "0x0013  count     03  3 images",
        "0x0014  image     12  0: absolute base of 3 bytes, end of 3",
        "0x0015  base      40 00 00  0x400000",
    ]
    parts = [json.loads(line) for line in run("cif", "show", "--json", DATA.hex()).stdout.splitlines()]
    assert "".join(part["bytes"] for part in parts) == DATA.hex()
    assert {key for part in parts for key in part} == {"type", "offset", "bytes", "name", "meaning"}


def test_what_is_wrong_is_shown_behind_the_parts() -> None:
    done = run("cif", "show", "02 00 01 40 10 10 00 00")
    assert done.returncode == 1
    line = "offset 0x3: wrong: image 0: bit 6 of the header is set, which is reserved [reserved-bit]"
    assert done.stdout.decode().splitlines()[-1] == line
    last = json.loads(run("cif", "show", "--json", "02 00 01 40 10 10 00 00").stdout.splitlines()[-1])
    assert (last["type"], last["rule"], last["offset"], last["note"]) == ("finding", "reserved-bit", 3, False)


def test_a_note_is_no_finding_to_the_exit_status() -> None:
    done = run("cif", "show", "02 00 80 00")
    assert (done.returncode, b"note: the number of images begins" in done.stdout) == (0, True)


def test_bytes_that_are_no_map_are_shown_with_what_is_wrong() -> None:
    done = run("cif", "show", "--from", "hex", "ffff")
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode() == "offset 0x0: wrong: this is version 63; known is 0 [version]\n"


# encode


def test_json_is_written_in_every_coding(tmp_path: Path) -> None:
    path, out = tmp_path / "images.json", tmp_path / "images.cif"
    path.write_text(TEXT)
    assert run("cif", "encode", path).stdout == fed(TEXT, "encode").stdout == fed(TEXT, "encode", "-").stdout == DATA
    assert run("cif", "encode", path, "--hex").stdout.decode() == DATA.hex() + "\n"
    assert base64.b64decode(run("cif", "encode", path, "--base64").stdout) == DATA
    assert run("cif", "encode", path, "--as", "swift").stdout == encode_images(IMAGES, style="swift")
    assert run("cif", "encode", path, "-o", out).returncode == 0
    assert out.read_bytes() == DATA


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "this is not JSON: "),
        ("[]", "the map is not an object"),
        ('{"word": 64}', 'the map has no "images"'),
        ('{"word": "64", "images": []}', '"word" of the map is not a number'),
        ('{"word": true, "images": []}', '"word" of the map is not a number'),
        ('{"word": 8, "images": []}', "words have 16, 32 or 64 bits, and not 8"),
        ('{"word": 64, "images": [], "image": []}', "the map has the key 'image'; known: word, platform, images"),
        ('{"word": 64, "platform": 1, "images": []}', '"platform" of the map is not text or null'),
        ('{"word": 64, "images": [1]}', "image 0 is not an object"),
        ('{"word": 64, "images": [{"base": 1}]}', 'image 0 has no "end"'),
        ('{"word": 64, "images": [{"base": 1, "end": 2.5}]}', '"end" of image 0 is not a number'),
        (
            '{"word": 64, "images": [{"base": 1, "end": 2, "build_id": "x"}]}',
            "the build ID of image 0 is not hexadecimal",
        ),
        ('{"word": 64, "images": [{"base": 2, "end": 1}]}', "its code is from 0x2 to 0x1, which 64 bits cannot say"),
        ("[" * 100000, "this is not JSON: "),
    ],
)
def test_json_that_is_no_map_is_refused(text: str, message: str) -> None:
    done = fed(text, "encode", "--hex")
    assert (done.returncode, done.stdout) == (3, b"")
    assert message in told(done)[1]


def test_what_may_be_null_may_be_left_out() -> None:
    found = from_json({"word": 32, "images": [{"base": 1, "end": 2}]})
    assert found == ImageMap(32, None, (Image(None, None, 1, 2),))
    with pytest.raises(UnreadableError):
        from_json("words")


def test_json_goes_there_and_back() -> None:
    assert from_json(json.loads(TEXT)) == IMAGES == from_json(to_json(decode_images(DATA)))


def test_a_live_process_is_written(tmp_path: Path) -> None:
    program = compiled(tmp_path, THREADS)
    with started(program) as process:
        done = run("cif", "encode", "--pid", str(process.pid))
    assert (done.returncode, done.stderr) == (0, b"")
    assert str(program) in {one.path for one in decode_images(done.stdout).images}


def test_a_core_file_and_a_recording_are_written(tmp_path: Path) -> None:
    program = hello(tmp_path)
    (tmp_path / "core").write_bytes(core(program))
    (tmp_path / "perf.data").write_bytes(recording(program))
    options = {"core": ("--exe", program), "perf.data": ("--pid", str(PID))}
    for name, more in options.items():
        for chosen in ((), more, ("--sysroot", "/")):
            done = run("cif", "encode", tmp_path / name, *chosen)
            (one,) = decode_images(done.stdout).images
            assert (done.returncode, one.path) == (0, str(program))
            assert told(done)[1].endswith("its build ID was not recorded; that of the current file is used")
    assert told(run("cif", "encode", tmp_path / "perf.data", "--pid", "7")) == (
        1,
        f"{tmp_path}/perf.data: no sample is of process 7; there is {PID}",
    )


@pytest.mark.parametrize(
    ("source", "options", "line"),
    [
        ("images.json", ("--pid", "1"), "--pid is not for JSON"),
        ("core", ("--pid", "1"), "--pid is not for a core file"),
        ("perf.data", ("--exe", "x"), "--exe is not for a recording of perf"),
        (None, ("--pid", "1", "--exe", "x"), "--exe is not for a live process"),
        ("images.json", ("-o", "images.json"), "images.json is what is read, and would be lost"),
        ("images.json", ("--as", "long"), "'long' is not one of 'short', 'swift'"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, source: str | None, options: tuple[str, ...], line: str
) -> None:
    (tmp_path / "images.json").write_text(TEXT)
    program = hello(tmp_path)
    (tmp_path / "core").write_bytes(core(program))
    (tmp_path / "perf.data").write_bytes(recording(program))
    done = run("cif", "encode", *([source] if source else []), *options, cwd=tmp_path)
    assert done.returncode == 2
    assert line in done.stderr.decode()


def test_a_recording_can_come_by_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(recording(hello(tmp_path)))
    of_file = run("cif", "encode", "perf.data", cwd=tmp_path)
    assert of_file.stdout
    assert fed((tmp_path / "perf.data").read_bytes(), "encode").stdout == of_file.stdout


def test_bytes_do_not_go_to_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(TEXT)
    shown = on_a_terminal("cif", "encode", str(tmp_path / "images.json"))
    assert "an image map is not for a terminal" in str(shown)
    assert DATA.hex() in str(on_a_terminal("cif", "encode", "--hex", str(tmp_path / "images.json")))


def test_help_is_quick_and_short() -> None:
    for args in ((), ("show",), ("encode",), ("decode",)):
        done = run("cif", *args, "--help")
        assert (done.returncode, done.stderr) == (0, b"")
        assert all(len(line) <= 80 for line in done.stdout.decode().splitlines())


def test_the_output_is_whole_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"word": 64, "images": [{"base": 2, "end": 1}]}')
    assert run("cif", "encode", "bad.json", "-o", "out", cwd=tmp_path).returncode == 3
    assert [one.name for one in tmp_path.iterdir()] == ["bad.json"]
