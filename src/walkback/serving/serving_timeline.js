// Bars: how many samples there are at which times. Who drags over them, or goes there by keys, chooses a range.
/** @import {Side, Times} from "./types.js" */
import {byId, clamped, counted} from "../pages/common.js";
import {isModified} from "../pages/events.js";
import {svg} from "../pages/svg.js";

const HEIGHT = 60,
  LEAST_HEIGHT = 1.5, // of a bar
  WIDTH = 0.9; // of a bar
/** @type {Record<string, number>} */
const UNITS = {s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3};
/** @type {[size: number, word: string][]} */
const LENGTHS = [
  [86400e3, "d"],
  [3600e3, "h"],
  [60e3, "min"],
  [1e3, "s"],
  [1, "ms"],
];

/** @type {Times} */
let times = {first: 0, step: 1, counts: []};
// Where a range begins that is being chosen, and where it ends; -1 if none is.
let anchor = -1,
  cursor = -1,
  isDragging = false;

// A time as it is written here: UTC, without what is zero.
/** @type {(milliseconds: number) => string} */
export const written = (milliseconds) => new Date(milliseconds).toISOString().replace(/(?:\.000)?Z$/, "");
/** @type {(milliseconds: number) => string} */
const shown = (milliseconds) => written(milliseconds).replace("T", " ");

// A range; the day stands there once if it is one.
/** @type {(from: number, to: number) => string} */
function rangeWords(from, to) {
  const [begin, end] = [shown(from), shown(to)],
    day = begin.slice(0, begin.indexOf(" ") + 1);
  return `${begin} to ${end.startsWith(day) ? end.slice(day.length) : end} UTC`;
}

/** @type {(milliseconds: number) => string} */
function lengthOf(milliseconds) {
  const [size, word] = LENGTHS.find(([least]) => milliseconds >= least) ?? [1, "ms"];
  return `${milliseconds / size} ${word}`;
}

// The milliseconds of a time that somebody wrote; NaN for what is none, or is written in a way that is rare.
/** @type {(text: string) => number} */
function read(text) {
  const ago = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text);
  if (ago) return Date.now() - Number(ago[1]) * UNITS[ago[2]];
  if (text === "now") return Date.now();
  const spaced = text.replace(" ", "T");
  return Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$|^[\d-]*$/.test(spaced) ? spaced : `${spaced}Z`);
}

const svgOfBars = () => /** @type {SVGSVGElement} */ (/** @type {unknown} */ (byId("timeline")));

// Where a range is among the bars, and how it is drawn.
/** @type {(kind: string, first: number, end: number) => SVGRectElement | null} */
function rangeBox(kind, first, end) {
  const x = clamped(first, 0, times.counts.length),
    width = clamped(end, 0, times.counts.length) - x;
  return width > 0 ? svg("rect", {class: kind, x, width, y: 0, height: HEIGHT}) : null;
}

/** @type {(kind: string, side: Side) => SVGRectElement | null} */
function sideBox(kind, {since, until}) {
  if (!since && !until) return null;
  const [first, end] = [since ? read(since) : -Infinity, until ? read(until) : Infinity].map(
    (time) => (time - times.first) / times.step,
  );
  return rangeBox(kind, first, end);
}

function describe() {
  const {first, step, counts} = times;
  const isWhole = anchor < 0,
    from = isWhole ? 0 : Math.min(anchor, cursor),
    to = isWhole ? counts.length : Math.max(anchor, cursor) + 1;
  const sum = counts.slice(from, to).reduce((all, one) => all + one, 0);
  const words = [`${rangeWords(first + from * step, first + to * step)}: ${counted(sum, "sample")}`];
  if (isWhole) words.push(`a bar is ${lengthOf(step)}, the highest ${counted(Math.max(0, ...counts), "sample")}`);
  byId("times").textContent = counts.length ? words.join("; ") : "";
}

// Mark what is being chosen.
function drawPending() {
  svgOfBars().querySelector(".pending")?.remove();
  const box = anchor < 0 ? null : rangeBox("pending", Math.min(anchor, cursor), Math.max(anchor, cursor) + 1);
  if (box) svgOfBars().append(box);
  describe();
}

// Show samples over time, and the ranges that are chosen.
/** @type {(found: Times, after: Side, before: Side | null) => void} */
export function showTimes(found, after, before) {
  times = found;
  anchor = cursor = -1;
  isDragging = false;
  const {first, step, counts} = times,
    highest = Math.max(1, ...counts);
  const bars = counts.flatMap((count, place) => {
    const top = HEIGHT - Math.max(LEAST_HEIGHT, ((HEIGHT - 4) * count) / highest);
    return count ? `M${place} ${HEIGHT}V${top.toFixed(2)}h${WIDTH}V${HEIGHT}z` : [];
  });
  const boxes = [before && sideBox("before", before), sideBox("after", after)].filter((box) => box !== null);
  svgOfBars().setAttribute("viewBox", `0 0 ${Math.max(1, counts.length)} ${HEIGHT}`);
  svgOfBars().replaceChildren(svg("path", {d: bars.join("")}), ...boxes);
  byId("begin").textContent = counts.length ? shown(first) : "";
  byId("end").textContent = counts.length ? `${shown(first + counts.length * step)} UTC` : "";
  describe();
}

/** @type {(event: MouseEvent) => number} */
function barUnder(event) {
  const {left, width} = svgOfBars().getBoundingClientRect();
  return clamped(Math.floor(((event.clientX - left) / width) * times.counts.length), 0, times.counts.length - 1);
}

// Call `choose` with the range that somebody has chosen; with nothing for all times.
/** @type {(choose: (since: string, until: string) => void) => void} */
export function listenToTimes(choose) {
  const take = () => {
    if (anchor < 0) return;
    const {first, step} = times,
      from = Math.min(anchor, cursor),
      to = Math.max(anchor, cursor) + 1;
    choose(written(first + from * step), written(first + to * step));
  };
  const bars = svgOfBars();
  bars.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !times.counts.length) return;
    isDragging = true;
    anchor = cursor = barUnder(event);
    bars.setPointerCapture(event.pointerId);
    drawPending();
  });
  bars.addEventListener("pointermove", (event) => {
    if (!times.counts.length) return;
    cursor = barUnder(event);
    if (!isDragging) anchor = cursor;
    drawPending();
  });
  bars.addEventListener("pointerup", () => {
    if (isDragging) take();
    isDragging = false;
  });
  for (const kind of ["pointercancel", "pointerleave", "blur"])
    bars.addEventListener(kind, () => {
      if (isDragging && kind === "pointerleave") return;
      isDragging = false;
      anchor = cursor = -1;
      drawPending();
    });
  bars.addEventListener("keydown", (event) => {
    const last = times.counts.length - 1;
    /** @type {Record<string, number>} */
    const places = {ArrowLeft: cursor - 1, ArrowRight: cursor + 1, Home: 0, End: last};
    if (isModified(event) || last < 0) return;
    if (event.key === "Enter") take();
    else if (event.key === "Escape") choose("", "");
    else if (event.key in places) {
      cursor = clamped(places[event.key], 0, last);
      if (!event.shiftKey || anchor < 0) anchor = cursor;
      drawPending();
    } else return;
    event.preventDefault();
  });
}
