"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const canvas = element("graph"), scroll = element("scroll"), tall = element("tall");
  const pen = canvas.getContext("2d");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ROW = 20, GAP = 1, FONT = '12px ui-monospace, "DejaVu Sans Mono", monospace';
  const KINDS = ["function", "kernel", "no name", "incomplete", "program"];

  const calls = callTree(data);
  let inverted = null;
  let tree = calls, zoom = 0, picked = -1, hovered = -1;
  let found = null, matched = 0;
  let width = 0, height = 0, letter = 7;
  let paint = null;
  // Of a difference: whether the widths are those of before.
  let old = false;
  const STEPS = 12;

  const levelOf = (node) => {
    let low = 0, high = tree.first.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (tree.first[middle] <= node) low = middle; else high = middle;
    }
    return low;
  };

  // The node of a level that holds a place, or the next one to the left; -1 if there is none.
  const nodeAt = (level, x) => {
    let low = tree.first[level], high = tree.first[level + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tree.x[middle] <= x) low = middle + 1; else high = middle;
    }
    return low > tree.first[level] ? low - 1 : -1;
  };

  const ancestor = (node, level) => {
    for (let its = levelOf(node); its > level; its--) node = tree.parent[node];
    return node;
  };

  function colours() {
    const night = dark.matches;
    const fill = data.names.map((text, number) => {
      let hash = data.modules[data.module[number]].length * 7;
      for (let i = 0; i < text.length && i < 24; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
      const part = ((hash >>> 0) % 997) / 997, step = part * 8 - 4;
      switch (data.kind[number]) {
        case 1: return `hsl(${205 + 20 * part} ${night ? 38 : 62}% ${(night ? 31 : 79) + step}%)`;
        case 2: return `hsl(40 5% ${(night ? 30 : 82) + step}%)`;
        case 3: return night ? "hsl(345 55% 33%)" : "hsl(345 85% 84%)";
        case 4: return `hsl(150 ${night ? 18 : 25}% ${(night ? 27 : 83) + step / 2}%)`;
        default: return `hsl(${18 + 34 * part} ${night ? 48 : 82}% ${(night ? 31 : 76) + step}%)`;
      }
    });
    const style = getComputedStyle(document.body);
    paint = {
      fill, ink: night ? "#f2eee9" : "#221d18", line: style.color, faint: night ? "#0006" : "#ffffff8c",
      match: night ? "#a03fc4" : "#e08cff", root: night ? "#35322e" : "#e5e0d9",
    };
    paint.change = Array.from({length: 2 * STEPS + 1}, (_, place) => {
      const part = Math.abs(place - STEPS) / STEPS;
      const light = night ? 26 + 18 * part : 91 - 26 * part;
      return `hsl(${place < STEPS ? 215 : 8} ${Math.round((night ? 60 : 85) * Math.min(1, 2 * part))}% ${light}%)`;
    });
    // The root is the first function by kind, and has a colour of its own.
    const shown = data.before
      ? [["less than before", paint.change[0]], ["no change", paint.change[STEPS]],
        ["more than before", paint.change[2 * STEPS]]]
      : KINDS.map((word, kind) => [word, fill[data.kind.indexOf(kind, 1)]]);
    element("legend").replaceChildren(...shown.map(([word, colour]) => {
      if (!colour) return "";
      const item = document.createElement("li"), box = document.createElement("i");
      box.style.background = colour;
      item.append(box, word);
      return item;
    }));
  }

  // By how much the share of a node is larger after than before.
  const change = (node) => {
    const shares = [[tree.total, tree.was], [tree.was, tree.total]][old ? 1 : 0]
      .map((side) => (side[0] ? side[node] / side[0] : 0));
    return shares[0] - shares[1];
  };

  function changeColour(node) {
    // Relative to the largest change there is; small ones are made visible by the root.
    tree.largest ??= Math.max(1e-9, tree.total.reduce((most, _, its) => Math.max(most, Math.abs(change(its))), 0));
    const its = change(node), part = Math.sqrt(Math.abs(its) / tree.largest);
    return paint.change[STEPS + Math.round(Math.sign(its) * part * STEPS)];
  }

  function box(node, left, right, top, faded) {
    const its = right - left - (right - left > 3 ? GAP : 0);
    const hit = found !== null && found[tree.name[node]];
    const colour = data.before ? changeColour(node) : paint.fill[tree.name[node]];
    pen.fillStyle = node === 0 ? paint.root : hit ? paint.match : colour;
    pen.fillRect(left, top, its, ROW - GAP);
    if (faded || (found !== null && !hit)) {
      pen.fillStyle = paint.faint;
      pen.fillRect(left, top, its, ROW - GAP);
    }
    const letters = Math.floor((its - 6) / letter);
    if (letters >= 2) {
      const text = data.names[tree.name[node]];
      pen.fillStyle = paint.ink;
      pen.fillText(text.length <= letters ? text : text.slice(0, letters - 1) + "\u2026", left + 3, top + 14, its - 4);
    }
    if (node === picked || node === hovered) {
      pen.strokeStyle = paint.line;
      pen.lineWidth = node === picked ? 2 : 1;
      pen.strokeRect(left + 1, top + 1, Math.max(its - 2, 1), ROW - GAP - 2);
    }
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = FONT;
    const top = canvas.offsetTop, zoomLevel = levelOf(zoom);
    const scale = width / (tree.total[zoom] || 1), from = tree.x[zoom], to = from + tree.total[zoom];
    const begin = Math.max(0, Math.floor(top / ROW));
    const end = Math.min(tree.first.length - 1, Math.ceil((top + height) / ROW));
    for (let level = begin; level < end; level++) {
      const y = level * ROW - top;
      if (level < zoomLevel) {
        box(ancestor(zoom, level), 0, width, y, true);
        continue;
      }
      let node = Math.max(nodeAt(level, from), tree.first[level]);
      if (level === zoomLevel) node = zoom;
      // Boxes too narrow to see are drawn together where they stand side by side.
      let thin = 0, thinEnd = -1;
      const flush = () => {
        pen.fillStyle = paint.root;
        if (thinEnd - thin >= 0.5) pen.fillRect(thin, y, thinEnd - thin, ROW - GAP);
        thinEnd = -1;
      };
      for (; node < tree.first[level + 1] && tree.x[node] < to; node++) {
        const left = (tree.x[node] - from) * scale, right = left + tree.total[node] * scale;
        if (left < -0.01) continue;
        if (thinEnd < left - 0.01 || right - left >= 0.5) {
          flush();
          thin = left;
        }
        if (right - left >= 0.5) box(node, left, right, y, false);
        else thinEnd = right;
      }
      flush();
    }
  }

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function deepest() {
    // The levels that have something below the zoomed node: a node's children stand together.
    let level = levelOf(zoom), low = zoom, high = zoom + 1;
    const to = tree.x[zoom] + tree.total[zoom];
    while (low < high && level + 2 < tree.first.length) {
      level++;
      low = lowest(level, tree.x[zoom]);
      high = lowest(level, to);
    }
    return low < high ? level + 1 : level;
  }

  const lowest = (level, x) => {
    let low = tree.first[level], high = tree.first[level + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tree.x[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  };

  function measure() {
    const ratio = window.devicePixelRatio || 1, rows = deepest() * ROW;
    tall.style.height = `${rows}px`;
    width = tall.clientWidth;
    height = Math.min(scroll.clientHeight, rows);
    canvas.style.height = `${height}px`;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    pen.font = FONT;
    letter = pen.measureText("0123456789").width / 10;
    draw();
  }

  const share = (part, whole) => (whole ? `${(100 * part / whole).toFixed(2)} %` : "-");
  function amount(weight) {
    if (data.unit === "nanoseconds") {
      const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]].find(([least]) => weight >= least) ?? [1, "ns"];
      return `${(weight / size).toLocaleString("en", {maximumFractionDigits: 3})} ${unit}`;
    }
    return `${weight.toLocaleString("en")} ${weight === 1 ? data.unit.replace(/s$/, "") : data.unit}`;
  }

  function tell() {
    const node = hovered >= 0 ? hovered : picked >= 0 ? picked : zoom;
    const name = tree.name[node], whole = tree.total[0], module = data.modules[data.module[name]];
    element("name").textContent = data.names[name];
    const words = [`${amount(tree.total[node])}, ${share(tree.total[node], whole)} of all`];
    if (data.before) {
      const moved = 100 * change(node);
      words.push(`${old ? "after" : "before"} ${share(tree.was[node], tree.was[0])}`);
      words.push(`${moved < 0 ? "\u2212" : "+"}${Math.abs(moved).toFixed(2)} points`);
    }
    if (zoom && node !== zoom) words.push(`${share(tree.total[node], tree.total[zoom])} of the zoomed`);
    if (tree === calls && tree.own[node]) words.push(`${amount(tree.own[node])} of its own`);
    if (node && data.kind[name]) words.push(KINDS[data.kind[name]]);
    if (module) words.push(module);
    element("numbers").textContent = words.join(" \u00b7 ");
  }

  function show(node) {
    zoom = node;
    picked = node || -1;
    hovered = -1;
    element("reset").disabled = !zoom && !found;
    measure();
    tell();
  }

  function keepInView() {
    const top = levelOf(picked) * ROW;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + ROW > scroll.scrollTop + scroll.clientHeight - 16)
      scroll.scrollTop = top + ROW - scroll.clientHeight + 16;
  }

  function pick(node) {
    picked = node;
    hovered = -1;
    keepInView();
    tell();
    redraw();
  }

  function search() {
    const wanted = element("search").value.trim();
    found = null;
    matched = 0;
    if (wanted) {
      let test = (text) => text.toLowerCase().includes(wanted.toLowerCase());
      try {
        const pattern = new RegExp(wanted, "i");
        test = (text) => pattern.test(text);
      } catch { /* What is no regular expression is looked for as it is. */ }
      found = Uint8Array.from(data.names, (text) => (test(text) ? 1 : 0));
      found[0] = 0;
      const inside = new Uint8Array(tree.name.length);
      for (let node = 1; node < tree.name.length; node++) {
        if (inside[tree.parent[node]]) inside[node] = 1;
        else if (found[tree.name[node]]) {
          inside[node] = 1;
          matched += tree.total[node];
        }
      }
    }
    element("matched").textContent = found ? `${share(matched, tree.total[0])} matched` : "";
    element("reset").disabled = !zoom && !found;
    redraw();
  }

  function reset() {
    element("search").value = "";
    search();
    show(0);
    scroll.scrollTop = 0;
  }

  function nodeUnder(event) {
    const area = canvas.getBoundingClientRect();
    const level = Math.floor((event.clientY - area.top + canvas.offsetTop) / ROW);
    if (level < 0 || level >= tree.first.length - 1) return -1;
    if (level <= levelOf(zoom)) return ancestor(zoom, level);
    const x = tree.x[zoom] + (event.clientX - area.left) / width * tree.total[zoom];
    const node = nodeAt(level, x);
    return node >= 0 && x < tree.x[node] + tree.total[node] ? node : -1;
  }

  const below = (node, ancestorNode) => ancestor(node, levelOf(ancestorNode)) === ancestorNode;

  const siblings = (node, step) => {
    const next = node + step, level = levelOf(node);
    return next >= tree.first[level] && next < tree.first[level + 1] && below(next, zoom) ? next : node;
  };

  function widestChild(node) {
    const level = levelOf(node) + 1;
    if (level >= tree.first.length - 1) return node;
    let best = node;
    for (let child = lowest(level, tree.x[node]); child < tree.first[level + 1]; child++) {
      if (tree.parent[child] !== node) break;
      if (best === node || tree.total[child] > tree.total[best]) best = child;
    }
    return best;
  }

  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const node = nodeUnder(event);
    if (node === hovered) return;
    hovered = node;
    tell();
    redraw();
  });
  canvas.addEventListener("pointerleave", () => { hovered = -1; tell(); redraw(); });
  canvas.addEventListener("click", (event) => {
    const node = nodeUnder(event);
    if (node >= 0) show(node);
  });
  canvas.addEventListener("keydown", (event) => {
    const node = picked >= 0 ? picked : zoom;
    const moves = {
      ArrowUp: () => pick(node > 0 ? tree.parent[node] : 0),
      ArrowDown: () => pick(widestChild(node)),
      ArrowLeft: () => pick(siblings(node, -1)),
      ArrowRight: () => pick(siblings(node, 1)),
      Enter: () => { show(node); keepInView(); },
      Escape: () => {
        const was = zoom;
        if (!was) return reset();
        show(0);
        pick(was);
      },
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== element("search")) {
      event.preventDefault();
      element("search").focus();
    }
  });
  element("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { element("search").value = ""; search(); canvas.focus(); }
  });
  let typing = 0;
  element("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  element("controls").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  element("reset").addEventListener("click", reset);
  element("side").hidden = !data.before;
  element("side").addEventListener("click", () => {
    old = !old;
    otherSide(calls);
    if (inverted) otherSide(inverted);
    element("side").setAttribute("aria-pressed", String(old));
    search();
    show(tree.total[zoom] ? zoom : 0);
  });
  element("invert").addEventListener("click", () => {
    tree = tree === calls ? (inverted ??= invertedTree(calls, data.names.length)) : calls;
    element("invert").setAttribute("aria-pressed", String(tree !== calls));
    search();
    show(0);
    scroll.scrollTop = 0;
  });
  scroll.addEventListener("scroll", redraw);
  dark.addEventListener("change", () => { colours(); redraw(); });
  new ResizeObserver(measure).observe(scroll);
  colours();
  show(0);
})();
