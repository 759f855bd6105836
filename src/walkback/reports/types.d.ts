// The shapes that the reports' Python writes and their scripts make, for those who check types; nothing of it is in a
// page.
import {Described} from "../pages/types.js";

// binary.py

/** Where a value is: `PartKind`, register and offset. */
export type Part = [kind: number, register: number, offset: number];
/** A rule: the texts of CFA, return address and frame pointer, these as parts, and whether the address is signed. */
export type Rule = [cfa: string, ra: string, fp: string, cfaPart: Part, raPart: Part, fpPart: Part, signed: number];
export type SizeParts = Record<
  "header" | "index" | "padding" | "attributes" | "starts" | "info" | "words" | "other",
  number
>;

export interface Origin {
  producer: string | null;
  version: string | null;
  language: string | null;
  evidence: string | null;
  producers: string[];
  linker: string | null;
}

export interface Version {
  version: number;
  /** Why it cannot be made; then there is nothing else. */
  impossible?: string;
  bytes: number;
  parts: SizeParts;
  covered: number;
  lostBytes: number;
  entries: number;
  /** By number; the first stands for none. */
  reasons: [code: string, words: string][];
}

export interface SFrame {
  name: string;
  versions: number[];
  functions: number;
  rows: number;
  bytes: number;
  parts: SizeParts;
  /** Bytes of code by verdict. */
  compared: number[] | null;
  rules: Rule[];
  sections: Record<number, string>;
}

/** What the code proves of the table: functions, and bytes of the instructions that can be reached. */
export interface ProofMeta {
  /** Why there are no verdicts; then there is nothing else. */
  missing: string | null;
  functions: number;
  functionsProved: number;
  functionsWrong: number;
  reached: number;
  proved: number;
  wrong: number;
  assumed: number;
  unknown: number;
  /** By number. */
  causes: [verdict: number, cause: string][];
  /** By number, what the code has; the first stands for nothing. */
  computed: string[];
}

/** Tables of a kind: their names, and what functions are from them. */
export interface Source {
  kind: "cfi" | "go" | "orc" | "code";
  name: string;
  functions: number;
  codeBytes: number;
}

export interface BinaryMeta {
  file: string;
  kind: string;
  buildId: string | null;
  origin: Origin;
  fileBytes: number;
  textBytes: number;
  relocatable: boolean;
  machine: {
    name: string;
    registers: Record<number, string>;
    sp: number;
    fp: number;
    ra: number;
    spFromCfa: number;
  };
  /** All tables in words. */
  source: string;
  sources: Source[];
  /** The kind that was asked for. */
  chosen: string | null;
  frames: Record<string, number>;
  counts: Record<"functions" | "rows" | "codeBytes" | "beyond" | "dead" | "empty" | "shadowed" | "unplaced", number>;
  unplaced: [place: number, reason: string][];
  versions: Version[];
  sframe: SFrame | null;
  unreadable: string | null;
  line: [section: string, start: string, size: number][];
  rules: Rule[];
  saved: boolean;
  proof: ProofMeta;
  columns: Described;
}

/** A stretch of code, and where it begins on the line of all. */
export interface Text {
  name: string;
  start: bigint;
  size: number;
  x: number;
}

// survey.py

/** A value of a row; files are numbers. */
export type Value = string | number | boolean | null;
export type Row = any[];
export type Unit = "text" | "count" | "bytes" | "share" | "ratio" | "address" | "content";

export interface Column {
  name: string;
  title: string;
  unit: Unit;
  words: Record<string, string>;
  /** Whether a table has it, of those that may leave out some. */
  shown?: boolean;
}

export interface Drawing {
  kind: "bars" | "dots" | "histogram" | "stack";
  label: string;
  values: string[];
  panel: string | null;
  span: [low: string, high: string] | null;
  axis: string;
  one: boolean;
}

/** What is drawn. */
export interface Chart {
  title: string;
  sentence: string;
  columns: Column[];
  rows: Row[];
  drawing: Drawing;
}

export interface Figure extends Omit<Chart, "drawing"> {
  name: string;
  says: string;
  drawing: Drawing | null;
  single: boolean;
  sql: string;
}

export interface Chapter {
  name: string;
  title: string;
  figures: Figure[];
  /** What there is to say without a figure. */
  lines: string[];
}

export interface SurveyMeta {
  version: string;
  finished: boolean;
  verdict: string;
  chart: Chart;
  cards: {value: number | null; unit: "count" | "share"; words: string; figure: string | null}[];
  chapters: Chapter[];
  words: Record<string, string[]>;
  list: Described;
  details: Described;
  examples: number;
}
