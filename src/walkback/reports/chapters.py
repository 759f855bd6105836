"""The figures of a survey in the order in which they are read."""

from __future__ import annotations

from walkback.base.dataclass import dataclass
from walkback.reports.codefigures import CODE_FIGURES
from walkback.reports.coverfigures import COVERAGE_FIGURES, FRAME_POINTER_FIGURES, SFRAME_FIGURES
from walkback.reports.figures import Figure
from walkback.reports.filefigures import FILE_FIGURES, SURVEY_FIGURES
from walkback.reports.prooffigures import PROOF_FIGURES
from walkback.reports.sizefigures import SIZE_FIGURES


@dataclass(frozen=True, slots=True)
class Chapter:
    """Figures about one thing."""

    name: str
    title: str
    figures: tuple[Figure, ...]


CHAPTERS = (
    Chapter("size", "Size", SIZE_FIGURES),
    Chapter("coverage", "Coverage", (*CODE_FIGURES, *COVERAGE_FIGURES)),
    Chapter("frame-pointers", "Frame pointers", FRAME_POINTER_FIGURES),
    Chapter("sframe", "SFrame in files", SFRAME_FIGURES),
    Chapter("proof", "Proved against the code", PROOF_FIGURES),
    Chapter("extremes", "Largest and worst", FILE_FIGURES),
    Chapter("survey", "What was surveyed", SURVEY_FIGURES),
)
FIGURES = {figure.name: figure for chapter in CHAPTERS for figure in chapter.figures}
"""By their names, which do not change."""
