"""The figures of a survey in the order in which they are read."""

from __future__ import annotations

from dataclasses import dataclass

from walkback.report.codefigures import CODE_FIGURES
from walkback.report.coverfigures import COVERAGE_FIGURES, FRAME_POINTER_FIGURES, SFRAME_FIGURES
from walkback.report.figures import Figure
from walkback.report.filefigures import FILE_FIGURES, SURVEY_FIGURES
from walkback.report.sizefigures import SIZE_FIGURES


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
    Chapter("sframe", "SFrame that is there", SFRAME_FIGURES),
    Chapter("extremes", "Largest and worst", FILE_FIGURES),
    Chapter("survey", "What was surveyed", SURVEY_FIGURES),
)
FIGURES = {figure.name: figure for chapter in CHAPTERS for figure in chapter.figures}
"""By their names, which do not change."""
