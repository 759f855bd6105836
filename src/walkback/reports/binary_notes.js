// What there is to note about the tables of a file.
/** @import {Binary} from "./binary_data.js" */
/** @import {SFrame} from "./types.js" */
import {bytes, count, counted, folded, hexadecimal, html} from "../pages/common.js";
import {sframeText} from "./binary_rules.js";

const MOST_OUTSIDE = 50;

/** @type {(binary: Binary) => HTMLElement[]} */
export function notes(binary) {
  const {sframe, unproved, unreadable} = binary;
  const all = [
    unreadable && `The SFrame in the file cannot be read: ${unreadable}.`,
    unproved && `There are no verdicts, because the proof failed: ${unproved}.`,
    ...entryNotes(binary),
    ...functionNotes(binary),
    sframe && binary.stretches.outside.length > 0 && outsideNote(binary, sframe),
  ].filter((note) => note);
  if (!all.length) return [];
  const items = all.map((note) => html("li", {}, note));
  return [html("ul", {class: "notes quiet"}, items)];
}

// Entries that say nothing of the list.
/** @type {(binary: Binary) => (string | HTMLElement)[]} */
function entryNotes({counts, tables, unplaced}) {
  /** @type {(number: number, single: string, several: string) => string[]} */
  const note = (number, single, several) => {
    const entries = `${counted(number, "entry", "entries")} of ${tables}`;
    return number ? [`${entries} ${number === 1 ? single : several}.`] : [];
  };
  const reasons = unplaced.map(([, reason]) => reason);
  return [
    ...note(counts.dead, "describes code that is not in the file", "describe code that is not in the file"),
    ...note(counts.empty, "describes no code", "describe no code"),
    ...note(counts.shadowed, "is overridden by another", "are overridden by others"),
    ...note(counts.unplaced, "cannot be read", "cannot be read"),
    ...(counts.unplaced ? [shortList(reasons, counts.unplaced)] : []),
  ];
}

/** @type {(binary: Binary) => string[]} */
function functionNotes({counts, length}) {
  const all = [];
  if (length > counts.functions)
    all.push(
      `The list has ${count(length)} pieces, because some entries of the call frame information are split, ` +
        "such as that of the procedure linkage table.",
    );
  if (counts.beyond) {
    const extend = counts.beyond === 1 ? "extends" : "extend";
    all.push(`${counted(counts.beyond, "function")} ${extend} past the code of the file. The excess does not count.`);
  }
  return all;
}

/** @type {(texts: string[], all: number) => HTMLElement} */
function shortList(texts, all) {
  return html(
    "ul",
    {class: "names"},
    texts.map((text) => html("li", {class: "mono"}, text)),
    all > texts.length && html("li", {}, `and ${count(all - texts.length)} more`),
  );
}

// Code that only .sframe describes belongs to no function of the list.
/** @type {(binary: Binary, sframe: SFrame) => HTMLElement} */
function outsideNote(binary, sframe) {
  const {outside} = binary.stretches;
  const texts = outside.slice(0, MOST_OUTSIDE).map((stretch) => {
    const section = sframe.sections[binary.stretches.section[stretch] - 1];
    const place = `${section ? `${section}+` : ""}${hexadecimal(binary.stretches.start[stretch])}`;
    return `${place}, ${bytes(binary.stretches.size[stretch])}: ${sframeText(binary, stretch)}`;
  });
  const title = `${counted(outside.length, "stretch", "stretches")} of code only in ${sframe.name}`;
  return folded(title, shortList(texts, outside.length));
}
