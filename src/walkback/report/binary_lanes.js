// The code of a file by address: what functions there are, how many rows they have, and what tables cannot say.
const LANES = {ruler: 22, functions: 34, rows: 30, cover: 14, sframe: 14, gap: 7};
const OVERVIEW = 16;
const PAPER = 680; // As many pixels as a sheet is wide, with more in each for printers.
const HELP = "Code by address. Left and right arrows move between functions, plus and minus zoom, zero shows all";
const COLOURS = [
  "ink", "quiet", "line", "grid", "soft", "accent", "bad", "good", "warn", "c2", "code-1", "code-2", "code-ink",
];

// Draws; what is in sight and what is chosen is up to `CodeLine`.
class LineDrawing {
  constructor(binary) {
    this.binary = binary;
    this.version = null;
    this.current = -1;
    this.hovered = -1;
    this.printed = false;
    this.from = 0;
    this.to = binary.lineLength;
    this.canvas = html("canvas", {
      tabindex: 0, role: "application", "aria-describedby": "line-told", class: "line", "aria-label": HELP,
    });
    this.small = html("canvas", {class: "overview", "aria-hidden": "true"});
    this.legend = html("ul", {class: "legend", "aria-label": "What the lanes show"});
    this.element = html("div", {}, this.canvas, this.small, this.legend);
    new ResizeObserver(() => this.redraw()).observe(this.element);
    const anew = () => { this.colours = null; this.redraw(); };
    document.addEventListener("themechange", anew);
    matchMedia("print").addEventListener("change", anew);
  }

  lanes() {
    const its = [["functions", "Functions", LANES.functions], ["rows", "Rows per byte", LANES.rows]];
    if (this.version) its.push(["cover", `SFrame V${this.version}`, LANES.cover]);
    if (this.binary.sframe?.compared) its.push(["sframe", ".sframe", LANES.sframe]);
    let y = LANES.ruler;
    return its.map(([name, label, height]) => {
      const lane = {name, label, height, y};
      y += height + LANES.gap;
      return lane;
    });
  }

  palette() {
    if (this.colours) return this.colours;
    const probe = html("i", {hidden: true});
    document.body.append(probe);
    const read = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    this.colours = Object.fromEntries(COLOURS.map((name) => [name, read(name)]));
    probe.remove();
    this.colours.mono = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
    this.colours.sans = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
    return this.colours;
  }

  // Drawing

