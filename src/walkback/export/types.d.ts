// The shapes that flamegraph.py and flamegraph_tree.js make, for those who check types; nothing of it is in a page.

/** What flamegraph.py writes: the nodes level by level, with the children of each in one piece. */
export interface FlameData {
  unit: string;
  names: string[];
  modules: string[];
  /** The numbers of each name's module and kind. */
  module: number[];
  kind: number[];
  first: number[];
  children: number[];
  name: number[];
  own: number[];
  /** Of a difference: the weights before. */
  before?: number[];
}

export interface Nodes {
  /** Where each level begins. */
  first: number[];
  name: number[];
  parent: Int32Array | number[];
  total: Float64Array | number[];
  own: number[];
  was?: Float64Array | number[];
  ownWas?: number[];
}

export interface FlameTree extends Nodes {
  x: Float64Array;
  /** The largest change of a share, once it is known. */
  largest?: number;
}
