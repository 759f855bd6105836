// Draws a flame graph, and moves through it by mouse and keys.
/** @import {FlameData, FlameTree} from "./types.js" */
import {byId, legendItem, shortened} from "../pages/common.js";
import {isModified, onSlash, onTyped, oncePerFrame} from "../pages/events.js";
import {KINDS, STEPS, colours, legendOf} from "./flamegraph_colours.js";
import {ancestor, deepest, levelOf, nodeAt, sibling, widestChild} from "./flamegraph_places.js";
import {callTree, invertedTree, otherSide} from "./flamegraph_tree.js";

/** @type {FlameData} */
const data = JSON.parse(byId("data").textContent);
const scroll = byId("scroll"),
  tall = byId("tall");
const canvas = /** @type {HTMLCanvasElement} */ (byId("graph"));
const input = /** @type {HTMLInputElement} */ (byId("search"));
const resetButton = /** @type {HTMLButtonElement} */ (byId("reset"));
const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
const dark = matchMedia("(prefers-color-scheme: dark)");
// In pixels.
const ROW = 20,
  GAP = 1,
  GAP_FROM = 3, // Narrower boxes have no gap.
  THIN = 0.5, // Narrower boxes are drawn together.
  BESIDE = 0.01, // Boxes so near are side by side.
  TEXT_MARGIN = 3,
  TEXT_BASELINE = 14,
  SIGHT_MARGIN = 16;
const LEAST_LETTERS = 2;
const LEAST_CHANGE = 1e-9;
const TYPING_PAUSE = 120;
const DIGITS = "0123456789";
const FONT = '12px ui-monospace, "DejaVu Sans Mono", monospace';

const calls = callTree(data);
/** @type {FlameTree | null} */
let inverted = null;
let tree = calls,
  zoom = 0,
  picked = -1,
  hovered = -1;
/**
 * Which names are looked for, if any are.
 *
 * @type {Uint8Array | null}
 */
let matches = null;
let canvasWidth = 0,
  canvasHeight = 0,
  letterWidth = 7;
// Of a difference: whether the widths are those of before.
let old = false;
let paint = colours(data, dark.matches);

function showLegend() {
  byId("legend").replaceChildren(...legendOf(data, paint).map(([word, colour]) => legendItem(colour, word)));
}

// By how much the share of a node is larger after than before.
/** @type {(node: number) => number} */
const change = (node) => {
  /** @type {(side: ArrayLike<number>) => number} */
  const shareOf = (side) => (side[0] ? side[node] / side[0] : 0);
  const more = shareOf(tree.total) - shareOf(tree.was ?? []);
  return old ? -more : more;
};

/** @type {(node: number) => string} */
function changeColour(node) {
  // Relative to the largest change there is; small ones are made visible by the root.
  tree.largest ??= tree.name.reduce((most, _, other) => Math.max(most, Math.abs(change(other))), LEAST_CHANGE);
  const more = change(node),
    part = Math.sqrt(Math.abs(more) / tree.largest);
  return paint.changes[STEPS + Math.round(Math.sign(more) * part * STEPS)];
}

/** @type {(node: number, left: number, right: number, top: number, faded: boolean) => void} */
function box(node, left, right, top, faded) {
  const width = right - left - (right - left > GAP_FROM ? GAP : 0),
    height = ROW - GAP;
  const name = tree.name[node],
    isMatch = matches !== null && matches[name] !== 0;
  const colour = data.before ? changeColour(node) : paint.fill[name];
  pen.fillStyle = node === 0 ? paint.root : isMatch ? paint.match : colour;
  pen.fillRect(left, top, width, height);
  if (faded || (matches !== null && !isMatch)) {
    pen.fillStyle = paint.faint;
    pen.fillRect(left, top, width, height);
  }
  const letters = Math.floor((width - 2 * TEXT_MARGIN) / letterWidth);
  if (letters >= LEAST_LETTERS) {
    pen.fillStyle = paint.ink;
    pen.fillText(shortened(data.names[name], letters), left + TEXT_MARGIN, top + TEXT_BASELINE, width - 4);
  }
  if (node === picked || node === hovered) {
    pen.strokeStyle = paint.line;
    pen.lineWidth = node === picked ? 2 : 1;
    pen.strokeRect(left + 1, top + 1, Math.max(width - 2, 1), height - 2);
  }
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvasWidth, canvasHeight);
  pen.font = FONT;
  const top = canvas.offsetTop,
    zoomLevel = levelOf(tree, zoom);
  const begin = Math.max(0, Math.floor(top / ROW));
  const end = Math.min(tree.first.length - 1, Math.ceil((top + canvasHeight) / ROW));
  for (let level = begin; level < end; level++) {
    const y = level * ROW - top;
    if (level < zoomLevel) box(ancestor(tree, zoom, level), 0, canvasWidth, y, true);
    else drawLevel(level, level === zoomLevel ? zoom : undefined, y);
  }
}

