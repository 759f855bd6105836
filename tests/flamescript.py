"""A program that runs the scripts of a flame graph."""

from __future__ import annotations

PROGRAM = """
const {readFileSync} = require("fs");
const {script, pages} = JSON.parse(readFileSync(0, "utf8"));
const {callTree, invertedTree, otherSide} = new Function(`return ${script}`)();
const paths = (tree, names) => {
  const found = [], path = [[]];
  for (let node = 1; node < tree.name.length; node++) {
    path[node] = [...path[tree.parent[node]], names[tree.name[node]]];
    found.push([path[node], tree.total[node], tree.own[node], tree.x[node]]);
  }
  return {found, first: [...tree.first]};
};
console.log(JSON.stringify(pages.map((data) => {
  const calls = callTree(data);
  return [paths(calls, data.names), paths(invertedTree(calls, data.names.length), data.names)];
})));
"""
