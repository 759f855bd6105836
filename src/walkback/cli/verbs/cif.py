"""`walkback cif`: image maps explained, written and read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import click

from walkback.base.text import printable
from walkback.cli.blobs import FROM, INPUT, coded, parsed_json, read_blob
from walkback.cli.command import Verb, VerbGroup
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, guarded
from walkback.cli.paths import INPUT_FILE, opened, refuse_input, refuse_terminal
from walkback.cli.searching import Searching, file_options
from walkback.cli.walking import OUTPUT, complain_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from walkback.base.findings import ByteFinding
    from walkback.capture.imagemaps import CapturedImages
    from walkback.cif.encoding import Style

_WIDEST = 24
"""Bytes of a part that are shown on one line."""


class PartObject(TypedDict):
    """Some bytes that belong together, as JSON."""

    type: Literal["part"]
    """The type of the object."""
    offset: int
    """The offset in the map."""
    bytes: str
    """The bytes, in hexadecimal."""
    name: str
    """Their name."""
    meaning: str
    """Their meaning."""


class FindingObject(TypedDict):
    """The type of a finding, as JSON."""

    type: Literal["finding"]
    """The type of the object."""


@click.group(cls=VerbGroup, examples=("walkback cif show hello.cif", "walkback cif encode core.hello -o new.cif"))
def cif() -> None:
    """Explain, encode and decode Compact Image Map Format.

    An image map lists the files that a process has mapped as code: path, build ID, and where the image and its code
    begin and end.
    """


@cif.command(
    cls=Verb,
    examples=(
        "walkback cif show hello.cif",
        "walkback cif show hello.cif --json",
    ),
    exit_1="anything is wrong.",
)
@INPUT
@FROM
@JSON
@click.pass_context
def show(ctx: click.Context, source: str, form: str, as_json: bool) -> None:
    """Explain each byte, and what is wrong.

    INPUT is a file, - for standard input, or the bytes as hexadecimal or base64.
    """
    import json

    from walkback.cif.decoding import explain

    def work(_: str) -> int:
        blob = read_blob(source, form, "imageMap")
        parts, findings = explain(blob.data)
        for part in parts:
            if as_json:
                value: PartObject = {
                    "type": "part",
                    "offset": part.offset,
                    "bytes": part.data.hex(),
                    "name": part.name,
                    "meaning": part.meaning,
                }
                click.echo(json.dumps(value))
            else:
                shown = part.data[:_WIDEST].hex(" ") + (" ..." if len(part.data) > _WIDEST else "")
                click.echo(printable(f"{part.offset:#06x}  {part.name:<8}  {shown}  {part.meaning}".rstrip()))
        for finding in findings:
            if as_json:
                kind: FindingObject = {"type": "finding"}
                click.echo(json.dumps({**kind, **finding.as_object()}))
            else:
                click.echo(printable(str(finding)))
        return _status(findings)

    ctx.exit(guarded(work, source, source))


@cif.command(
    cls=Verb,
    examples=(
        "walkback cif decode hello.cif",
        "walkback cif decode hello.cif --json",
    ),
    exit_1="something is wrong with the map. It is 3 if the map cannot be decoded.",
)
@INPUT
@FROM
@click.option("--lenient", is_flag=True, help="Keep the images that can be read, and report the errors.")
@JSON
@click.pass_context
def decode(ctx: click.Context, source: str, form: str, lenient: bool, as_json: bool) -> None:
    """Print the images.

    INPUT is a file, - for standard input, or the bytes as hexadecimal or base64.
    """
    import json

    from walkback.cif.decoding import decode as decode_images
    from walkback.cif.objects import to_json

    def work(_: str) -> int:
        blob = read_blob(source, form, "imageMap")
        images = decode_images(blob.data, lenient=lenient)
        if as_json:
            click.echo(json.dumps(to_json(images)))
        else:
            click.echo(printable(f"{images.platform or 'no platform'}, {images.word} bits"))
            for one in images.images:
                build_id = one.build_id.hex() if one.build_id else "no build ID"
                click.echo(printable(f"{one.base:#x}-{one.end:#x}  {build_id}  {one.path or 'no path'}"))
        complain_of(blob.name, [str(finding) for finding in images.findings if not finding.note])
        return _status(images.findings)

    ctx.exit(guarded(work, source, source))


@cif.command(
    cls=Verb,
    examples=(
        "walkback cif encode core.hello -o hello.cif",
        "walkback cif encode --pid $PID --hex",
    ),
    exit_1="something is missing, or a recording has several processes and none is chosen.",
)
@click.argument("source", metavar="[SOURCE]", required=False, type=INPUT_FILE)
@click.option(
    "--pid",
    type=click.IntRange(1),
    metavar="PID",
    help="A live process, or a process of the recording; required if that has several.",
)
@click.option("--exe", type=INPUT_FILE, metavar="FILE", help="The program of a core file.")
@file_options
@click.option(
    "--as",
    "style",
    type=click.Choice(["short", "swift"]),
    default="short",
    show_default=True,
    help="Use few bytes, or encode as Swift does.",
)
@click.option("--hex", "coding", flag_value="hex", help="Write hexadecimal text.")
@click.option("--base64", "coding", flag_value="base64", help="Write base64 text.")
@OUTPUT
@click.pass_context
def encode(
    ctx: click.Context,
    /,
    source: str | None,
    pid: int | None,
    exe: str | None,
    searching: Searching,
    style: Style,
    coding: str | None,
    output: str | None,
) -> None:
    """Encode the map of a process, core, recording or JSON.

    SOURCE is a core file, a perf.data file, or JSON as `decode --json` prints. Without SOURCE, give a live process with
    --pid, or JSON on standard input.
    """
    if source is None and pid is None:
        source = INPUT_FILE.convert("-", None, ctx)
    if coding is None:
        refuse_terminal("an image map", output)
    if source is not None:
        refuse_input(source, output)

    def work(_: str) -> int:
        from walkback.cif.encoding import encode as encode_images

        given = {"pid": pid, "exe": exe, "sysroot": searching.sysroot, "buildid_dir": searching.buildid_dir}
        found = _captured(source, given, searching)
        data = encode_images(found.images, style=style)
        with opened(output) as out:
            out.write(coded(data, coding))
        complain_of(name, [*found.troubles, *found.notes])
        return EXIT_FINDINGS if found.troubles else EXIT_FINE

    name = f"process {pid}" if source is None else source
    ctx.exit(guarded(work, name, name))


def _status(findings: Sequence[ByteFinding]) -> int:
    return EXIT_FINDINGS if any(not finding.note for finding in findings) else EXIT_FINE


def _captured(source: str | None, given: dict[str, Any], searching: Searching) -> CapturedImages:
    """The image map of what SOURCE is; `given` has the values of options that are only for some kinds of it."""
    from walkback.capture.imagemaps import CapturedImages, images
    from walkback.capture.perfdata.layout import MAGICS
    from walkback.cif.objects import from_json
    from walkback.elf import OpenFile, is_elf

    folder = source is not None and Path(source).is_dir()
    data = b"" if source is None or folder else OpenFile(source)
    if source is None:
        kind, takes = "a live process", {"pid"}
    elif is_elf(data):
        kind, takes = "a core file", {"exe", "sysroot", "buildid_dir"}
    elif folder or bytes(data[:8]) in MAGICS:
        kind, takes = "a recording of perf", {"pid", "sysroot", "buildid_dir"}
    else:
        kind, takes = "JSON", set()
    strange = [option for option, value in given.items() if value is not None and option not in takes]
    if strange:
        message = f"--{strange[0].replace('_', '-')} is not for {kind}"
        raise click.UsageError(message)
    if source is None:
        return images(given["pid"])
    if kind == "JSON":
        return CapturedImages(from_json(parsed_json(bytes(data[:]))), [], [])
    return images(source, pid=given["pid"], exe=given["exe"], search=searching.search)
