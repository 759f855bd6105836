// The colours of a flame graph, by day and by night.
/** @import {FlameData} from "./types.js" */

/**
 * @typedef {Record<"ink" | "line" | "faint" | "match" | "root", string>
 *   & {fill: string[], changes: string[]}} Paint `fill` is for names, `changes` from less than before to more.
 */

export const KINDS = ["function", "kernel", "no name", "incomplete", "program", "inlined"];
// Colours on either side of no change.
export const STEPS = 12;

/** @type {(data: FlameData, night: boolean) => Paint} */
export function colours(data, night) {
  const fill = data.names.map((text, number) => {
    let hash = data.modules[data.module[number]].length * 7;
    for (let i = 0; i < text.length && i < 24; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
    const part = ((hash >>> 0) % 997) / 997,
      step = part * 8 - 4;
    switch (data.kind[number]) {
      case 1:
        return `hsl(${205 + 20 * part} ${night ? 38 : 62}% ${(night ? 31 : 79) + step}%)`;
      case 2:
        return `hsl(40 5% ${(night ? 30 : 82) + step}%)`;
      case 3:
        return night ? "hsl(345 55% 33%)" : "hsl(345 85% 84%)";
      case 4:
        return `hsl(150 ${night ? 18 : 25}% ${(night ? 27 : 83) + step / 2}%)`;
      case 5:
        return `hsl(${62 + 14 * part} ${night ? 28 : 56}% ${(night ? 29 : 77) + step}%)`;
      default:
        return `hsl(${18 + 34 * part} ${night ? 48 : 82}% ${(night ? 31 : 76) + step}%)`;
    }
  });
  const style = getComputedStyle(document.body);
  const changes = Array.from({length: 2 * STEPS + 1}, (_, place) => {
    const part = Math.abs(place - STEPS) / STEPS;
    const light = night ? 26 + 18 * part : 91 - 26 * part;
    return `hsl(${place < STEPS ? 215 : 8} ${Math.round((night ? 60 : 85) * Math.min(1, 2 * part))}% ${light}%)`;
  });
  return {
    fill,
    changes,
    ink: night ? "#f2eee9" : "#221d18",
    line: style.color,
    faint: night ? "#0006" : "#ffffff8c",
    match: night ? "#a03fc4" : "#e08cff",
    root: night ? "#35322e" : "#e5e0d9",
  };
}

// The files that functions are in, those that most weight was found in first; the name of a file is its number.
/** @type {(data: FlameData) => number[]} */
export function filesByWeight({modules, module, name, own}) {
  const weight = new Float64Array(modules.length);
  name.forEach((number, node) => (weight[module[number]] += own[node]));
  const named = [...new Set(module)].filter((file) => modules[file]);
  return named.sort((one, other) => weight[other] - weight[one] || one - other);
}

const DISTINCT_FILES = 8; // The others have one colour.
const HUES = [24, 212, 130, 282, 48, 176, 332, 92];

// The colours of `colours`, but for functions: each has that of its file.
/** @type {(data: FlameData, files: number[], night: boolean) => Paint} */
export function fileColours(data, files, night) {
  const paint = colours(data, night);
  const colourOf = new Map(
    files.slice(0, DISTINCT_FILES).map((file, place) => [file, `hsl(${HUES[place]} ${night ? "40% 33%" : "62% 80%"})`]),
  );
  const other = night ? "hsl(40 4% 32%)" : "hsl(40 6% 80%)";
  const fill = data.module.map((file, number) =>
    data.modules[file] ? (colourOf.get(file) ?? other) : paint.fill[number],
  );
  return {...paint, fill};
}

// What the colours of files mean.
/** @type {(data: FlameData, files: number[], fill: string[]) => [words: string, colour: string][]} */
function fileLegend(data, files, fill) {
  /** @type {(file: number) => string} */
  const colourOf = (file) => fill[data.module.indexOf(file)];
  /** @type {[words: string, colour: string][]} */
  const legend = files.slice(0, DISTINCT_FILES).map((file) => [data.modules[file], colourOf(file)]);
  const more = files.length - legend.length;
  return more > 0 ? [...legend, [`${more} more`, colourOf(files[DISTINCT_FILES])]] : legend;
}

// What the colours mean: words with a colour each.
/** @type {(data: FlameData, paint: Paint, files: number[] | null) => [words: string, colour: string][]} */
export function legendOf(data, {fill, changes}, files) {
  if (files) return fileLegend(data, files, fill);
  if (data.before) {
    return [
      ["less than before", changes[0]],
      ["no change", changes[STEPS]],
      ["more than before", changes[2 * STEPS]],
    ];
  }
  // The root is the first function by kind, and has a colour of its own.
  return KINDS.flatMap((word, kind) => {
    const colour = fill[data.kind.indexOf(kind, 1)];
    return colour ? [[word, colour]] : [];
  });
}
