// The colours of what the bytes of tables are used for, the same on every page.

/** @import {SizeParts} from "./types.js" */

/** @type {string[]} */
export const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];

/** @type {Record<keyof SizeParts, string>} */
export const PART_COLOURS = {
  header: "--c1",
  index: "--c2",
  attributes: "--c3",
  starts: "--c4",
  info: "--c5",
  words: "--c6",
  padding: "--c7",
  other: "--bad",
};

// The colour of a part: its own, or the next of the row for the parts of other drawings.
/** @type {(part: any, place: number) => string} */
export const partColour = (part, place) =>
  /** @type {Record<string, string>} */ (PART_COLOURS)[part] ?? COLOURS[place % COLOURS.length];
