// Rules in words.
/** @import {Binary} from "./binary_data.js" */
/** @import {Part, Rule} from "./types.js" */
import {KEY_B, KIND, SIGNAL} from "./binary_data.js";

// Why no table can have a rule, if the text of one says so.
/** @type {(text: string) => string | null} */
export const whyInexpressible = (text) => /^inexpressible \((.*)\)$/.exec(text)?.[1] ?? null;

// Where a value is, in the notation of the rules.
/** @type {(binary: Binary, part: Part) => string} */
export function partText(binary, [kind, base, offset]) {
  const from = kind === KIND.AT_CFA || kind === KIND.CFA ? "CFA" : binary.register(base);
  const place = offset ? `${from}${offset < 0 ? "" : "+"}${offset}` : from;
  switch (kind) {
    case KIND.UNCHANGED:
      return "unchanged";
    case KIND.UNDEFINED:
      return "undefined";
    case KIND.AT_CFA:
    case KIND.AT_REGISTER:
      return `*(${place})`;
    case KIND.CFA:
    case KIND.REGISTER:
      return place;
    default:
      return "by an expression";
  }
}

/** @type {(name: string, text: string) => string} */
const clause = (name, text) =>
  /^(unchanged|undefined|inexpressible)/.test(text) ? `${name} ${text}` : `${name} = ${text}`;
/** @type {(rule: Rule) => string} */
function ruleText([cfa, ra, fp, cfaPart, raPart, , isSigned]) {
  if (cfaPart[0] === KIND.UNDEFINED && raPart[0] === KIND.UNDEFINED) return "outermost frame";
  // What no table can say is one reason for all parts.
  const reason = whyInexpressible(cfa);
  if (cfaPart[0] === KIND.INEXPRESSIBLE && cfa === ra) return reason === null ? cfa : `no rule: ${reason}`;
  return `${clause("CFA", cfa)}, ${clause("RA", ra)}${isSigned ? " signed" : ""}, ${clause("FP", fp)}`;
}

// The rule at an offset of a function, part by part, with those of other registers; a row without a rule has one part.
/** @type {(binary: Binary, index: number, offset: number) => string[]} */
export function ruleParts(binary, index, offset) {
  const row = binary.rowAt(index, offset);
  if (row < 0) return ["no rule"];
  const [cfa, ra, fp, , , , isSigned] = binary.rule(row),
    saved = binary.savedAt(index, offset);
  return [
    clause("CFA", shortReason(cfa)),
    clause("RA", shortReason(ra)) + (isSigned ? " signed" : ""),
    clause("FP", shortReason(fp)),
    ...saved.map(([register, part]) => clause(binary.register(register), partText(binary, part))),
  ];
}
/** @type {(text: string) => string} */
const shortReason = (text) => (whyInexpressible(text) === null ? text : "inexpressible");

/** @type {(text: string, flags: number) => string} */
function marked(text, flags) {
  return [text, flags & SIGNAL && "signal frame", flags & KEY_B && "key B"].filter(Boolean).join(", ");
}
// What call frame information says of a stretch, and what .sframe does.
/** @type {(binary: Binary, index: number, stretch: number) => string} */
export function framesText(binary, index, stretch) {
  const number = binary.stretches.framesRule[stretch];
  return number ? marked(ruleText(binary.rules[number - 1]), binary.flags[index]) : "no rule";
}
/** @type {(binary: Binary, stretch: number) => string} */
export function sframeText(binary, stretch) {
  const number = binary.stretches.sframeRule[stretch];
  return number && binary.sframe
    ? marked(ruleText(binary.sframe.rules[number - 1]), binary.stretches.marks[stretch])
    : "no rule";
}
