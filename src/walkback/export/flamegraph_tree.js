"use strict";
// A tree has its nodes level by level, and within a level from left to right.
// first: where each level begins; x and total: where a node begins and how wide it is, in weight; own: what is not its
// children's. Of a difference there are two sides, after and before: was and ownWas are those of the side not shown.

function layOut(tree) {
  const count = tree.name.length;
  tree.x = new Float64Array(count);
  const end = new Float64Array(count);
  for (let node = 1; node < count; node++) {
    const parent = tree.parent[node];
    tree.x[node] = end[parent];
    end[parent] += tree.total[node];
    end[node] = tree.x[node];
  }
  return tree;
}

function callTree(data) {
  const count = data.name.length;
  const tree = {
    first: data.first, name: data.name, own: data.own,
    parent: new Int32Array(count), total: Float64Array.from(data.own),
  };
  tree.parent[0] = -1;
  for (let node = 0, next = 1; node < count; node++)
    for (let left = data.children[node]; left > 0; left--) tree.parent[next++] = node;
  sumUp(tree, tree.total);
  if (data.before) {
    tree.ownWas = data.before;
    tree.was = sumUp(tree, Float64Array.from(data.before));
  }
  return layOut(tree);
}

function sumUp(tree, total) {
  for (let node = total.length - 1; node > 0; node--) total[tree.parent[node]] += total[node];
  return total;
}

function otherSide(tree) {
  [tree.total, tree.was] = [tree.was, tree.total];
  [tree.own, tree.ownWas] = [tree.ownWas, tree.own];
  return layOut(tree);
}

// The same stacks from the innermost frame on. All are walked outwards together, a level at a time; those that have
// had the same names so far are in one group. Once each is in a group of its own there is nothing left to compare.
function invertedTree(calls, names) {
  const first = [0, 1], parent = [-1], name = [0], total = [calls.total[0]], own = [calls.own[0]];
  const two = Boolean(calls.was), was = two ? [calls.was[0]] : null, ownWas = two ? [calls.ownWas[0]] : null;
  let stacks = [], at = [], group = [], alone = false;
  for (let node = 1; node < calls.name.length; node++) {
    if (calls.own[node] > 0 || (two && calls.ownWas[node] > 0)) stacks.push(node);
  }
  at = stacks;
  group = stacks.map(() => 0);
  const add = (its, called) => {
    parent.push(its);
    name.push(called);
    total.push(0);
    own.push(0);
    if (two) {
      was.push(0);
      ownWas.push(0);
    }
  };
  while (stacks.length) {
    if (!alone) {
      const sorted = sortGroups(calls, names, stacks, at, group);
      alone = sorted.groups === stacks.length;
      ({stacks, at, group} = sorted);
    }
    const outer = {stacks: [], at: [], group: []};
    for (let i = 0; i < stacks.length; i++) {
      const called = calls.name[at[i]], weight = calls.own[stacks[i]], up = calls.parent[at[i]];
      const last = name.length - 1;
      if (last < first[first.length - 1] || parent[last] !== group[i] || name[last] !== called) add(group[i], called);
      const its = name.length - 1, weightWas = two ? calls.ownWas[stacks[i]] : 0;
      total[its] += weight;
      if (two) was[its] += weightWas;
      if (up > 0) {
        outer.stacks.push(stacks[i]);
        outer.at.push(up);
        outer.group.push(its);
      } else {
        own[its] += weight;
        if (two) ownWas[its] += weightWas;
      }
    }
    first.push(name.length);
    ({stacks, at, group} = outer);
  }
  return layOut({first, parent, name, total, own, ...(two ? {was, ownWas} : {})});
}

// Stacks in the order of their groups, within a group by name, and of names the heaviest first.
function sortGroups(calls, names, stacks, at, group) {
  const found = new Map(), kind = new Int32Array(stacks.length), weight = [], its = [];
  for (let i = 0; i < stacks.length; i++) {
    const key = group[i] * names + calls.name[at[i]];
    let number = found.get(key);
    if (number === undefined) {
      found.set(key, number = weight.length);
      weight.push(0);
      its.push(group[i]);
    }
    weight[number] += calls.own[stacks[i]];
    kind[i] = number;
  }
  const order = stacks.map((_, i) => i);
  order.sort((a, b) => {
    const one = kind[a], other = kind[b];
    return one === other ? a - b : its[one] - its[other] || weight[other] - weight[one] || one - other;
  });
  const pick = (column) => order.map((i) => column[i]);
  return {stacks: pick(stacks), at: pick(at), group: pick(group), groups: weight.length};
}
