"""The threads of a process as people read them: each with its stack, a line for each frame."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from walkback.base.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.capture.snapshot import Snapshot
    from walkback.capture.stacks import ThreadStacks
    from walkback.stacks.profile import NamedFrames


def lines_of(shot: ThreadStacks, *, registers: bool) -> Iterator[str]:
    """A paragraph for each thread, behind a line about the process."""
    snapshot = shot.snapshot
    said: dict[tuple[object, ...], str] = {}
    known: dict[tuple[int, ...], str] = {}
    yield printable(f"process {snapshot.pid} {snapshot.arguments or snapshot.command}{_ending(snapshot)}")
    for number, (tid, name) in enumerate(zip(snapshot.tids, snapshot.names, strict=True)):
        stopped = int(snapshot.stopped[number])
        notes = [f"stopped for {stopped / 1e6:.3f} ms"] if stopped else []
        notes += ["got the signal"] if number == snapshot.signalled else []
        yield ""
        yield printable(f"thread {tid} {name}" + (f" ({', '.join(notes)})" if notes else ""))
        if registers:
            yield from _registers(snapshot, number)
        # Most threads of a large process wait at one place.
        key = _alike(shot, number)
        if key not in said:
            said[key] = "\n".join(map(printable, _stack(shot, number, known)))
        if said[key]:
            yield said[key]


def _ending(snapshot: Snapshot) -> str:
    """What ended the process."""
    if not snapshot.signal:
        return ""
    try:
        name = signal.Signals(snapshot.signal).name
    except ValueError:
        name = f"signal {snapshot.signal}"
    about = f" at {snapshot.fault:#x}" if snapshot.fault is not None else ""
    return f", ended by {name}{about}"


def _registers(snapshot: Snapshot, number: int) -> Iterator[str]:
    """The registers that are known, four on a line."""
    from walkback.walking.samples import PC

    machine, row = snapshot.machine, snapshot.samples.registers[number].tolist()
    known = [column for column in range(PC + 1) if int(snapshot.samples.known[number]) >> column & 1]
    if machine.ra_from_cfa and PC in known:
        known.remove(PC)  # it is the return address column of that machine's tables too, under its own name
    words = [f"{'pc' if one == PC else machine.register_name(one):>4} 0x{row[one]:016x}" for one in known]
    yield from (f"    {'  '.join(words[place : place + 4])}" for place in range(0, len(words), 4))


def _alike(shot: ThreadStacks, number: int) -> tuple[object, ...]:
    """What the lines of a stack depend on."""
    stacks = shot.stacks
    frames = slice(int(stacks.first[number]), int(stacks.first[number + 1]))
    columns = (stacks.kind, stacks.pc, stacks.how, shot.frame)
    return *(column[frames].tobytes() for column in columns), int(stacks.end[number]), int(stacks.at[number])


def _stack(shot: ThreadStacks, number: int, known: dict[tuple[int, ...], str]) -> Iterator[str]:
    """A line for each frame, and why there is no more of them; `known` keeps what was said of a frame."""
    from walkback.stacks.stacks import END_REASONS, END_WORDS, End, FrameKind

    stacks = shot.stacks
    first, end = (int(stacks.first[at]) for at in (number, number + 1))
    exact, returns = int(FrameKind.EXACT), int(FrameKind.RETURN)
    kinds = [*stacks.kind[first:end].tolist(), returns]
    pcs, hows, frames = (column[first:end].tolist() for column in (stacks.pc, stacks.how, shot.frame))
    for depth, (pc, how, frame) in enumerate(zip(pcs, hows, frames, strict=True)):
        # Names are those of the call before, and what is shown is where it returns to.
        after = int(kinds[depth] == returns and kinds[depth + 1] != exact)
        about = known.get((frame, how, after))
        if about is None:
            about = known[frame, how, after] = _about(shot.frames, frame, how, after)
        yield f"#{depth:<3} 0x{pc:016x} {about}"
    why = End(int(stacks.end[number]))
    if why == End.UNKNOWN_REGISTER:
        yield f"      {END_WORDS[why]} {shot.snapshot.machine.register_name(int(stacks.at[number]))}"
    elif why in END_REASONS:
        yield f"      {END_WORDS[why]}: {END_REASONS[why]}"
    elif why != End.COMPLETE:
        yield f"      {END_WORDS[why]} at {int(stacks.at[number]):#x}"


def _about(frames: NamedFrames, frame: int, how: int, after: int) -> str:
    """What a line says of a frame behind its address."""
    from walkback.stacks.stacks import HOW_WORDS, How

    away = after + (int(frames.offset[frame]) if frames.offset is not None else 0)
    where = f"+{away:#x}" if frames.symbol[frame] and away and how != How.INLINED and how < How.PYTHON else ""
    source = ""
    if frames.file is not None and frames.line is not None and frames.file[frame]:
        source = f" at {frames.file[frame]}:{frames.line[frame]}"
    module = "" if how >= How.PYTHON else f" ({frames.module[frame] or 'no file'})"
    return f"{frames.label(frame)}{where}{source}{module} [{HOW_WORDS[How(how)]}]"