// The boxes of a level from a node on. Boxes too narrow to see are drawn together where they stand side by side.
/** @type {(level: number, first: number | undefined, y: number) => void} */
function drawLevel(level, first, y) {
  const scale = canvasWidth / (tree.total[zoom] || 1),
    from = tree.x[zoom],
    to = from + tree.total[zoom];
  let thin = 0,
    thinEnd = -1;
  const drawThin = () => {
    pen.fillStyle = paint.root;
    if (thinEnd - thin >= THIN) pen.fillRect(thin, y, thinEnd - thin, ROW - GAP);
    thinEnd = -1;
  };
  let node = first ?? Math.max(nodeAt(tree, level, from), tree.first[level]);
  for (; node < tree.first[level + 1] && tree.x[node] < to; node++) {
    const left = (tree.x[node] - from) * scale,
      right = left + tree.total[node] * scale;
    if (left < -BESIDE) continue;
    if (thinEnd < left - BESIDE || right - left >= THIN) {
      drawThin();
      thin = left;
    }
    if (right - left >= THIN) box(node, left, right, y, false);
    else thinEnd = right;
  }
  drawThin();
}

const redraw = oncePerFrame(draw);

function measure() {
  const ratio = window.devicePixelRatio || 1,
    rows = deepest(tree, zoom) * ROW;
  tall.style.height = `${rows}px`;
  canvasWidth = tall.clientWidth;
  canvasHeight = Math.min(scroll.clientHeight, rows);
  canvas.style.height = `${canvasHeight}px`;
  canvas.width = Math.max(1, Math.round(canvasWidth * ratio));
  canvas.height = Math.max(1, Math.round(canvasHeight * ratio));
  pen.font = FONT;
  letterWidth = pen.measureText(DIGITS).width / DIGITS.length;
  draw();
}

