// The shapes that answers.py writes and the scripts of the page make, for those who check types; nothing of it is in a
// page.
import {FlameData} from "../export/types.js";

/** Of an answer that has nothing else: why. */
export interface Missing {
  missing?: string;
}

export interface StoreAnswer extends Missing {
  store: string;
  samples: number;
  stacks: number;
  bytes: number;
  span: string;
  hosts: string[];
  processes: string[];
  labels: Record<string, string[]>;
}

/** Milliseconds since 1970, milliseconds, and samples in each span. */
export interface Times {
  first: number;
  step: number;
  counts: number[];
}

export interface HotFunction {
  name: string;
  module: string;
  own: number;
  total: number;
}

export interface ChangedFunction {
  name: string;
  module: string;
  own_before: number;
  own_after: number;
  total_before: number;
  total_after: number;
}

/** Of one choice of samples `whole` is there, of two `before` and `after`. */
export interface StacksAnswer extends Missing {
  title: string;
  about: string;
  graph: FlameData;
  notes: string[];
  functions: (HotFunction | ChangedFunction)[];
  all: number;
  whole?: number;
  before?: number;
  after?: number;
}

/** A choice of samples: times as somebody writes them, and filters as parameters of the address. */
export interface Side {
  since: string;
  until: string;
  filters: [name: "host" | "process" | "label", value: string][];
}

export interface View {
  after: Side;
  /** What is compared with, if anything is. */
  before: Side | null;
  /** The times that the bars show. */
  from: string;
  to: string;
  functions: boolean;
}
