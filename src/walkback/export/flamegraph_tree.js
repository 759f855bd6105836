// A tree has its nodes level by level, and within a level from left to right.
// first: where each level begins; x and total: where a node begins and how wide it is, in weight; own: what is not its
// children's. Of a difference there are two sides, after and before: was and ownWas are those of the side not shown.
/** @import {FlameData, FlameTree, Nodes} from "./types.js" */

// What is drawn until there is something.
/** @type {FlameData} */
export const NO_DATA = {
  unit: "samples",
  names: ["all"],
  modules: [""],
  module: [0],
  kind: [0],
  first: [0, 1],
  children: [0],
  name: [0],
  own: [0],
};

/** @type {(tree: Nodes) => FlameTree} */
function layOut(tree) {
  const count = tree.name.length;
  const x = new Float64Array(count);
  const end = new Float64Array(count);
  for (let node = 1; node < count; node++) {
    const parent = tree.parent[node];
    x[node] = end[parent];
    end[parent] += tree.total[node];
    end[node] = x[node];
  }
  return Object.assign(tree, {x});
}

/** @type {(data: FlameData) => FlameTree} */
export function callTree(data) {
  const parent = new Int32Array(data.name.length);
  parent[0] = -1;
  for (let node = 0, next = 1; node < parent.length; node++)
    for (let left = data.children[node]; left > 0; left--) parent[next++] = node;
  /** @type {Nodes} */
  const tree = {
    first: data.first,
    name: data.name,
    own: data.own,
    parent,
    total: sumUp(parent, Float64Array.from(data.own)),
  };
  if (data.before) {
    tree.ownWas = data.before;
    tree.was = sumUp(parent, Float64Array.from(data.before));
  }
  return layOut(tree);
}

/** @type {(parent: ArrayLike<number>, total: Float64Array) => Float64Array} */
function sumUp(parent, total) {
  for (let node = total.length - 1; node > 0; node--) total[parent[node]] += total[node];
  return total;
}

/** @type {(tree: FlameTree) => FlameTree} */
export function otherSide(tree) {
  const {total, own, was = total, ownWas = own} = tree;
  Object.assign(tree, {total: was, own: ownWas, was: total, ownWas: own});
  return layOut(tree);
}

// By how much the share of a node is larger after than before, where `isOld` says which side is shown.
/** @type {(tree: FlameTree, node: number, isOld: boolean) => number} */
export function changeOf(tree, node, isOld) {
  /** @type {(side: ArrayLike<number>) => number} */
  const shareOf = (side) => (side[0] ? side[node] / side[0] : 0);
  const more = shareOf(tree.total) - shareOf(tree.was ?? []);
  return isOld ? -more : more;
}

const LEAST_CHANGE = 1e-9;

// The same relative to the largest change there is, from -1 to 1; small ones are made visible by the root.
/** @type {(tree: FlameTree, node: number, isOld: boolean) => number} */
export function changePart(tree, node, isOld) {
  /** @type {(other: number) => number} */
  const size = (other) => Math.abs(changeOf(tree, other, isOld));
  tree.largest ??= tree.name.reduce((most, _, other) => Math.max(most, size(other)), LEAST_CHANGE);
  return Math.sign(changeOf(tree, node, isOld)) * Math.sqrt(size(node) / tree.largest);
}

// The weight of all nodes with some names; what is below such a node is in its weight.
/** @type {(tree: FlameTree, names: Uint8Array) => number} */
export function weightOf(tree, names) {
  const inside = new Uint8Array(tree.name.length);
  let weight = 0;
  for (let node = 1; node < tree.name.length; node++) {
    if (inside[tree.parent[node]]) inside[node] = 1;
    else if (names[tree.name[node]]) {
      inside[node] = 1;
      weight += tree.total[node];
    }
  }
  return weight;
}

// The same stacks from the innermost frame on. All are walked outwards together, a level at a time; those that have
// had the same names so far are in one group. Once each is in a group of its own there is nothing left to compare.
/** @type {(calls: FlameTree, names: number) => FlameTree} */
export function invertedTree(calls, names) {
  const first = [0, 1],
    parent = [-1],
    name = [0],
    total = [calls.total[0]],
    own = [calls.own[0]];
  // The weights of the other side, if there is one.
  const other = calls.ownWas,
    was = [calls.was?.[0] ?? 0],
    ownWas = [other?.[0] ?? 0];
  /** @type {number[]} */
  let stacks = [];
  for (let node = 1; node < calls.name.length; node++) {
    if (calls.own[node] > 0 || (other && other[node] > 0)) stacks.push(node);
  }
  let at = stacks,
    group = stacks.map(() => 0),
    alone = false;
  /** @type {(above: number, called: number) => void} */
  const add = (above, called) => {
    parent.push(above);
    name.push(called);
    total.push(0);
    own.push(0);
    was.push(0);
    ownWas.push(0);
  };
  while (stacks.length) {
    if (!alone) {
      const sorted = sortGroups(calls, names, stacks, at, group);
      alone = sorted.groups === stacks.length;
      ({stacks, at, group} = sorted);
    }
    /** @type {Record<"stacks" | "at" | "group", number[]>} */
    const outer = {stacks: [], at: [], group: []};
    for (let i = 0; i < stacks.length; i++) {
      const called = calls.name[at[i]],
        weight = calls.own[stacks[i]],
        up = calls.parent[at[i]];
      const last = name.length - 1;
      if (last < first[first.length - 1] || parent[last] !== group[i] || name[last] !== called) add(group[i], called);
      const node = name.length - 1,
        weightWas = other ? other[stacks[i]] : 0;
      total[node] += weight;
      was[node] += weightWas;
      if (up > 0) {
        outer.stacks.push(stacks[i]);
        outer.at.push(up);
        outer.group.push(node);
      } else {
        own[node] += weight;
        ownWas[node] += weightWas;
      }
    }
    first.push(name.length);
    ({stacks, at, group} = outer);
  }
  return layOut({first, parent, name, total, own, ...(other ? {was, ownWas} : {})});
}

// Stacks in the order of their groups, within a group by name, and of names the heaviest first.
/**
 * @param {FlameTree} calls
 * @param {number} names
 * @param {number[]} stacks
 * @param {number[]} at
 * @param {number[]} group
 */
function sortGroups(calls, names, stacks, at, group) {
  /** @type {number[]} */
  const weight = [];
  /** @type {number[]} */
  const oldGroup = [];
  const numbers = new Map(),
    newGroup = new Int32Array(stacks.length);
  for (let i = 0; i < stacks.length; i++) {
    const key = group[i] * names + calls.name[at[i]];
    let number = numbers.get(key);
    if (number === undefined) {
      numbers.set(key, (number = weight.length));
      weight.push(0);
      oldGroup.push(group[i]);
    }
    weight[number] += calls.own[stacks[i]];
    newGroup[i] = number;
  }
  const order = stacks.map((_, i) => i);
  order.sort((a, b) => {
    const one = newGroup[a],
      other = newGroup[b];
    return one === other ? a - b : oldGroup[one] - oldGroup[other] || weight[other] - weight[one] || one - other;
  });
  /** @type {(column: number[]) => number[]} */
  const pick = (column) => order.map((i) => column[i]);
  return {stacks: pick(stacks), at: pick(at), group: pick(group), groups: weight.length};
}
