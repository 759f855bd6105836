"""The ratios of revisions as a page: a plot of each measure, the oldest revision first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _EDGE = 300, 90, 14
_HEAD = """<!doctype html><meta charset="utf-8"><title>Speed over revisions</title>
<style>
body { font: 14px system-ui; margin: 2em auto; max-width: 1000px; color: #222; background: #fff }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(310px, 1fr)); gap: 1em }
h2 { font-size: 1em; margin: 0 } text { font-size: 11px; fill: #555 } svg { overflow: visible }
polyline { fill: none; stroke: #0b6bcb; stroke-width: 2 } circle { fill: #0b6bcb } .same { stroke: #bbb }
</style>
"""


def page(results: dict[str, Any]) -> str:
    """All measures of one run; each value is what an older revision takes, in shares of what this one takes."""
    series: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for other in results["against"]:
        for one in other["measures"]:
            series[f"{one['what']}: {one['figure']}"].append((other["revision"], 1 / one["ratio"]))
    now = results["revision"][:9]
    plots = "".join(_plot(name, [*points, (now, 1.0)]) for name, points in sorted(series.items()))
    about = f"{results['date']}, {escape(results['machine'])}. Shares of what {now} takes: lower is better."
    return f"{_HEAD}<h1>Speed over revisions</h1><p>{about}</p><main>{plots}</main>\n"


def _plot(name: str, points: Sequence[tuple[str, float]]) -> str:
    top = max(1.2, *(value for _, value in points))
    step = (_WIDTH - 2 * _EDGE) / max(len(points) - 1, 1)
    places = [
        (_EDGE + number * step, _HEIGHT - _EDGE - value / top * (_HEIGHT - 2 * _EDGE))
        for number, (_, value) in enumerate(points)
    ]
    one = _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) / top
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(revision)}: {value:.2f}</title></circle>'
        f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">{value:.2f}</text>'
        f'<text x="{x:.1f}" y="{_HEIGHT}" text-anchor="middle">{escape(revision[:9])}</text>'
        for (x, y), (revision, value) in zip(places, points, strict=True)
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return (
        f'<section><h2>{escape(name)}</h2><svg width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f'<line class="same" x1="0" x2="{_WIDTH}" y1="{one:.1f}" y2="{one:.1f}"/>'
        f'<polyline points="{line}"/>{marks}</svg></section>'
    )
