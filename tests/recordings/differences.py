"""Every way in which `perf script` and walkback differ on a recording, by name, with who is right and what proves it.

perf 6.1 walks by libunwind. A difference that is none of these is a fault, of which tests tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recordings.perfscript import CUT, Frame, Sample, is_after_call, is_code
from walkback.stacks.stacks import End, How


@dataclass(frozen=True)
class Difference:
    """A sample of both, which are the same up to `at`."""

    theirs: Sample
    ours: Sample
    at: int
    dumped: int
    """Bytes of stack that perf has copied."""

    @property
    def rest(self) -> tuple[list[Frame], list[Frame]]:
        return self.theirs.frames[self.at :], self.ours.frames[self.at :]

    @property
    def user(self) -> list[Frame]:
        """The frames of the program that both have."""
        return [one for one in self.ours.frames[: self.at] if not one.kernel]

    def are_calls(self, frames: list[Frame]) -> bool:
        """Whether each of these frames of ours is one that a call has left, or one that a signal interrupted."""
        whole = self.ours.frames
        for i in (i for i, one in enumerate(whole) if any(one is other for other in frames)):
            # Nothing called the code that handlers return to.
            returns_to_interrupted = i + 1 < len(whole) and whole[i + 1].exact
            if not whole[i].exact and not returns_to_interrupted and not is_after_call(whole[i]):
                return False
        return True


def first_difference(theirs: Sample, ours: Sample, dumped: int) -> Difference | None:
    """Where two stacks part; None if they are the same, frame by frame by their places in the same files."""
    pairs = zip(theirs.frames, ours.frames, strict=False)
    at = next((i for i, pair in enumerate(pairs) if not is_same(*pair)), min(len(theirs.frames), len(ours.frames)))
    if at == len(theirs.frames) == len(ours.frames):
        return None
    return Difference(theirs, ours, at, dumped)


def is_same(theirs: Frame, ours: Frame) -> bool:
    if theirs.place != ours.place:
        return False
    return ours.kernel or not ours.module.startswith("/") or theirs.module == ours.module


def _end_marked(one: Difference) -> bool:
    """perf shows one more address, 2**64-1, where it reads no return address or 0; we end there with a reason.

    The stack may go on, so neither shows a wrong frame. For a signal handler on a stack of its own the copy is of that,
    and the memory of the other cannot be read. A return address of 0 is found by both where the C++ runtime has just
    moved the stack pointer to where an exception is caught, which no table can say.
    """
    theirs, ours = one.rest
    ended = one.ours.end in {End.STACK_CUT, End.UNREADABLE, End.ZERO}
    return [frame.place for frame in theirs] == [CUT] and not ours and ended


def _last_word(one: Difference) -> bool:
    """perf does not read the last word that was copied; we do, and find one frame more, which follows a call."""
    theirs, ours = one.rest
    at_end = [frame.place for frame in theirs] == [CUT] and one.ours.end in {End.STACK_CUT, End.UNREADABLE}
    return at_end and len(ours) == 1 and one.are_calls(ours)


def _nothing_copied(one: Difference) -> bool:
    """perf shows no frame of the program where no stack was copied; we show where it was.

    A new program is being made ready by exec, or a new thread's stack is not there yet.
    """
    theirs, ours = one.rest
    return not theirs and not one.user and not one.dumped and len(ours) <= 2


def _made_at_run_time(one: Difference) -> bool:
    """No file has tables for code that was made at run time: perf stops there, we go on by frame pointers.

    Now and then it stops some frames before it, as in "not followed". V8 keeps frame pointers. The frames that we
    find in files are of its own runtime and follow calls.
    """
    theirs, ours = one.rest
    theirs = [frame for frame in theirs if frame.place != CUT]
    guessed = [i for i, frame in enumerate(one.ours.frames) if frame.how is How.FP_GUESS]
    if theirs or not guessed:
        return False
    return one.are_calls([frame for frame in ours if frame.module.startswith("/")])


def _not_followed(one: Difference) -> bool:
    """perf stops though call frame information goes on: our frames all follow calls, as far as the stack was copied.

    libunwind finds no tables for static programs at a fixed address, for a program that another one became by exec,
    for code that has just been mapped, and sometimes for no reason to be seen.
    """
    theirs, ours = one.rest
    theirs = [frame for frame in theirs if frame.place != CUT]
    return not theirs and bool(ours) and _has_ended(one) and _are_sound(one, ours)


def _left_out(one: Difference) -> bool:
    """perf leaves frames out: where libunwind finds no table it takes rbp for a frame pointer.

    All frames that it shows we show as well, in that order, but for addresses where no code is at its end; those that
    it has not follow calls.
    """
    theirs, ours = one.rest
    theirs = [frame for frame in theirs if frame.place != CUT]
    while theirs and not _may_be_code(theirs[-1]):
        theirs.pop()
    places = iter(ours)
    is_part = all(any(is_same(frame, other) for other in places) for frame in theirs)
    return bool(theirs) and is_part and len(theirs) < len(ours) and _has_ended(one) and _are_sound(one, ours)


def _no_code(one: Difference) -> bool:
    """perf ends with addresses where no code is, as on the stack or in a file's data; ours all follow calls.

    rbp has led it there: it had no table, though there is one.
    """
    theirs, ours = one.rest
    strays = [frame for frame in theirs if frame.place != CUT]
    if not strays or not ours or any(_may_be_code(frame) for frame in strays):
        return False
    return _has_ended(one) and _are_sound(one, ours)


def _mapped_data(one: Difference) -> bool:
    """Both follow what is no return address: perf names the file's data there, we say that it is not code and end.

    That happens where the C++ runtime has just moved the stack pointer to where an exception is caught.
    """
    theirs, ours = one.rest
    theirs = [frame for frame in theirs if frame.place != CUT]
    if len(theirs) != 1 or len(ours) != 1 or one.ours.end is not End.NOT_CODE or ours[0].module:
        return False
    return theirs[0].place % 4096 == ours[0].place % 4096 and not is_code(theirs[0].module, theirs[0].place)


def _may_be_code(frame: Frame) -> bool:
    return frame.module not in {"[stack]", "[heap]", "[unknown]"} and is_code(frame.module, frame.place)


def outermost(frame: Frame) -> bool:
    """The first code of the dynamic linker does not say that nobody called it, and 0 stands behind it."""
    return frame.symbol in {"_start", "_dl_start_user"} and "/ld-linux" in frame.module


def _has_ended(one: Difference) -> bool:
    """Whether ours goes on to the outermost frame, or to where the copy of the stack ends."""
    return one.ours.end in {End.COMPLETE, End.GUESSED, End.STACK_CUT} or outermost(one.ours.frames[-1])


def _are_sound(one: Difference, frames: list[Frame]) -> bool:
    """Whether tables have led to each of these frames, and each is one that a call has left.

    Under frames like that there may be code that was made at run time, as in "made at run time".
    """
    led = {How.CFI, How.SFRAME, How.SIGNAL, How.ENTRY, How.REGISTERS}
    if any(frame.how is How.FP_GUESS for frame in frames):
        led.add(How.FP_GUESS)
        frames = [frame for frame in frames if frame.module.startswith("/")]
    return all(frame.how in led for frame in frames) and one.are_calls(frames)


CLASSES: dict[str, Callable[[Difference], bool]] = {
    "the end is marked": _end_marked,
    "the last word": _last_word,
    "nothing was copied": _nothing_copied,
    "made at run time": _made_at_run_time,
    "not followed": _not_followed,
    "left out": _left_out,
    "no code": _no_code,
    "mapped data": _mapped_data,
}


def class_of(one: Difference) -> str | None:
    """The name of the class of a difference; None if nothing explains it."""
    return next((name for name, holds in CLASSES.items() if holds(one)), None)
