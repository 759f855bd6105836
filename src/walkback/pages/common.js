// What pages share: making elements, numbers in words, light and dark. Text becomes text and nothing else: names come
// from files, and whoever makes a file chooses them.
/** @import {Attributes, Child, Children} from "./types.js" */

// An element with attributes and children; a string is text, and what is null or false is not there.
/** @type {<T extends Element>(element: T, attributes: Attributes, children: Children[]) => T} */
export function completed(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice("on".length), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  /** @type {Child[]} */
  const all = children.flat();
  element.append(...all.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
/**
 * @type {<T extends keyof HTMLElementTagNameMap>(
 *   tag: T, attributes?: Attributes, ...children: Children[]
 * ) => HTMLElementTagNameMap[T]}
 */
export const html = (tag, attributes = {}, ...children) => completed(document.createElement(tag), attributes, children);
// An element that the page has.
/** @type {(id: string) => HTMLElement} */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

// Details that open below a title.
/** @type {(title: string, ...children: Children[]) => HTMLDetailsElement} */
export const folded = (title, ...children) => html("details", {}, html("summary", {}, title), ...children);
// A term and its value, for a list of terms.
/** @type {(term: Children, value: Children, attributes?: Attributes) => HTMLElement} */
export const termAndValue = (term, value, attributes = {}) =>
  html("div", {}, html("dt", {}, term), html("dd", attributes, value));
/** @type {(colour: string, words: string) => HTMLElement} */
export function legendItem(colour, words) {
  const swatch = html("i", {class: "swatch"});
  swatch.style.background = colour;
  return html("li", {}, swatch, words);
}

/** @typedef {[title: string, right: boolean]} Head A column's title, and whether its values stand to the right. */

// A box of its own in which a table scrolls.
/** @type {(label: string, table: HTMLElement) => HTMLElement} */
export const scrollBox = (label, table) =>
  html("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": label}, table);
/** @type {(heads: Head[]) => HTMLElement} */
export function tableHead(heads) {
  const titles = heads.map(([title, right]) => html("th", {scope: "col", class: right ? "right" : null}, title));
  return html("thead", {}, html("tr", {}, titles));
}

// Numbers for people. What is not known is a dash.
export const NONE = "\u2013";
/** @template T @param {T} value @returns {value is T & {}} */
export const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
/** @type {(value: number | null | undefined) => string} */
export const count = (value) => (known(value) ? Number(value).toLocaleString("en") : NONE);
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
const UNIT_SIZE = 1024;
// Sizes from here on would round to the next unit, to 100 or to 10.
const ROUNDS_TO_UNIT = 1023.5,
  ROUNDS_TO_100 = 99.95,
  ROUNDS_TO_10 = 9.995;
/** @type {(value: number | null | undefined) => string} */
export function bytes(value) {
  if (!known(value)) return NONE;
  let size = Number(value),
    unit = 0;
  while (Math.abs(size) >= (unit ? ROUNDS_TO_UNIT : UNIT_SIZE) && unit < UNITS.length - 1) {
    size /= UNIT_SIZE;
    unit++;
  }
  if (!unit) return `${size.toLocaleString("en")} ${size === 1 ? "byte" : "bytes"}`;
  const digits = Math.abs(size) < ROUNDS_TO_10 ? 2 : Math.abs(size) < ROUNDS_TO_100 ? 1 : 0;
  return `${size.toFixed(digits)} ${UNITS[unit]}`;
}
const MOST_DIGITS = 6;
// A share as a percentage; what is not quite all or not quite nothing never looks like it.
/** @type {(value: number | null | undefined) => string} */
export function percent(value) {
  if (!known(value)) return NONE;
  const percentage = 100 * value;
  if (percentage === 0 || percentage === 100) return `${percentage} %`;
  /** @type {(digits: number) => boolean} */
  const looksWhole = (digits) => [0, 100].includes(Number(percentage.toFixed(digits)));
  let digits = Math.abs(percentage) < 10 || Math.abs(100 - percentage) < 1 ? 2 : 1;
  while (digits < MOST_DIGITS && looksWhole(digits)) digits++;
  return `${percentage.toFixed(digits)} %`;
}
/** @type {(value: number | null | undefined) => string} */
export const ratio = (value) => (known(value) ? Number(value).toFixed(3) : NONE);
/** @type {(value: bigint | null | undefined) => string} */
export const address = (value) => (known(value) ? hexadecimal(value) : NONE);
/** @type {(value: number | bigint) => string} */
export const hexadecimal = (value) => `0x${value.toString(16)}`;
// Who made a file: `unknown` stands where nothing shows it.
/** @type {(producer: string | null, version: string | null, language: string | null) => string} */
export function maker(producer, version, language) {
  const from = language && language !== "unknown" ? ` from ${language}` : "";
  if (producer && producer !== "unknown") return `Made by ${version ? `${producer} ${version}` : producer}${from}`;
  return from ? `Made${from} by an unknown compiler` : "Made by an unknown compiler";
}
/** @type {(value: number | null, noun: string, many?: string) => string} */
export const counted = (value, noun, many) => `${count(value)} ${value === 1 ? noun : (many ?? `${noun}s`)}`;
// As much of a text as some letters have room for.
/** @type {(text: string, letters: number) => string} */
export const shortened = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text);

/** @type {(value: number, least: number, most: number) => number} */
export const clamped = (value, least, most) => Math.max(least, Math.min(most, value));
// The first number from `low` on that fulfils a condition, as all after it do; `high` if none before that does.
/** @type {(low: number, high: number, fulfils: (number: number) => boolean) => number} */
export function firstThat(low, high, fulfils) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fulfils(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
// Add a value to the list that a map has for a key.
/** @type {<K, V>(lists: Map<K, V[]>, key: K, value: V) => void} */
export function addTo(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

// A theme as the root has it, and what the button calls it.
const THEMES = [
  ["", "Auto"],
  ["light", "Light"],
  ["dark", "Dark"],
];
// The button for light and dark: what the system has, or the one, or the other.
export function themeButton() {
  let chosen = 0;
  const button = html("button", {
    type: "button",
    class: "small",
    title: "Colours: those of the system, light or dark",
  });
  const show = () => {
    const [theme, words] = THEMES[chosen];
    document.documentElement.dataset.theme = theme;
    button.textContent = `Colours: ${words}`;
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % THEMES.length;
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("themechange")),
  );
  show();
  return button;
}
