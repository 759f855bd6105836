"""`walkback cbf`, and the format `cbf` of the verbs that walk stacks."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from capture.targets import compiled, started
from capture.test_capture_inlined import PROGRAM
from cbf.plaincbf import read
from cli.commands import WALKBACK, on_a_terminal, run, told
from recorded import hello, recording, symbols, text
from walkback.base.errors import WalkbackError
from walkback.cif.encoding import encode as encode_images
from walkback.cif.imagemap import Image, ImageMap
from walkback.cli.blobs import FORMS, read_blobs
from walkback.elf import ElfFile

pytestmark = pytest.mark.whole

DATA = bytes.fromhex("02 18 11 21 01 00 81 44 30 fe 01")
OBJECTS = [
    {"kind": "pc", "address": 0x11},
    *[{"kind": "ra", "address": 0x111}] * 3,
    {"kind": "omit", "count": 5},
    {"kind": "async", "address": 0x10F},
    {"kind": "truncated"},
]
BOMB = "02187f8fffffffffffffffff00"


def fed(data: bytes | str, *args: str) -> subprocess.CompletedProcess[bytes]:
    given = data if isinstance(data, bytes) else data.encode()
    return subprocess.run([WALKBACK, "cbf", *args], input=given, capture_output=True, check=False)


def decoded(*args: str | Path) -> list[list[dict[str, Any]]]:
    done = run("cbf", "decode", "--json", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


# Forms of input


def test_input_comes_in_many_forms(tmp_path: Path) -> None:
    path = tmp_path / "some.cbf"
    path.write_bytes(DATA)
    assert decoded(path) == [OBJECTS]
    coded = base64.b64encode(DATA).decode()
    texts = (
        DATA.hex(),
        DATA.hex(" ").upper(),
        f"0x{DATA.hex()}",
        DATA.hex(":"),
        "0x" + DATA.hex("-").replace("-", ", 0x"),
        coded,
        coded.rstrip("="),
    )
    for one in texts:
        assert decoded(one) == [OBJECTS]
        path.write_text(f"{one}\n")
        assert decoded(path) == [OBJECTS]
    path.write_bytes(DATA + b"\x00\x18\x11\x00")
    assert decoded(path) == [OBJECTS, OBJECTS[:1]]


def test_every_backtrace_in_swifts_json_is_read(tmp_path: Path) -> None:
    one = {"architecture": "x86_64", "backtrace": base64.b64encode(DATA).decode()}
    other = {"architecture": "x86_64", "backtrace": base64.b64encode(b"\x02\x18\x07\x00").decode()}
    path = tmp_path / "crash.json"
    path.write_text(json.dumps({"threads": [{"crashed": True, "trace": one}, other]}))
    assert decoded(path) == decoded("--from", "swift", path) == [OBJECTS, [{"kind": "pc", "address": 7}]]
    shown = run("cbf", "show", path).stdout.decode()
    assert f"{path}: threads[0].trace:\n" in shown
    assert f"{path}: threads[1]:\n" in shown
    path.write_text('{"architecture": "x86_64"}')
    assert told(run("cbf", "decode", path)) == (1, f'{path}: no object in this JSON has a blob "backtrace"')
    path.write_text('{"backtrace": "%"}')
    assert told(run("cbf", "decode", path)) == (3, f'{path}: "backtrace" is not base64')
    path.write_text('{"backtrace": ')
    status, line = told(run("cbf", "decode", "--from", "swift", path))
    assert (status, line.startswith(f"{path}: this is not JSON: ")) == (3, True)


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_input_may_be_standard_input(arguments: tuple[str, ...]) -> None:
    assert json.loads(fed(DATA, "decode", "--json", *arguments).stdout) == OBJECTS
    assert fed(DATA, "show", *arguments).returncode == 0
    assert fed(json.dumps(OBJECTS), "encode", *arguments).stdout == DATA


def test_what_is_no_input_is_told(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    told_of = "there is no such file, and it is not CBF or CIF in hexadecimal or base64"
    for name in (str(absent), "nofile", "cafe"):
        assert told(run("cbf", "decode", name)) == (3, f"{name}: {told_of}")
    status, line = told(run("cbf", "decode", tmp_path))
    assert (status, "directory" in line) == (3, True)
    for form, word in (("hex", "hexadecimal"), ("base64", "base64")):
        done = fed("%%", "decode", "--from", form)
        assert told(done) == (3, f"/dev/stdin: this is not {word}")
    # What the form says goes: as bytes this is a backtrace of version 12.
    assert told(fed("02180700", "decode", "--from", "bytes"))[1].endswith(
        "this is not version 0 of the format [version]"
    )


def test_any_input_is_read_or_refused(tmp_path: Path) -> None:
    rng = random.Random(6)
    path = tmp_path / "input"
    seeds = [
        DATA,
        DATA.hex().encode(),
        base64.b64encode(DATA),
        json.dumps([{"a": [{"backtrace": "AhgRAA==", "imageMap": "AgAA"}]}, {"backtrace": 7}]).encode(),
        b"[" * 100_000,
        b'{"a":' * 500 + b'{"backtrace": "AhgRAA=="}' + b"}" * 500,
        b"9" * 5000,
    ]
    for number in range(600):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(0, 3)):
            data[rng.randrange(len(data))] = rng.getrandbits(8)
        path.write_bytes(data)
        for form in FORMS if number % 10 == 0 else ("auto",):
            for key in ("backtrace", "imageMap"):
                with contextlib.suppress(WalkbackError):
                    assert all(isinstance(one.data, bytes) for one in read_blobs(str(path), form, key))


# The verbs


def test_show_explains_every_byte() -> None:
    done = run("cbf", "show", DATA.hex())
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line.split() for line in done.stdout.decode().splitlines()] == [
        ["0x0000", "02", "info", "version", "0,", "64-bit", "words"],
        ["0x0001", "18", "11", "pc", "absolute", "0x11"],
        ["0x0003", "21", "01", "00", "ra", "+0x100", "0x111"],
        ["0x0006", "81", "rep", "the", "previous", "frame", "2", "more", "times"],
        ["0x0007", "44", "omit", "5", "frames", "omitted"],
        ["0x0008", "30", "fe", "async", "-0x2", "0x10f"],
        ["0x000a", "01", "trunc", "the", "backtrace", "is", "truncated", "here"],
    ]
    objects = [json.loads(line) for line in run("cbf", "show", "--json", DATA.hex()).stdout.splitlines()]
    assert "".join(one["bytes"] for one in objects) == DATA.hex()
    assert [one.get("address") for one in objects] == [None, 0x11, 0x111, None, None, 0x10F, None]


def test_show_tells_what_is_wrong_and_what_is_worth_knowing() -> None:
    done = run("cbf", "show", "021011 90 00".replace(" ", ""))
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert lines[2].startswith("offset 0x1: note: the first address is relative")
    assert lines[-1] == "offset 0x3: wrong: this instruction is reserved [reserved]"
    noted = run("cbf", "show", "--json", "021011")
    assert noted.returncode == 0
    assert [one["rule"] for line in noted.stdout.splitlines() for one in json.loads(line)["findings"]] == [
        "first-relative",
        "no-end",
    ]


def test_decode_prints_frames() -> None:
    done = run("cbf", "decode", DATA.hex())
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line.split() for line in done.stdout.decode().splitlines()] == [
        ["0", "pc", "0x11"],
        *[[str(number), "ra", "0x111"] for number in (1, 2, 3)],
        ["5", "frames", "omitted"],
        ["9", "async", "0x10f"],
        ["truncated"],
    ]


def test_decode_is_strict_unless_asked() -> None:
    broken = "02181190"
    done = run("cbf", "decode", broken)
    assert (told(done), done.stdout) == ((3, "argument: offset 0x3: this instruction is reserved [reserved]"), b"")
    done = run("cbf", "decode", "--lenient", "--json", broken)
    assert json.loads(done.stdout) == [{"kind": "pc", "address": 0x11}, {"kind": "truncated"}]
    assert told(done) == (1, "argument: offset 0x3: wrong: this instruction is reserved [reserved]")


def test_many_bombs_are_printed_up_to_the_limit_over_all(tmp_path: Path) -> None:
    path = tmp_path / "bombs"
    path.write_bytes(bytes.fromhex(BOMB) * 50)
    done = run("cbf", "decode", "--json", "--limit", "100", "--limit-all", "1000", path)
    assert sum(len([one for one in json.loads(line) if "address" in one]) for line in done.stdout.splitlines()) == 1000
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == (
        f"walkback: {path}: 40 backtraces left out: all together have more than 1000 frames"
    )


def test_a_bomb_is_printed_up_to_the_limit() -> None:
    done = run("cbf", "decode", "--json", "--limit", "3", BOMB)
    assert json.loads(done.stdout) == [{"kind": "pc", "address": 127}] * 3 + [{"kind": "truncated"}]
    assert told(done) == (1, "argument: 1 backtrace of more than 3 frames: the others are left out")
    assert len(run("cbf", "decode", BOMB).stdout.splitlines()) == 65537


def test_encode_is_the_reverse(tmp_path: Path) -> None:
    path = tmp_path / "frames.json"
    path.write_text(json.dumps(OBJECTS))
    assert run("cbf", "encode", path).stdout == DATA
    path.write_text(f"{json.dumps(OBJECTS)}\n\n{json.dumps(OBJECTS[:1])}\n")
    output = tmp_path / "out.cbf"
    assert run("cbf", "encode", path, "-o", output).returncode == 0
    assert output.read_bytes() == DATA + b"\x02\x18\x11\x00"
    assert run("cbf", "encode", path, "--hex").stdout.decode().split() == [DATA.hex(), "02181100"]
    assert [base64.b64decode(line) for line in run("cbf", "encode", path, "--base64").stdout.split()] == [
        DATA,
        b"\x02\x18\x11\x00",
    ]
    done = run("cbf", "decode", "--json", output)
    assert done.stdout.decode() == f"{json.dumps(OBJECTS)}\n{json.dumps(OBJECTS[:1])}\n"


def test_encode_takes_words_styles_and_no_end() -> None:
    frames = '[{"kind": "pc", "address": 65535}, {"kind": "omit", "count": 32}]'
    assert fed(frames, "encode", "--word", "16", "--hex").stdout == b"0018ff5f00\n"
    assert fed(frames, "encode", "--word", "32", "--hex").stdout == b"011a00ffff5f00\n"
    assert fed(frames, "encode", "--as", "swift", "--hex").stdout == b"021200ffff602000\n"
    assert fed(frames, "encode", "--no-end", "--hex").stdout == b"021a00ffff5f\n"
    assert fed("[]", "encode", "--hex").stdout == b"0200\n"


def test_images_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    images = tmp_path / "half.cif"
    images.write_bytes(encode_images(ImageMap(64, "", (Image("/lib/a.so", b"id", 0x1000, 0x2000),)))[:-3])
    status, message = told(run("cbf", "decode", DATA.hex(), "--images", images))
    assert status == 1
    assert "half.cif: offset" in message
    swift = {"backtrace": base64.b64encode(DATA).decode(), "imageMap": "!!!"}
    status, message = told(fed(json.dumps(swift), "decode"))
    assert (status, message) == (1, '/dev/stdin: "imageMap" is not base64')


def test_frames_may_come_through_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([WALKBACK, "cbf", "encode", "--hex", pipe], stdout=subprocess.PIPE) as encoding:
        pipe.write_text(json.dumps(OBJECTS))
        assert encoding.stdout.read().decode().strip() == DATA.hex()


def test_an_empty_argument_is_no_file() -> None:
    status, message = told(run("cbf", "decode", ""))
    assert status == 3
    assert "there is no such file" in message


def test_what_cannot_be_encoded_is_told(tmp_path: Path) -> None:
    wide = '[{"kind": "pc", "address": 65536}]'
    assert told(fed(wide, "encode", "--word", "16")) == (3, "/dev/stdin: the address 0x10000 has more than 16 bits")
    assert told(fed("{}", "encode")) == (3, "/dev/stdin: a backtrace is a list of frames")
    assert told(fed("", "encode")) == (3, "/dev/stdin: there is no backtrace")
    assert told(fed("[]\n[1]", "encode"))[1].startswith("/dev/stdin: line 2: frame 0 is none: a frame is an object")
    assert told(fed("[]\n[", "encode"))[1].startswith("/dev/stdin: line 2 is not JSON")
    source = tmp_path / "frames.json"
    source.write_text("[]")
    assert "frames.json is what is read" in str(run("cbf", "encode", source, "-o", source).stderr)
    assert source.read_text() == "[]"
    output = tmp_path / "out.cbf"
    assert fed("[]\n[1]", "encode", "-o", str(output)).returncode == 3
    assert not output.exists()
    assert "a backtrace is not for a terminal" in str(on_a_terminal("cbf", "encode", "/dev/null"))


# Names


def test_frames_are_named_by_an_image_map(tmp_path: Path) -> None:
    program = hello(tmp_path, "-Wl,--build-id=0xc0ffee")
    names, (start, size, offset) = symbols(program), text(program)
    build_id = ElfFile(program).build_id
    moved = 0x5550_0000_0000
    base = start - offset + moved
    images = ImageMap(64, "Linux", (Image(str(program), build_id, base, base + offset + size),))
    path = tmp_path / "images.cif"
    path.write_bytes(encode_images(images))
    frames = [
        {"kind": "pc", "address": names["compute"] + 4 + moved},
        # Behind the last byte of `_start`'s call: the call counts.
        {"kind": "ra", "address": names["main"] + moved},
        {"kind": "ra", "address": 0x10},
    ]
    data = fed(json.dumps(frames), "encode", "--hex").stdout.decode().strip()
    lines = run("cbf", "decode", "--images", path, data).stdout.decode().splitlines()
    before = names["main"] - names["_start"]
    assert [line.split(maxsplit=3)[3] for line in lines[:2]] == [
        f"compute+0x4 {program} (c0ffee)",
        f"_start+{before:#x} {program} (c0ffee)",
    ]
    assert lines[2].split() == ["2", "ra", "0x10"]
    (objects,) = decoded("--images", path, data)
    assert objects[0] == {
        **frames[0],
        "module": str(program),
        "build_id": "c0ffee",
        "offset": names["compute"] + 4 + moved - base,
        "symbol": "compute",
        "symbol_offset": 4,
    }
    assert objects[2] == frames[2]
    # What `decode --json` prints with names can be encoded again.
    assert fed(json.dumps(objects), "encode", "--hex").stdout.decode().strip() == data
    swift = {"architecture": "x86_64", "backtrace": base64.b64encode(bytes.fromhex(data)).decode()}
    swift["imageMap"] = base64.b64encode(path.read_bytes()).decode()
    assert fed(json.dumps(swift), "decode").stdout.decode().splitlines() == lines
    # Without the file there is its build ID, and the offset in it.
    program.unlink()
    done = run("cbf", "decode", "--images", path, data)
    assert done.stdout.decode().splitlines()[0].split(maxsplit=3)[3] == (
        f"{program}+{names['compute'] + 4 + moved - base:#x} (c0ffee)"
    )
    assert str(program) in told(done)[1]


def test_what_has_no_path_is_not_looked_for_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("[vdso]").write_bytes(hello(tmp_path).read_bytes())
    images = tmp_path / "images.cif"
    images.write_bytes(encode_images(ImageMap(64, "", (Image("[vdso]", None, 0x1000, 0x2000),))))
    data = fed('[{"kind": "pc", "address": 4160}]', "encode", "--hex").stdout.decode().strip()
    done = run("cbf", "decode", "--images", images, data)
    assert done.stdout.split()[-1] == b"[vdso]+0x40"
    assert told(done)[1].endswith(": [vdso]: there is no such file")


# Walking


def test_unwind_writes_a_backtrace_a_sample(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path)))
    data = run("unwind", path, "--format", "cbf").stdout
    samples = [json.loads(line) for line in run("unwind", path, "--format", "json").stdout.splitlines()]
    for sample in samples:
        plain = read(data)
        data = data[plain.size :]
        wanted = [("pc" if one["pc"] == one["lookup"] else "ra", one["pc"]) for one in sample["frames"]]
        assert plain.each() == wanted
        assert [kind for kind, _ in wanted] == ["pc", "ra", "ra"][: len(wanted)]
        assert plain.truncated == (sample["end"] != "complete")
    assert not data
    assert "--format cbf is not for a terminal" in str(on_a_terminal("unwind", path, "--format", "cbf"))


def test_frames_have_lines_and_the_calls_that_are_inlined_there(tmp_path: Path) -> None:
    program = compiled(tmp_path, PROGRAM, "-g", "-O2", "-Wl,--build-id")
    with started(program) as child:
        trace, images = tmp_path / "trace.cbf", tmp_path / "images.cif"
        assert run("stack", str(child.pid), "--format", "cbf", "-o", trace).returncode == 0
        assert run("cif", "encode", "--pid", str(child.pid), "-o", images).returncode == 0
    lines = run("cbf", "decode", "--images", images, trace).stdout.decode().splitlines()
    (at,) = [number for number, line in enumerate(lines) if " outer+0x" in line]
    source = tmp_path / "target.c"
    assert lines[at - 2 : at] == [f"        inlined  inner at {source}:5", f"        inlined  middle at {source}:6"]
    assert lines[at].endswith(f" at {source}:7")
    (objects,) = decoded("--images", images, trace)
    (outer,) = [one for one in objects if one.get("symbol") == "outer"]
    assert [(one["symbol"], one["line"]) for one in outer["inlined"]] == [("inner", 5), ("middle", 6)]
    assert (outer["file"], outer["line"]) == (str(source), 7)
    text = run("cbf", "decode", "--images", images, "--no-inline", trace).stdout.decode()
    assert "inlined" not in text
    assert f" at {source}:7" in text
    assert "target.c" not in run("cbf", "decode", "--images", images, "--no-lines", trace).stdout.decode()
