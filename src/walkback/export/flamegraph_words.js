// Weights and shares in words.

/** @type {[size: number, unit: string][]} */
const TIME_UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "\u00b5s"],
];

/** @type {(part: number, whole: number) => string} */
export const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(2)} %` : "-");

/** @type {(weight: number, unit: string) => string} */
export function amount(weight, unit) {
  if (unit === "nanoseconds") {
    const [size, word] = TIME_UNITS.find(([least]) => weight >= least) ?? [1, "ns"];
    return `${(weight / size).toLocaleString("en", {maximumFractionDigits: 3})} ${word}`;
  }
  return `${weight.toLocaleString("en")} ${weight === 1 ? unit.replace(/s$/, "") : unit}`;
}

// Whether a text has what is wanted. What is no regular expression is looked for as it is.
/** @type {(wanted: string) => (text: string) => boolean} */
export function testFor(wanted) {
  try {
    const pattern = new RegExp(wanted, "i");
    return (text) => pattern.test(text);
  } catch {
    return (text) => text.toLowerCase().includes(wanted.toLowerCase());
  }
}
