// What the pages of reports share: making elements, numbers in words, light and dark. Text becomes text and nothing
// else: names come from files, and whoever makes a file chooses them.
/** @import {Attributes, Child, Children} from "./types.js" */

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; a string is text, and what is null or false is not there.
/** @type {<T extends Element>(its: T, attributes: Attributes, children: Children[]) => T} */
function made(its, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") its.addEventListener(name.slice(2), value);
    else its.setAttribute(name, value === true ? "" : String(value));
  }
  /** @type {Child[]} */
  const all = children.flat();
  its.append(...all.filter((child) => child !== null && child !== undefined && child !== false));
  return its;
}
/**
 * @type {<T extends keyof HTMLElementTagNameMap>(
 *   tag: T, attributes?: Attributes, ...children: Children[]
 * ) => HTMLElementTagNameMap[T]}
 */
export const html = (tag, attributes = {}, ...children) => made(document.createElement(tag), attributes, children);
/**
 * @type {<T extends keyof SVGElementTagNameMap>(
 *   tag: T, attributes?: Attributes, ...children: Children[]
 * ) => SVGElementTagNameMap[T]}
 */
export const svg = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);
// An element that the page has.
/** @type {(id: string) => HTMLElement} */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

// Numbers for people. What is not known is a dash.
export const NONE = "\u2013";
/** @template T @param {T} value @returns {value is T & {}} */
export const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
/** @type {(value: number | null | undefined) => string} */
export const count = (value) => (known(value) ? Number(value).toLocaleString("en") : NONE);
/** @type {(value: number | null | undefined) => string} */
export function bytes(value) {
  if (!known(value)) return NONE;
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = Number(value),
    unit = 0;
  // What would be written as 1,024 is one of the next unit.
  while (Math.abs(size) >= (unit ? 1023.5 : 1024) && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  if (!unit) return `${size.toLocaleString("en")} ${size === 1 ? "byte" : "bytes"}`;
  const digits = Math.abs(size) < 9.995 ? 2 : Math.abs(size) < 99.95 ? 1 : 0;
  return `${size.toFixed(digits)} ${units[unit]}`;
}
// A share as a percentage; what is not quite all or not quite nothing never looks like it.
/** @type {(value: number | null | undefined) => string} */
export function percent(value) {
  if (!known(value)) return NONE;
  const part = 100 * value;
  if (part === 0 || part === 100) return `${part} %`;
  let digits = Math.abs(part) < 10 || Math.abs(100 - part) < 1 ? 2 : 1;
  while (digits < 6 && (Number(part.toFixed(digits)) === 0 || Number(part.toFixed(digits)) === 100)) digits++;
  return `${part.toFixed(digits)} %`;
}
/** @type {(value: number | null | undefined) => string} */
export const ratio = (value) => (known(value) ? Number(value).toFixed(3) : NONE);
/** @type {(value: bigint | null | undefined) => string} */
export const address = (value) => (known(value) ? `0x${BigInt(value).toString(16)}` : NONE);
// Who made a file: `unknown` stands where nothing shows it.
/** @type {(producer: string | null, version: string | null, language: string | null) => string} */
export function maker(producer, version, language) {
  const from = language && language !== "unknown" ? ` from ${language}` : "";
  if (producer && producer !== "unknown") return `Made by ${version ? `${producer} ${version}` : producer}${from}`;
  return from ? `Made${from} by an unknown compiler` : "Made by an unknown compiler";
}
/** @type {(value: number | null, noun: string, many?: string) => string} */
export const counted = (value, noun, many) => `${count(value)} ${value === 1 ? noun : (many ?? `${noun}s`)}`;

// The button for light and dark: what the system has, or the one, or the other.
export function themeButton() {
  const states = [
    ["", "Auto"],
    ["light", "Light"],
    ["dark", "Dark"],
  ];
  let state = 0;
  const button = html("button", {
    type: "button",
    class: "small",
    title: "Colours: as the system has them, light, or dark",
  });
  const show = () => {
    document.documentElement.dataset.theme = states[state][0];
    button.textContent = `Colours: ${states[state][1]}`;
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    state = (state + 1) % states.length;
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("themechange")),
  );
  show();
  return button;
}
