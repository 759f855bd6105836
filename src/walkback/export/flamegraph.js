// Draws a flame graph, and moves through it by mouse and keys.
/** @import {FlameData, FlameTree} from "./types.js" */
import {byId, legendItem, shortened} from "../pages/common.js";
import {isModified, onSlash, onTyped, oncePerFrame} from "../pages/events.js";
import {keepInAddress, viewOfAddress} from "./flamegraph_address.js";
import {STEPS, colours, fileColours, filesByWeight, legendOf} from "./flamegraph_colours.js";
import {ancestor, deepest, levelOf, nodeAt, sibling, widestChild} from "./flamegraph_places.js";
import {NO_DATA, callTree, changePart, invertedTree, otherSide, weightOf} from "./flamegraph_tree.js";
import {share, testFor, wordsOf} from "./flamegraph_words.js";

let data = NO_DATA;
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
const TYPING_PAUSE = 120;
const DIGITS = "0123456789";
const FONT = '12px ui-monospace, "DejaVu Sans Mono", monospace';

let calls = callTree(data);
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
let files = filesByWeight(data);
let canShowFiles = false,
  byFile = false;
let paint = colours(data, dark.matches);

function showColours() {
  paint = byFile ? fileColours(data, files, dark.matches) : colours(data, dark.matches);
  const legend = legendOf(data, paint, byFile ? files : null);
  byId("legend").replaceChildren(...legend.map(([word, colour]) => legendItem(colour, word)));
  redraw();
}

/** @type {(node: number, left: number, right: number, top: number, faded: boolean) => void} */
function box(node, left, right, top, faded) {
  const width = right - left - (right - left > GAP_FROM ? GAP : 0),
    height = ROW - GAP;
  const name = tree.name[node],
    isMatch = matches !== null && matches[name] !== 0;
  const colour = data.before
    ? paint.changes[STEPS + Math.round(STEPS * changePart(tree, node, old))]
    : paint.fill[name];
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

function describe() {
  const node = hovered >= 0 ? hovered : picked >= 0 ? picked : zoom;
  byId("name").textContent = data.names[tree.name[node]];
  byId("numbers").textContent = wordsOf(data, tree, node, {zoom, isOld: old, isInverted: tree !== calls});
}

// Note in the address what is shown; a step is one that the back button takes back.
/** @type {(isStep: boolean) => void} */
function keep(isStep) {
  keepInAddress({frame: zoom, find: input.value.trim(), inverted: tree !== calls, before: old, files: byFile}, isStep);
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

function search() {
  const wanted = input.value.trim();
  matches = null;
  if (wanted) {
    const test = testFor(wanted);
    matches = Uint8Array.from(data.names, (text) => Number(test(text)));
    matches[0] = 0;
  }
  byId("matched").textContent = matches ? `${share(weightOf(tree, matches), tree.total[0])} matched` : "";
  resetButton.disabled = !zoom && !matches;
  redraw();
}

function searchAndKeep() {
  search();
  keep(false);
}

function reset() {
  input.value = "";
  search();
  show(0);
  scroll.scrollTop = 0;
  keep(true);
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
      zoomTo(node);
      keepInView();
    },
    Escape: zoomOut,
  };
  if (isModified(event) || !moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
}

/** @type {(node: number) => void} */
function zoomTo(node) {
  show(node);
  keep(true);
}

function zoomOut() {
  const before = zoom;
  if (!before) return reset();
  zoomTo(0);
  pick(before);
}

/** @type {(id: string, isOn: boolean) => void} */
const press = (id, isOn) => byId(id).setAttribute("aria-pressed", String(isOn));

// Nodes of the inverted tree have the same numbers whichever side of a difference it was first shown for.
function insideOut() {
  if (!inverted) {
    if (old) otherSide(calls);
    inverted = invertedTree(calls, data.names.length);
    if (old) [calls, inverted].forEach(otherSide);
  }
  return inverted;
}

/** @type {(isInverted: boolean) => void} */
function setInverted(isInverted) {
  tree = isInverted ? insideOut() : calls;
  press("invert", isInverted);
}

// Of a difference: show one side or the other.
/** @type {(isOld: boolean) => void} */
function setSide(isOld) {
  if (isOld !== old) {
    otherSide(calls);
    if (inverted) otherSide(inverted);
  }
  old = isOld;
  press("side", old);
}

/** @type {(isByFile: boolean) => void} */
function setColours(isByFile) {
  byFile = isByFile;
  press("files", byFile);
  showColours();
}

// Show what the address names.
function restore() {
  const view = viewOfAddress();
  setSide(view.before && Boolean(data.before));
  setInverted(view.inverted);
  setColours(view.files && canShowFiles);
  if (input.value.trim() !== view.find) input.value = view.find;
  search();
  show(view.frame < tree.name.length && tree.total[view.frame] ? view.frame : 0);
  if (zoom) keepInView();
}

function turnInsideOut() {
  setInverted(tree === calls);
  search();
  zoomTo(0);
  scroll.scrollTop = 0;
}

function turnAround() {
  setSide(!old);
  search();
  zoomTo(tree.total[zoom] ? zoom : 0);
}

function turnColours() {
  setColours(!byFile);
  keep(true);
}

function listenToGraph() {
  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerleave", () => setHovered(-1));
  canvas.addEventListener("click", (event) => {
    const node = nodeUnder(event);
    if (node >= 0) zoomTo(node);
  });
  canvas.addEventListener("keydown", pressKey);
  scroll.addEventListener("scroll", redraw);
  dark.addEventListener("change", showColours);
  new ResizeObserver(measure).observe(scroll);
}

function listenToControls() {
  onSlash(
    () => document.activeElement !== input,
    () => input.focus(),
  );
  onTyped(input, TYPING_PAUSE, searchAndKeep);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    input.value = "";
    searchAndKeep();
    canvas.focus();
  });
  byId("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    searchAndKeep();
  });
  resetButton.addEventListener("click", reset);
  byId("side").addEventListener("click", turnAround);
  byId("invert").addEventListener("click", turnInsideOut);
  byId("files").addEventListener("click", turnColours);
  addEventListener("hashchange", restore);
}

// Show other data, as the address says.
/** @type {(shown: FlameData) => void} */
export function showGraph(shown) {
  data = shown;
  calls = tree = callTree(data);
  inverted = null;
  old = false;
  files = filesByWeight(data);
  // A difference has colours of its own.
  canShowFiles = files.length > 1 && !data.before;
  byId("files").hidden = !canShowFiles;
  byId("side").hidden = !data.before;
  restore();
}

listenToGraph();
listenToControls();
