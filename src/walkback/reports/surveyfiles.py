"""Every file of a survey, as columns for its page: few to list and search them all, and the rest to show one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.arrays import I64, U64
from walkback.reports.columns import PageColumns
from walkback.segments.database import readable
from walkback.surveys import layout

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_EXAMPLES = 300_000
"""Functions with a reason that a page names, about; it says how many there are of each reason."""
_MOST_EXAMPLES = 10
_MOST = np.uint64(2**63)

_PLACES = "its place"
"""The column with the numbers of the files that rows are about."""
_LIST_WORDS = ("machine", "producer", "language", "kind", "outcome")
_WORDS = ("producer_version", "producer_evidence", "linker", "source", "error")
_NUMBERS = tuple(name for name, kind in layout.COLUMNS["files"].items() if kind == "UBIGINT")
_LIST_NUMBERS = ("bytes", "functions", "fp_functions")
_VERSION_NUMBERS = tuple(name for name, kind in layout.COLUMNS["versions"].items() if kind == "UBIGINT")
_SFRAME_NUMBERS = tuple(name for name, kind in layout.COLUMNS["sframe"].items() if kind == "UBIGINT")


class SurveyedFiles:
    """The files in the order of their names."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self.list = PageColumns()
        """What the list shows. Numbers are one more than they are, and 0 where there is none."""
        self.details = PageColumns()
        """What else there is."""
        self.words: dict[str, list[str]] = {}
        """What the numbers in some columns stand for."""
        self.number: dict[str, int] = {}
        """The number of each content."""
        self.examples = _MOST_EXAMPLES
        """The most functions that are named for a reason of a file."""
        self._add_places()
        self._add_files()
        self._add_versions()
        self._add_sframe()
        self._add_functions()

    def _ask(self, sql: str) -> dict[str, Any]:
        with readable():
            return self._connection.execute(sql).fetchnumpy()

    def _add_places(self) -> None:
        """Files are numbered by the first of their names."""
        found = self._ask(
            """
            SELECT content, path || coalesce('(' || member || ')', '') AS name,
              coalesce(package || ' ' || package_version, package, '') AS package,
              min(name) OVER (PARTITION BY content) AS first
            FROM places
            ORDER BY first, content, name
            """
        )
        contents = _texts(found["content"])
        for content in contents:
            self.number.setdefault(content, len(self.number))
        numbers = np.array([self.number[content] for content in contents], np.int64)
        self.list.texts("place", _texts(found["name"]))
        self.list.numbers("places", np.bincount(numbers, minlength=len(self.number)))
        self._add_words(self.list, "package", _texts(found["package"]))

    def _add_words(self, columns: PageColumns, name: str, texts: Sequence[str]) -> None:
        """Texts with few different values."""
        words = sorted(set(texts) | {""})
        number = {word: place for place, word in enumerate(words)}
        self.words[name] = words
        columns.numbers(name, np.array([number[text] for text in texts], np.int64))

    def _spread(self, found: dict[str, Any], name: str) -> U64:
        """A column of numbers in the order of the files, one more than they are."""
        spread = np.zeros(len(self.number), np.uint64)
        spread[found[_PLACES]] = _one_more(found[name])
        return spread

    def _spread_texts(self, found: dict[str, Any], name: str) -> list[str]:
        spread = [""] * len(self.number)
        for place, text in zip(found[_PLACES].tolist(), _texts(found[name]), strict=True):
            spread[place] = text
        return spread

    def _places(self, found: dict[str, Any]) -> I64:
        """The numbers of the files that rows are about."""
        return np.array([self.number[content] for content in _texts(found["content"])], np.int64)

    def _about_files(self, table: str, columns: str) -> dict[str, Any]:
        """Rows about contents that have a place."""
        found = self._ask(f"SELECT content, {columns} FROM {table} SEMI JOIN places USING (content)")
        return found | {_PLACES: self._places(found)}

    def _add_files(self) -> None:
        columns = ", ".join((*_LIST_WORDS, *_WORDS, *_NUMBERS))
        found = self._about_files("files", f"build_id, array_to_string(producers, ', ') AS producers, {columns}")
        for name in _LIST_WORDS:
            self._add_words(self.list, name, self._spread_texts(found, name))
        self.list.texts("build_id", self._spread_texts(found, "build_id"))
        for name in (*_WORDS, "producers"):
            self._add_words(self.details, name, self._spread_texts(found, name))
        for name in _NUMBERS:
            columns_of = self.list if name in _LIST_NUMBERS else self.details
            columns_of.numbers(name, self._spread(found, name))
        self.details.texts("content", self.number)
        frames = [np.ma.filled(found[name], 0).astype(np.uint64) for name in ("eh_frame", "eh_frame_hdr")]
        compared = np.array([source != ".debug_frame" for source in _texts(found["source"])], np.bool_)
        found["call_frames"] = np.where(compared, np.minimum(frames[0], _MOST) + np.minimum(frames[1], _MOST), 0)
        self.list.numbers("call_frames", self._spread(found, "call_frames"))

    def _add_versions(self) -> None:
        found = self._about_files(
            "versions", f"version, coalesce(impossible, '') AS impossible, proved, {', '.join(_VERSION_NUMBERS)}"
        )
        for version in (1, 2, 3):
            chosen = found["version"] == version
            part = {name: column[chosen] for name, column in found.items()}
            self.list.numbers(f"v{version}", self._spread(part, "bytes"))
            self.list.numbers(f"covered{version}", self._spread(part, "covered"))
            self._add_words(self.details, f"impossible{version}", self._spread_texts(part, "impossible"))
            self.details.numbers(f"proved{version}", self._spread(part, "proved"))
            for name in _VERSION_NUMBERS:
                if name not in {"bytes", "covered"}:
                    self.details.numbers(f"{name}{version}", self._spread(part, name))

    def _add_sframe(self) -> None:
        columns = ", ".join(_SFRAME_NUMBERS)
        found = self._about_files(
            "sframe", f"array_to_string(versions, ' and ') AS versions, error, severity, true AS there, {columns}"
        )
        self.details.numbers("sframe", self._spread(found, "there"))
        for name in ("versions", "error", "severity"):
            self._add_words(self.details, f"sframe_{name}", self._spread_texts(found, name))
        for name in _SFRAME_NUMBERS:
            self.details.numbers(f"sframe_{name}", self._spread(found, name))

    def _add_functions(self) -> None:
        """Functions with a reason: how many of each, and some by name."""
        kinds = "content, about, version, code, severity"
        groups = self._ask(f"SELECT count(*) AS many FROM (SELECT DISTINCT {kinds} FROM functions)")
        self.examples = min(_MOST_EXAMPLES, max(1, _EXAMPLES // max(1, int(groups["many"][0]))))
        found = self._ask(
            f"""
            SELECT {kinds}, message, section, name, address, size,
              row_number() OVER (PARTITION BY {kinds} ORDER BY size DESC NULLS LAST, address, name, message) AS place,
              TRY_CAST(sum("count") OVER (PARTITION BY {kinds}) AS UBIGINT) AS total,
              TRY_CAST(sum(size) OVER (PARTITION BY {kinds}) AS UBIGINT) AS bytes
            FROM functions SEMI JOIN places USING (content)
            QUALIFY place <= {self.examples}
            ORDER BY {kinds}, place
            """
        )
        numbers = self._places(found)
        order = np.argsort(numbers, kind="stable")
        found = {name: column[order] for name, column in found.items()}
        self.details.numbers("reasons", np.bincount(numbers, minlength=len(self.number)))
        for name in ("about", "code", "severity", "message", "section"):
            self._add_words(self.details, f"reason_{name}", _texts(found[name]))
        self.details.texts("reason_name", _texts(found["name"]))
        for name in ("version", "address", "size", "place", "total", "bytes"):
            self.details.numbers(f"reason_{name}", _one_more(found[name]))


def _one_more(column: Any) -> U64:
    """Numbers one more than they are; 0 for those that are missing."""
    numbers = np.minimum(np.ma.filled(column, 0).astype(np.uint64), _MOST) + np.uint64(1)
    numbers[np.ma.getmaskarray(column)] = 0
    return numbers


def _texts(column: Any) -> list[str]:
    """A column of texts; what is missing is empty."""
    return ["" if text is None or text is np.ma.masked else str(text) for text in column.tolist()]
