// Where nodes of a tree are: which hold a place, and which are above and below others.
/** @import {FlameTree} from "./types.js" */
import {firstThat} from "../pages/common.js";

/** @type {(tree: FlameTree, node: number) => number} */
export function levelOf(tree, node) {
  return firstThat(1, tree.first.length - 1, (level) => tree.first[level] > node) - 1;
}

// The first node of a level that begins at a place or to the right of it, or with `behind` only to the right; the first
// of the next level if none does.
/** @type {(tree: FlameTree, level: number, x: number, behind?: boolean) => number} */
function lowest(tree, level, x, behind = false) {
  return firstThat(
    tree.first[level],
    tree.first[level + 1],
    (node) => tree.x[node] > x || (!behind && tree.x[node] === x),
  );
}

// The node of a level that holds a place, or the next one to the left; -1 if there is none.
/** @type {(tree: FlameTree, level: number, x: number) => number} */
export function nodeAt(tree, level, x) {
  const next = lowest(tree, level, x, true);
  return next > tree.first[level] ? next - 1 : -1;
}

// The node of a level that a node is in or below of.
/** @type {(tree: FlameTree, node: number, level: number) => number} */
export function ancestor(tree, node, level) {
  for (let above = levelOf(tree, node); above > level; above--) node = tree.parent[node];
  return node;
}

// How many levels have something of a node: its children stand together.
/** @type {(tree: FlameTree, node: number) => number} */
export function deepest(tree, node) {
  let level = levelOf(tree, node),
    low = node,
    high = node + 1;
  const to = tree.x[node] + tree.total[node];
  while (low < high && level + 2 < tree.first.length) {
    level++;
    low = lowest(tree, level, tree.x[node]);
    high = lowest(tree, level, to);
  }
  return low < high ? level + 1 : level;
}

// The node beside another on its level, if it is below a third as well.
/** @type {(tree: FlameTree, node: number, step: number, above: number) => number} */
export function sibling(tree, node, step, above) {
  const next = node + step,
    level = levelOf(tree, node);
  if (next < tree.first[level] || next >= tree.first[level + 1]) return node;
  return ancestor(tree, next, levelOf(tree, above)) === above ? next : node;
}

/** @type {(tree: FlameTree, node: number) => number} */
export function widestChild(tree, node) {
  const level = levelOf(tree, node) + 1;
  if (level >= tree.first.length - 1) return node;
  let best = node;
  for (let child = lowest(tree, level, tree.x[node]); child < tree.first[level + 1]; child++) {
    if (tree.parent[child] !== node) break;
    if (best === node || tree.total[child] > tree.total[best]) best = child;
  }
  return best;
}