/** @type {(part: number, whole: number) => string} */
const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(2)} %` : "-");
/** @type {[size: number, unit: string][]} */
const TIME_UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "\u00b5s"],
];
/** @type {(weight: number) => string} */
function amount(weight) {
  if (data.unit === "nanoseconds") {
    const [size, unit] = TIME_UNITS.find(([least]) => weight >= least) ?? [1, "ns"];
    return `${(weight / size).toLocaleString("en", {maximumFractionDigits: 3})} ${unit}`;
  }
  return `${weight.toLocaleString("en")} ${weight === 1 ? data.unit.replace(/s$/, "") : data.unit}`;
}

function describe() {
  const node = hovered >= 0 ? hovered : picked >= 0 ? picked : zoom;
  const name = tree.name[node],
    whole = tree.total[0],
    module = data.modules[data.module[name]];
  byId("name").textContent = data.names[name];
  const words = [`${amount(tree.total[node])}, ${share(tree.total[node], whole)} of all`];
  if (tree.was) {
    const moved = 100 * change(node);
    words.push(`${old ? "after" : "before"} ${share(tree.was[node], tree.was[0])}`);
    words.push(`${moved < 0 ? "\u2212" : "+"}${Math.abs(moved).toFixed(2)} points`);
  }
  if (zoom && node !== zoom) words.push(`${share(tree.total[node], tree.total[zoom])} of the zoomed`);
  if (tree === calls && tree.own[node]) words.push(`${amount(tree.own[node])} of its own`);
  if (node && data.kind[name]) words.push(KINDS[data.kind[name]]);
  if (module) words.push(module);
  byId("numbers").textContent = words.join(" \u00b7 ");
}

/** @type {(node: number) => void} */
function show(node) {
  zoom = node;
  picked = node || -1;
  hovered = -1;
  resetButton.disabled = !zoom && !matches;
  measure();
  describe();
}

function keepInView() {
  const top = levelOf(tree, picked) * ROW;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  else if (top + ROW > scroll.scrollTop + scroll.clientHeight - SIGHT_MARGIN)
    scroll.scrollTop = top + ROW - scroll.clientHeight + SIGHT_MARGIN;
}

/** @type {(node: number) => void} */
function pick(node) {
  picked = node;
  hovered = -1;
  keepInView();
  describe();
  redraw();
}

// Whether a text has what is wanted. What is no regular expression is looked for as it is.
/** @type {(wanted: string) => (text: string) => boolean} */
function testFor(wanted) {
  try {
    const pattern = new RegExp(wanted, "i");
    return (text) => pattern.test(text);
  } catch {
    return (text) => text.toLowerCase().includes(wanted.toLowerCase());
  }
}

// The weight of all nodes with some names; what is below such a node is in its weight.
/** @type {(names: Uint8Array) => number} */
function weightOf(names) {
  const inside = new Uint8Array(tree.name.length);
  let weight = 0;
  for (let node = 1; node < tree.name.length; node++) {
    if (inside[tree.parent[node]]) inside[node] = 1;
    else if (names[tree.name[node]]) {
      inside[node] = 1;
      weight += tree.total[node];
    }
  }
  return weight;
}

function search() {
  const wanted = input.value.trim();
  matches = null;
  if (wanted) {
    const test = testFor(wanted);
    matches = Uint8Array.from(data.names, (text) => Number(test(text)));
    matches[0] = 0;
  }
  byId("matched").textContent = matches ? `${share(weightOf(matches), tree.total[0])} matched` : "";
  resetButton.disabled = !zoom && !matches;
  redraw();
}

function reset() {
  input.value = "";
  search();
  show(0);
  scroll.scrollTop = 0;
}

/** @type {(event: MouseEvent) => number} */
function nodeUnder(event) {
  const area = canvas.getBoundingClientRect();
  const level = Math.floor((event.clientY - area.top + canvas.offsetTop) / ROW);
  if (level < 0 || level >= tree.first.length - 1) return -1;
  if (level <= levelOf(tree, zoom)) return ancestor(tree, zoom, level);
  const x = tree.x[zoom] + ((event.clientX - area.left) / canvasWidth) * tree.total[zoom];
  const node = nodeAt(tree, level, x);
  return node >= 0 && x < tree.x[node] + tree.total[node] ? node : -1;
}

/** @type {(event: PointerEvent) => void} */
function hover(event) {
  if (event.pointerType === "touch") return;
  const node = nodeUnder(event);
  if (node !== hovered) setHovered(node);
}

/** @type {(node: number) => void} */
function setHovered(node) {
  hovered = node;
  describe();
  redraw();
}

/** @type {(event: KeyboardEvent) => void} */
function pressKey(event) {
  const node = picked >= 0 ? picked : zoom;
  /** @type {Record<string, () => void>} */
  const moves = {
    ArrowUp: () => pick(node > 0 ? tree.parent[node] : 0),
    ArrowDown: () => pick(widestChild(tree, node)),
    ArrowLeft: () => pick(sibling(tree, node, -1, zoom)),
    ArrowRight: () => pick(sibling(tree, node, 1, zoom)),
    Enter: () => {
      show(node);
      keepInView();
    },
    Escape: zoomOut,
  };
  if (isModified(event) || !moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
}

function zoomOut() {
  const before = zoom;
  if (!before) return reset();
  show(0);
  pick(before);
}

function turnInsideOut() {
  tree = tree === calls ? (inverted ??= invertedTree(calls, data.names.length)) : calls;
  byId("invert").setAttribute("aria-pressed", String(tree !== calls));
  search();
  show(0);
  scroll.scrollTop = 0;
}

// Of a difference: show the other side.
function turnAround() {
  old = !old;
  otherSide(calls);
  if (inverted) otherSide(inverted);
  byId("side").setAttribute("aria-pressed", String(old));
  search();
  show(tree.total[zoom] ? zoom : 0);
}

function listenToGraph() {
  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerleave", () => setHovered(-1));
  canvas.addEventListener("click", (event) => {
    const node = nodeUnder(event);
    if (node >= 0) show(node);
  });
  canvas.addEventListener("keydown", pressKey);
  scroll.addEventListener("scroll", redraw);
  dark.addEventListener("change", () => {
    paint = colours(data, dark.matches);
    showLegend();
    redraw();
  });
  new ResizeObserver(measure).observe(scroll);
}

function listenToControls() {
  onSlash(
    () => document.activeElement !== input,
    () => input.focus(),
  );
  onTyped(input, TYPING_PAUSE, search);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    input.value = "";
    search();
    canvas.focus();
  });
  byId("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  resetButton.addEventListener("click", reset);
  byId("side").hidden = !data.before;
  byId("side").addEventListener("click", turnAround);
  byId("invert").addEventListener("click", turnInsideOut);
}

showLegend();
listenToGraph();
listenToControls();
show(0);