  print(on) {
    this.printed = on;
    this.colours = null;
    this.draw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  prepare(canvas, height) {
    const ratio = this.printed ? 3 : window.devicePixelRatio || 1, {width} = this;
    canvas.style.height = `${height}px`;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  draw() {
    this.width = this.printed ? PAPER : this.element.clientWidth;
    if (!this.width) return;
    this.gutter = this.width < 560 ? 0 : 96;
    this.scale = (this.width - this.gutter) / (this.to - this.from);
    const lanes = this.lanes(), last = lanes.at(-1), height = last.y + last.height + 3;
    const pen = this.prepare(this.canvas, height), paint = this.palette();
    this.gather();
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter, 0, this.width - this.gutter, height);
    pen.clip();
    this.drawRuler(pen, paint, height);
    for (const lane of lanes) this[`draw_${lane.name}`](pen, paint, lane);
    this.drawMarks(pen, paint, lanes, height);
    pen.restore();
    if (this.gutter) {
      pen.font = paint.sans;
      pen.fillStyle = paint.quiet;
      pen.textBaseline = "middle";
      for (const lane of lanes) pen.fillText(lane.label, 0, lane.y + lane.height / 2);
    }
    this.drawOverview(paint);
    this.drawLegend();
  }

  px(x) { return this.gutter + (x - this.from) * this.scale; }
  at(px) { return this.from + (px - this.gutter) / this.scale; }

  // What is in sight, summed up for each pixel where it is smaller than that.
  gather() {
    const binary = this.binary, width = Math.ceil(this.width - this.gutter) + 1, scale = this.scale;
    const sums = () => new Float64Array(width), bins = {code: sums(), rows: sums(), lost: sums(), wide: []};
    const reason = this.version ? binary.reason.get(this.version) : null;
    const first = Math.max(0, binary.before(this.from));
    for (let its = first; its < binary.length && binary.x[its] < this.to; its++) {
      const left = (binary.x[its] - this.from) * scale, right = (binary.xEnd[its] - this.from) * scale;
      if (right < 0) continue;
      if (right - left >= 3) bins.wide.push(its);
      const rows = binary.rows.count(its), lost = reason !== null && reason[its] !== 0;
      const begin = Math.max(0, Math.floor(left)), end = Math.min(width - 1, Math.floor(right));
      const span = Math.max(right - left, 1e-9);
      for (let pixel = begin; pixel <= end; pixel++) {
        const part = begin === end
          ? Math.min(right, width) - Math.max(left, 0)
          : Math.min(right, pixel + 1) - Math.max(left, pixel);
        bins.code[pixel] += part;
        bins.rows[pixel] += rows * Math.min(1, part / span);
        // However small, what is not covered is seen.
        if (lost) bins.lost[pixel] = Math.max(bins.lost[pixel] + part, 0.15);
      }
    }
    this.bins = bins;
  }

  drawRuler(pen, paint, height) {
    pen.font = paint.sans;
    pen.textBaseline = "alphabetic";
    let edge = -Infinity;
    for (const text of this.binary.texts) {
      const left = this.px(text.x), right = this.px(text.x + text.size);
      if (right < this.gutter || left > this.width) continue;
      pen.fillStyle = paint.line;
      pen.fillRect(Math.round(left), 0, 1, height);
      const label = text.name || "code", wide = pen.measureText(label).width + 12;
      const from = Math.max(left, this.gutter) + 5;
      if (from < edge || right - from < wide) continue;
      pen.fillStyle = paint.ink;
      pen.fillText(label, from, 13);
      edge = from + wide;
      edge = this.drawTicks(pen, paint, text, edge, Math.min(right, this.width));
    }
  }

  // Round addresses behind the name of a stretch.
  drawTicks(pen, paint, text, edge, right) {
    const wide = 110, step = 2 ** Math.ceil(Math.log2(Math.max(wide / this.scale, 1)));
    const begin = this.at(edge) - text.x, first = BigInt(Math.max(0, Math.floor(begin)));
    const round = BigInt(step);
    pen.font = paint.sans;
    for (let where = ((text.start + first) / round + 1n) * round; ; where += round) {
      const left = this.px(text.x + Number(where - text.start));
      if (left > right || !(step < Infinity)) return edge;
      const words = this.binary.relocatable ? `+0x${where.toString(16)}` : `0x${where.toString(16)}`;
      const width = pen.measureText(words).width;
      if (left > right - width - 8) return edge;
      if (left < edge) continue;
      pen.fillStyle = paint.grid;
      pen.fillRect(Math.round(left), LANES.ruler - 6, 1, 6);
      pen.fillStyle = paint.quiet;
      pen.fillText(words, left + 4, 13);
      edge = left + width + 12;
    }
  }

  draw_functions(pen, paint, {y, height}) {
    pen.fillStyle = paint.soft;
    pen.fillRect(this.gutter, y, this.width - this.gutter, height);
    pen.fillStyle = paint["code-1"];
    this.bins.code.forEach((part, pixel) => {
      if (part <= 0.004) return;
      pen.globalAlpha = Math.min(1, 0.25 + 0.75 * part);
      pen.fillRect(this.gutter + pixel, y, 1, height);
    });
    pen.globalAlpha = 1;
    pen.font = paint.mono;
    pen.textBaseline = "middle";
    for (const its of this.bins.wide) {
      const left = Math.max(this.px(this.binary.x[its]), this.gutter);
      const right = Math.min(this.px(this.binary.xEnd[its]), this.width);
      const gap = right - left > 6 ? 1 : 0.5;
      pen.fillStyle = paint.soft;
      pen.fillRect(left, y, right - left, height);
      pen.fillStyle = its % 2 ? paint["code-1"] : paint["code-2"];
      pen.fillRect(left, y, Math.max(right - left - gap, 1), height);
      const letters = Math.floor((right - left - 10) / 7.25);
      if (letters < 3) continue;
      const name = this.binary.name(its);
      pen.fillStyle = paint["code-ink"];
      pen.fillText(name.length <= letters ? name : `${name.slice(0, letters - 1)}\u2026`, left + 5, y + height / 2 + 1);
    }
  }

  draw_rows(pen, paint, {y, height}) {
    const binary = this.binary, per = this.bins.rows;
    pen.fillStyle = paint.grid;
    pen.fillRect(this.gutter, y + height - 1, this.width - this.gutter, 1);
    // Where single rows can be told apart they are drawn; elsewhere how many there are.
    if (this.scale > 1.5) {
      for (const its of this.bins.wide) {
        const rows = binary.rows;
        for (let row = rows.first[its]; row < rows.first[its + 1]; row++) {
          const left = this.px(binary.x[its] + rows.offset[row]);
          if (left < this.gutter - 2 || left > this.width) continue;
          pen.fillStyle = paint.c2;
          pen.fillRect(Math.round(left), y + 4, 2, height - 5);
        }
      }
      return;
    }
    const most = per.reduce((one, other) => Math.max(one, other), 0);
    pen.fillStyle = paint.c2;
    per.forEach((number, pixel) => {
      if (number <= 0) return;
      const tall = Math.max(1, number / most * (height - 2));
      pen.fillRect(this.gutter + pixel, y + height - 1 - tall, 1, tall);
    });
  }

  draw_cover(pen, paint, {y, height}) {
    this.drawGround(pen, paint, y, height);
    pen.fillStyle = paint.bad;
    this.bins.lost.forEach((part, pixel) => {
      if (!part) return;
      pen.globalAlpha = Math.min(1, 0.45 + part);
      pen.fillRect(this.gutter + pixel, y, 1.4, height);
    });
    pen.globalAlpha = 1;
  }

  // What is as it should be is a thin line; what is not stands out by its height too.
  drawGround(pen, paint, y, height) {
    pen.fillStyle = paint.good;
    this.bins.code.forEach((part, pixel) => {
      if (part <= 0.004) return;
      pen.globalAlpha = Math.min(1, 0.2 + 0.8 * part);
      pen.fillRect(this.gutter + pixel, y + height / 2 - 1, 1, 3);
    });
    pen.globalAlpha = 1;
  }

  draw_sframe(pen, paint, {y, height}) {
    const binary = this.binary;
    this.drawGround(pen, paint, y, height);
    const colours = {[VERDICT.DIFFERENT]: paint.bad, [VERDICT.ONLY_FRAMES]: paint.warn};
    for (const [owner, list] of binary.stretchesOf) {
      if (binary.xEnd[owner] < this.from || binary.x[owner] > this.to) continue;
      for (const its of list) {
        const left = binary.x[owner] + Number(binary.stretchStart[its] - binary.start[owner]);
        pen.fillStyle = colours[binary.stretchVerdict[its]] ?? paint.quiet;
        pen.fillRect(this.px(left), y, Math.max(1.2, binary.stretchSize[its] * this.scale), height);
      }
    }
  }

  drawMarks(pen, paint, lanes, height) {
    for (const [its, width] of [[this.hovered, 1], [this.current, 2]]) {
      if (its < 0) continue;
      const left = this.px(this.binary.x[its]), right = this.px(this.binary.xEnd[its]);
      if (right < this.gutter || left > this.width) continue;
      pen.strokeStyle = paint.ink;
      pen.lineWidth = width;
      if (right - left >= 4) {
        const {y, height: tall} = lanes[0];
        pen.strokeRect(left + width / 2, y + width / 2, right - left - width, tall - width);
      } else {
        // A pointer where the function itself is too small to be seen.
        const middle = (left + right) / 2;
        pen.fillStyle = width === 2 ? paint.accent : paint.quiet;
        pen.fillRect(middle - 0.75, LANES.ruler - 4, 1.5, height);
        pen.beginPath();
        pen.moveTo(middle - 5, LANES.ruler - 7);
        pen.lineTo(middle + 5, LANES.ruler - 7);
        pen.lineTo(middle, LANES.ruler);
        pen.fill();
      }
    }
  }

  drawOverview(paint) {
    const binary = this.binary, pen = this.prepare(this.small, OVERVIEW), all = this.width - this.gutter;
    const whole = this.from <= 0 && this.to >= binary.lineLength;
    pen.fillStyle = paint.soft;
    pen.fillRect(this.gutter, 4, all, OVERVIEW - 8);
    pen.fillStyle = paint.line;
    for (const text of binary.texts) pen.fillRect(this.gutter + text.x / binary.lineLength * all, 4, 1, OVERVIEW - 8);
    const left = this.gutter + this.from / binary.lineLength * all;
    const wide = Math.max(3, (this.to - this.from) / binary.lineLength * all);
    pen.fillStyle = whole ? paint.line : paint.accent;
    pen.fillRect(left, 4, wide, OVERVIEW - 8);
    if (!this.gutter) return;
    pen.font = paint.sans;
    pen.fillStyle = paint.quiet;
    pen.textBaseline = "middle";
    pen.fillText("In sight", 0, OVERVIEW / 2);
  }

  drawLegend() {
    const binary = this.binary, cover = `covered by V${this.version}`;
    const lost = this.version && binary.versionOf(this.version).reasons.length > 1;
    // Of what is wrong only what there is.
    const its = [
      ["var(--code-1)", "function"],
      ["var(--c2)", "rows of the table"],
      this.version && ["var(--good)", cover],
      lost && ["var(--bad)", `not ${cover}`],
      binary.found.has(VERDICT.DIFFERENT) && ["var(--bad)", ".sframe says something else"],
      binary.found.has(VERDICT.ONLY_FRAMES) && ["var(--warn)", "only in call frame information"],
      binary.found.has(VERDICT.ONLY_SFRAME) && ["var(--quiet)", "only in .sframe"],
      binary.found.has(VERDICT.NEITHER) && ["var(--quiet)", "a rule in neither"],
    ].filter(Boolean);
    const key = its.join();
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(...its.map(([colour, words]) => legendItem(colour, words)));
  }
}
