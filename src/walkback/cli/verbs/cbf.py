"""`walkback cbf`: compact backtraces explained, written and read."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import click

from walkback.base.dataclass import dataclass
from walkback.base.text import counted, printable
from walkback.cli.blobs import FROM, INPUT, coded, read_blob, read_blobs, read_whole
from walkback.cli.command import Verb, VerbGroup
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, complain, guarded
from walkback.cli.paths import INPUT_FILE, STREAM, opened, refuse_input, refuse_terminal
from walkback.cli.searching import Searching, file_options
from walkback.cli.walking import INLINE, LINES, OUTPUT, complain_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.cbf.backtraces import Backtrace
    from walkback.cbf.instructions import BacktraceInstruction
    from walkback.cli.blobs import Blob
    from walkback.naming.located import Located, Locator

_WIDEST = 9
"""Bytes of an instruction that are shown on one line."""


@click.group(cls=VerbGroup, examples=("walkback cbf show trace.cbf", "walkback cbf decode trace.cbf"))
def cbf() -> None:
    """Explain, encode and decode Compact Backtrace Format.

    A backtrace is a list of addresses, in one to nine bytes each. A file can have several backtraces.
    """


@cbf.command(
    cls=Verb,
    examples=(
        "walkback cbf show '02 1a 40 10 46 00'",
        "walkback cbf show trace.cbf",
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

    from walkback.cbf.instructions import explain

    def work(_: str) -> int:
        wrong = False
        blobs = read_blobs(source, form)
        for blob in blobs:
            if len(blobs) > 1 and not as_json:
                click.echo(f"{printable(blob.name)}:")
            for one in explain(blob.data):
                wrong = wrong or any(not finding.note for finding in one.findings)
                if as_json:
                    click.echo(json.dumps(one.as_object()))
                else:
                    _print_instruction(one)
        return EXIT_FINDINGS if wrong else EXIT_FINE

    ctx.exit(guarded(work, source, source))


def _print_instruction(one: BacktraceInstruction) -> None:
    shown = one.data[:_WIDEST].hex(" ") + (" ..." if len(one.data) > _WIDEST else "")
    address = "" if one.address is None else f"  {one.address:#x}"
    click.echo(f"{one.offset:#06x}  {shown:<26}  {one.mnemonic:<5}  {one.meaning}{address}")
    for finding in one.findings:
        click.echo(str(finding))


@dataclass(frozen=True, slots=True)
class _WantedFrames:
    """How backtraces are printed."""

    lenient: bool
    limit: int
    all_limit: int
    images: str | None
    searching: Searching
    lines: bool
    inline: bool
    as_json: bool


@dataclass(slots=True)
class _Printed:
    """What was printed of all backtraces of an input."""

    backtraces: int = 0
    frames: int = 0
    full: bool = False
    """Whether one was left out because all together have too many frames; then the others are, too."""


@cbf.command(
    cls=Verb,
    examples=(
        "walkback cbf decode '02 1a 40 10 46 00'",
        "walkback cbf decode trace.cbf --json",
    ),
    exit_1="something is left out (--lenient, --limit, --limit-all), the image map is wrong, or there is no "
    "backtrace. It is 3 if a backtrace cannot be decoded.",
)
@INPUT
@FROM
@click.option(
    "--lenient", is_flag=True, help="Keep the frames before an error, as Swift's reader does; report it, and exit 1."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1 << 26),
    metavar="N",
    default=1 << 16,
    show_default=True,
    help="Print at most this many frames of a backtrace, mark it as truncated, and exit 1.",
)
@click.option(
    "--limit-all",
    "all_limit",
    type=click.IntRange(1),
    metavar="N",
    default=1 << 20,
    show_default=True,
    help="Print at most this many frames of all backtraces together, count the backtraces left out, and exit 1.",
)
@click.option(
    "--images",
    metavar="FILE",
    type=INPUT_FILE,
    help="Name frames with this image map, in CIF. [default: the one beside a backtrace in Swift's JSON]",
)
@file_options
@LINES
@INLINE
@JSON
@click.pass_context
def decode(
    ctx: click.Context,
    /,
    source: str,
    form: str,
    lenient: bool,
    limit: int,
    all_limit: int,
    images: str | None,
    searching: Searching,
    lines: bool,
    inline: bool,
    as_json: bool,
) -> None:
    """Print the frames, innermost first.

    INPUT is a file, - for standard input, or the bytes as hexadecimal or base64. In Swift's JSON, the image map beside
    a backtrace serves as --images.
    """
    wanted = _WantedFrames(lenient, limit, all_limit, images, searching, lines, inline, as_json)

    def work(_: str) -> int:
        printed = _Printed()
        return max(_print_backtraces(blob, wanted, printed) for blob in read_blobs(source, form))

    ctx.exit(guarded(work, source, source))


def _print_backtraces(blob: Blob, wanted: _WantedFrames, printed: _Printed) -> int:
    from walkback.base.errors import WalkbackError
    from walkback.cbf.decoding import decode_all

    try:
        many = decode_all(blob.data, lenient=wanted.lenient)
        locator, troubles = _locator(blob, wanted)
    except WalkbackError as error:
        raise error.within(file=blob.name) from None
    if not len(many):
        complain(f"{blob.name}: there is no backtrace")
    cut = left_out = 0
    for one in many:
        frames = min(one.frame_count, wanted.limit)
        printed.full = printed.full or printed.frames + frames > wanted.all_limit
        if printed.full:
            left_out += 1
            continue
        printed.frames += frames
        cut += one.frame_count > wanted.limit
        places = _places(one, locator, wanted.limit)
        if wanted.as_json:
            _print_json(one, places, wanted.limit)
        else:
            if printed.backtraces:
                click.echo()
            _print_text(one, places, wanted.limit)
        printed.backtraces += 1
    complain_of(blob.name, [str(finding) for finding in many.findings()])
    if cut:
        complain(
            f"{blob.name}: {counted(cut, 'backtrace')} of more than {wanted.limit} frames: the others are left out"
        )
    if left_out:
        several = counted(left_out, "backtrace")
        complain(f"{blob.name}: {several} left out: all together have more than {wanted.all_limit} frames")
    complain_of(blob.name if wanted.images is None else wanted.images, troubles)
    if locator is not None:
        complain_of(blob.name, locator.troubles)
    wrong = cut or left_out or troubles or not len(many) or any(True for _ in many.findings())
    return EXIT_FINDINGS if wrong else EXIT_FINE


def _locator(blob: Blob, wanted: _WantedFrames) -> tuple[Locator | None, list[str]]:
    """What names frames, if there are images, and what of these cannot be read."""
    from walkback.cif.decoding import decode as decode_images
    from walkback.naming.located import Locator

    data = blob.images if wanted.images is None else read_blob(wanted.images, key="imageMap").data
    if data is None:
        return None, [blob.trouble] if blob.trouble is not None and wanted.images is None else []
    images = decode_images(data, lenient=True)
    locator = Locator(images, search=wanted.searching.search, lines=wanted.lines, inline=wanted.inline)
    return locator, [str(one) for one in images.findings if not one.note]


def _places(one: Backtrace, locator: Locator | None, limit: int) -> list[Located | None]:
    """Where frames are, up to the limit; nothing if there are no images."""
    if locator is None:
        return []
    frames = one.together().expanded(limit, cut=True)
    return locator.locate(frames.kind, frames.value)


def _print_json(one: Backtrace, places: list[Located | None], limit: int) -> None:
    import json

    from walkback.cbf.objects import to_json

    found = [
        frame if place is None else {**frame, **place.as_object()}
        for frame, place in zip_longest(to_json(one, limit), places)
    ]
    click.echo(json.dumps(found))


def _print_text(one: Backtrace, places: list[Located | None], limit: int) -> None:
    from itertools import islice, zip_longest

    from walkback.cbf.layout import FrameCode
    from walkback.cbf.objects import NAMES

    number = 0
    lines = []
    for (kind, value), place in zip_longest(islice(one, limit), places):
        if kind == FrameCode.OMIT:
            lines.append(f"        {counted(value, 'frame')} omitted")
            number += value
            continue
        calls = place.inlined if place is not None else ()
        lines += [f"        inlined  {printable(f'{one.function} at {one.place}')}" for one in calls if one.function]
        where = "" if place is None else f"  {printable(str(place))}"
        lines.append(f"{number:>6}  {NAMES[kind]:<5}  {value:#x}{where}")
        number += 1
    if one.truncated or one.frame_count > limit:
        lines.append("        truncated")
    click.echo("\n".join(lines))


@cbf.command(
    cls=Verb,
    examples=(
        "walkback cbf encode trace.json --hex",
        "walkback cbf encode trace.json -o trace.cbf",
    ),
)
@click.argument("source", metavar="[INPUT]", default="-", type=STREAM)
@click.option("--word", type=click.Choice(["16", "32", "64"]), default="64", show_default=True, help="Bits per word.")
@click.option(
    "--as",
    "style",
    type=click.Choice(["shortest", "swift"]),
    default="shortest",
    show_default=True,
    help="Use the fewest bytes, or encode as Swift does.",
)
@click.option("--no-end", is_flag=True, help="Do not mark the end of a backtrace that is not truncated.")
@click.option("--hex", "coding", flag_value="hex", help="Write hexadecimal text, one backtrace per line.")
@click.option("--base64", "coding", flag_value="base64", help="Write base64 text, one backtrace per line.")
@OUTPUT
@click.pass_context
def encode(
    ctx: click.Context,
    /,
    source: str,
    word: str,
    style: str,
    no_end: bool,
    coding: str | None,
    output: str | None,
) -> None:
    """Encode backtraces from JSON.

    INPUT is a file or - for standard input. It has a list of frames, or one list per line, as `decode --json` prints.
    """
    refuse_input(source, output)
    if coding is None:
        refuse_terminal("a backtrace", output)

    def work(_: str) -> int:
        from walkback.base.errors import WalkbackError
        from walkback.cbf.encoding import encode as encode_backtrace
        from walkback.cbf.objects import from_json

        with opened(output) as out:
            for line, objects in _lists(source):
                try:
                    data = encode_backtrace(from_json(objects, int(word)), end=not no_end, style=style)
                except WalkbackError as error:
                    raise error.within(file=f"{source}: line {line}" if line else source) from None
                out.write(coded(data, coding))
        return EXIT_FINE

    ctx.exit(guarded(work, source, source))


def _lists(source: str) -> Iterator[tuple[int, object]]:
    """The lists of the input, and for those that stand one a line its number."""
    import json

    from walkback.base.errors import UnreadableError

    data = read_whole(source)
    try:
        yield 0, json.loads(data)
        return
    except (ValueError, RecursionError):
        lines = data.splitlines()
    if not data.strip():
        message = "there is no backtrace"
        raise UnreadableError(message)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            message = f"line {number} is not JSON: {error}"
            raise UnreadableError(message) from error
        yield number, value
