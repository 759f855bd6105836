"""What verbs say about a recording when they have walked it: stacks that are not complete, losses, and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walkback.base.text import counted
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, complain
from walkback.cli.walking import any_complete, complain_of

if TYPE_CHECKING:
    import numpy as np

    from walkback.capture.perfdata.recording import Recording
    from walkback.walking.moduletable import Only

NO_SAMPLES = "there are no samples"
NOTHING_TO_WALK = "no sample has registers and stack; perf record --call-graph dwarf,16384 records them"


def account_for(
    file: str,
    recording: Recording | None,
    ends: np.ndarray,
    troubles: list[str],
    only: Only | None = None,
    *,
    live: bool = False,
    grows: bool = False,
) -> int:
    """Say what is missing; the exit status is 1 if the recording is damaged, or if no stack is complete.

    `live` is what was recorded just now, by this program and not by perf; by stops, if there is no recording. More of
    each stack was copied by itself if it `grows`.
    """
    import numpy as np

    from walkback.stacks.stacks import END_REASONS, END_WORDS, End

    total = int(ends.sum())
    if not total:
        complain(f"{file}: {NO_SAMPLES}")
    short = {End(end): int(ends[end]) for end in np.flatnonzero(ends).tolist() if end != End.COMPLETE}
    if short:
        words = {end: END_WORDS[end] + (f" ({END_REASONS[end]})" if end in END_REASONS else "") for end in short}
        reasons = ", ".join(f"{short[end]} {words[end]}" for end in sorted(short, key=lambda end: -short[end]))
        complain(f"{file}: {sum(short.values())} of {counted(total, 'stack')} not complete: {reasons}")
    if not live and total and ends[End.NO_REGISTERS] == total:
        complain(f"{file}: {NOTHING_TO_WALK}")
    elif not grows and 20 * ends[End.STACK_CUT] > total:
        way = "--stack-bytes 65528" if live else "perf record --call-graph dwarf,65528"
        complain(f"{file}: {way} copies more of each stack")
    fine = any_complete(ends, only)
    if recording is not None:
        complain_of_losses(file, recording, live=live)
        fine = fine and not recording.troubles and not recording.counts.damaged
    complain_of(file, troubles)
    return EXIT_FINE if fine else EXIT_FINDINGS


def complain_of_losses(file: str, recording: Recording, *, live: bool = False) -> None:
    """What the kernel could not record."""
    counts = recording.counts
    if counts.lost or counts.lost_samples:
        lost = counted(max(counts.lost, counts.lost_samples), "record")
        way = "a lower frequency, or fewer --stack-bytes, loses none" if live else "perf record -m makes it larger"
        complain(f"{file}: the kernel lost {lost} because its buffer was full ({way})")
