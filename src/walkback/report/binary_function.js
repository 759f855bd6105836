// The part of the page about one function: its numbers, its rows, and its frame at a chosen address.
const PROFILE = {width: 600, height: 84};
const MOST_DIFFERENCES = 20;

// What no table can say is one reason for all parts.
const noRule = (text) => text.replace(/^inexpressible \((.*)\)$/, "no rule: $1");
const clause = (name, text) =>
  (/^(unchanged|undefined|inexpressible)/.test(text) ? `${name} ${text}` : `${name} = ${text}`);
function ruleText([cfa, ra, fp, cfaPart, raPart, , isSigned]) {
  if (cfaPart[0] === KIND.UNDEFINED && raPart[0] === KIND.UNDEFINED) return "outermost frame";
  if (cfaPart[0] === KIND.INEXPRESSIBLE && cfa === ra) return noRule(cfa);
  return `${clause("CFA", cfa)}, ${clause("RA", ra)}${isSigned ? " signed" : ""}, ${clause("FP", fp)}`;
}

class FunctionPanel {
  constructor(binary, element) {
    this.binary = binary;
    this.element = element;
    this.index = -1;
    this.offset = 0;
    this.version = null;
    this.compared = Boolean(binary.sframe?.compared);
    this.title = html("h3", {id: "function-name"});
    this.facts = html("div", {});
    this.where = html("output", {class: "where mono", for: "offset"});
    this.slider = html("input", {
      type: "range", id: "offset", min: 0, "aria-label": "Address in the function",
      oninput: () => this.move(Number(this.slider.value)),
    });
    this.profile = html("div", {class: "profile", onclick: (event) => this.pointAt(event)});
    this.frame = html("div", {});
    this.rows = new LongTable({
      label: "Rows of the function", id: "rows", columns: this.columns(), cells: (row) => this.cells(row),
      chosen: (row) => this.move(binary.rows.offset[binary.rows.first[this.index] + row]),
    });
    this.rowsTitle = html("h4", {}, "Rows");
    this.differences = html("div", {});
    element.replaceChildren(this.title, this.facts,
      html("h4", {}, "The frame at an address"),
      this.profile, html("div", {class: "seek"}, this.slider, this.where), this.frame,
      this.rowsTitle, this.rows.element, this.differences);
  }

  columns() {
    const its = [
      {title: "From", className: "from number mono"}, {title: "CFA", className: "cfa mono"},
      {title: "RA", className: "ra mono"}, {title: "FP", className: "fp mono"},
    ];
    if (this.binary.saved) its.push({title: "Saved at its end", className: "saved mono"});
    if (this.compared) its.push({title: ".sframe", className: "said"});
    return its;
  }

  cells(row) {
    const binary = this.binary, at = binary.rows.first[this.index] + row, offset = binary.rows.offset[at];
    const [cfa, ra, fp, , , , isSigned] = binary.rule(at);
    const its = [`+0x${offset.toString(16)}`, this.cell(cfa), this.cell(isSigned ? `${ra} signed` : ra), this.cell(fp)];
    if (binary.saved) {
      const words = ([register, part]) => {
        const name = binary.register(register);
        return part[0] === KIND.AT_CFA ? name : `${name}: ${partText(binary, part)}`;
      };
      // Registers are saved while the three others stay as they are: what the row ends with tells most.
      const text = binary.savedAt(this.index, this.rowEnd(at) - 1).map(words).join(" ");
      its.push(text ? html("span", {title: text}, text) : NONE);
    }
    if (this.compared) {
      const apart = this.stretchesIn(offset, this.rowEnd(at));
      const differs = apart.some((one) => binary.stretchVerdict[one] !== VERDICT.NEITHER);
      its.push(html("span", {class: differs ? "bad" : "good"}, differs ? "differs" : "same"));
    }
    return its;
  }

  cell(text) {
    const reason = /^inexpressible \((.*)\)$/.exec(text);
    return reason ? html("span", {class: "bad", title: reason[1]}, "no rule") : text;
  }

  rowEnd(at) {
    const binary = this.binary, last = at + 1 === binary.rows.first[this.index + 1];
    return last ? binary.block[this.index] || binary.size[this.index] : binary.rows.offset[at + 1];
  }

  stretchesIn(from, to) {
    const binary = this.binary, block = binary.block[this.index];
    return (binary.stretchesOf.get(this.index) ?? []).filter((its) => {
      const begin = Number(binary.stretchStart[its] - binary.start[this.index]);
      // Rows of a repeating block stand for all its turns.
      return block ? true : begin < to && begin + binary.stretchSize[its] > from;
    });
  }

  // Show a function at an offset, or where the row begins that holds for most of its code.
  show(index, offset = null) {
    this.index = index;
    const binary = this.binary, name = binary.name(index), symbol = binary.symbols[index];
    this.title.replaceChildren(name);
    this.facts.replaceChildren(
      symbol && symbol !== name ? html("p", {class: "symbol mono quiet"}, symbol) : "",
      html("dl", {class: "facts"}, this.factList().map(([term, text, mark]) =>
        html("div", {}, html("dt", {}, term), html("dd", {class: mark}, text)))));
    const step = {AArch64: 4, s390x: 2}[binary.machine.name] ?? 1;
    this.slider.max = Math.max(0, binary.size[index] - 1);
    this.slider.step = step;
    this.drawProfile();
    this.rows.show(binary.rows.count(index), -1);
    this.tellDifferences();
    this.move(offset ?? this.longest());
  }

  print(most) {
    const its = this.rows.count;
    this.rowsTitle.textContent = most && most < its ? `Rows: the first ${count(most)} of ${count(its)}` : "Rows";
    this.rows.print(most);
  }

  longest() {
    const {rows} = this.binary;
    let found = 0, most = 0;
    for (let at = rows.first[this.index]; at < rows.first[this.index + 1]; at++) {
      const size = this.rowEnd(at) - rows.offset[at];
      if (size > most) [found, most] = [rows.offset[at], size];
    }
    return found;
  }

  factList() {
    const binary = this.binary, index = this.index, its = [];
    const end = binary.placeIn(index, binary.size[index]);
    its.push(["Address", `${binary.place(binary.start[index], binary.text[index])} to ${end}`]);
    its.push(["Code", bytes(binary.size[index])], ["Rows", count(binary.rows.count(index))]);
    if (binary.sectionOf(index) && !binary.relocatable) its.push(["Section", binary.sectionOf(index)]);
    if (binary.fdeBytes[index]) {
      const fde = `FDE ${count(binary.fde[index])} at +0x${binary.fdePosition[index].toString(16)}`;
      its.push([binary.source, `${bytes(binary.fdeBytes[index])}, ${fde}`]);
    }
    for (const {version, impossible} of binary.versions) {
      const reason = binary.reasonOf(index, version);
      if (impossible) its.push([`SFrame V${version}`, "cannot be made for this file", "bad"]);
      else if (reason) its.push([`SFrame V${version}`, `not covered: ${reason[1]}`, "bad"]);
      else its.push([`SFrame V${version}`, bytes(binary.cost.get(version)[index])]);
    }
    const marks = [];
    if (binary.flags[index] & SIGNAL) marks.push("signal frame");
    if (binary.flags[index] & KEY_B) marks.push("return addresses signed with key B");
    if (binary.flags[index] & LSDA) marks.push("has a table for exceptions");
    if (binary.block[index]) marks.push(`rows repeat every ${bytes(binary.block[index])}`);
    if (marks.length) its.push(["Besides", marks.join("; ")]);
    return its;
  }

  // How far the CFA is from the stack pointer, along the code: neighbours that look the same are one.
  spans() {
    const binary = this.binary, index = this.index, found = [];
    const scale = PROFILE.width / (binary.size[index] || 1);
    for (let at = binary.rows.first[index]; at < binary.rows.first[index + 1]; at++) {
      const [kind, register, depth] = binary.rule(at)[3], last = found.at(-1);
      const beside = kind === KIND.REGISTER && register === binary.machine.sp;
      const other = kind === KIND.REGISTER || kind === KIND.AT_REGISTER ? "other" : "none";
      const its = {what: beside ? "depth" : other, register, depth};
      its.left = binary.rows.offset[at] * scale;
      its.right = this.rowEnd(at) * scale;
      // What is too small to be seen goes to the one before it.
      if (last?.what === its.what && its.right - last.left < 0.4) {
        last.right = its.right;
        last.depth = Math.max(last.depth, depth);
      } else found.push(its);
    }
    return found;
  }

  drawProfile() {
    const spans = this.spans(), depths = spans.filter(({what}) => what === "depth").map(({depth}) => depth);
    const deepest = depths.reduce((one, other) => Math.max(one, other), 8), top = 8, bottom = PROFILE.height - 18;
    const y = ({what, depth}) => (what === "depth" ? bottom - Math.max(0, depth) / deepest * (bottom - top) : top);
    const drawn = spans.map((one) => svg("rect", {
      class: one.what, x: one.left, y: y(one), width: Math.max(one.right - one.left, 0.6), height: bottom - y(one) + 1,
    }));
    this.cursor = svg("line", {class: "cursor", x1: 0, x2: 0, y1: 2, y2: bottom + 3});
    const box = `0 0 ${PROFILE.width} ${PROFILE.height}`;
    this.profile.replaceChildren(
      svg("svg", {viewBox: box, preserveAspectRatio: "none", "aria-hidden": "true"},
        svg("rect", {class: "ground", x: 0, y: top, width: PROFILE.width, height: bottom - top}), drawn,
        svg("line", {class: "axis", x1: 0, x2: PROFILE.width, y1: bottom + 1, y2: bottom + 1}), this.cursor),
      html("p", {class: "legend"}, this.profileWords(spans, depths.length ? deepest : 0)));
  }

  profileWords(spans, deepest) {
    const binary = this.binary, name = (number) => binary.register(number);
    const registers = new Set(spans.filter(({what}) => what === "other").map(({register}) => name(register)));
    const words = [
      ["depth", deepest > 0 && `CFA above ${name(binary.machine.sp)}, up to ${bytes(deepest)}`],
      ["other", registers.size > 0 && `CFA by ${[...registers].slice(0, 3).join(", ")}`],
      ["none", spans.some(({what}) => what === "none") && "no CFA that tables can have"],
    ];
    return words.map(([what, text]) => text && html("span", {}, html("i", {class: `swatch ${what}`}), text));
  }

  pointAt(event) {
    const box = this.profile.firstElementChild.getBoundingClientRect();
    if (event.clientY > box.bottom) return;
    this.move(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (this.binary.size[this.index] - 1));
  }

  // Show the frame at an offset.
  move(offset) {
    const binary = this.binary, step = Number(this.slider.step) || 1, size = binary.size[this.index];
    this.offset = Math.max(0, Math.min(size - 1, Math.floor(offset / step) * step));
    this.slider.value = this.offset;
    const place = binary.placeIn(this.index, this.offset), row = binary.rowAt(this.index, this.offset);
    const rows = binary.rows.count(this.index), which = row - binary.rows.first[this.index];
    const number = row < 0 ? "no row" : `row ${count(which + 1)} of ${count(rows)}`;
    this.slider.setAttribute("aria-valuetext", `${place}, ${number}`);
    this.where.replaceChildren(`${place} (+0x${this.offset.toString(16)}), ${number}`);
    const x = size > 1 ? this.offset / size * PROFILE.width : 0;
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    this.frame.replaceChildren(frameDrawing(binary, this.index, this.offset));
    const current = row < 0 ? -1 : which;
    if (this.rows.current !== current) {
      this.rows.current = current;
      if (current >= 0) this.rows.reveal();
      this.rows.draw(true);
    }
    this.moved?.(place);
  }

  tellDifferences() {
    const binary = this.binary, found = binary.stretchesOf.get(this.index) ?? [];
    if (!this.compared) {
      this.differences.replaceChildren();
      return;
    }
    const heading = html("h4", {}, `${binary.sframe.name} against ${binary.source}`);
    if (!found.length) {
      const same = html("p", {class: "good"}, "They say the same at every address of this function.");
      this.differences.replaceChildren(heading, same);
      return;
    }
    const more = found.length - MOST_DIFFERENCES;
    const box = {class: "scroll", tabindex: 0, role: "region", "aria-label": "Differences"};
    const titles = ["Code", "", binary.source, binary.sframe.name];
    this.differences.replaceChildren(heading,
      html("div", box, html("table", {"aria-label": "Differences"},
        html("thead", {}, html("tr", {}, titles.map((title) => html("th", {scope: "col"}, title)))),
        html("tbody", {}, found.slice(0, MOST_DIFFERENCES).map((its) => this.differenceRow(its))))),
      html("p", {class: "quiet"}, more > 0 ? `and ${counted(more, "stretch", "stretches")} more` : ""));
  }

  differenceRow(its) {
    const binary = this.binary, from = Number(binary.stretchStart[its] - binary.start[this.index]);
    const place = (offset) => `+0x${offset.toString(16)}`;
    const verdict = {
      [VERDICT.DIFFERENT]: "different",
      [VERDICT.ONLY_FRAMES]: `only in ${binary.source}`,
      [VERDICT.ONLY_SFRAME]: `only in ${binary.sframe.name}`,
    }[binary.stretchVerdict[its]] ?? "neither has a rule";
    return html("tr", {},
      html("td", {class: "mono number"}, `${place(from)} to ${place(from + binary.stretchSize[its])}`),
      html("td", {class: "bad"}, verdict),
      html("td", {class: "mono text"}, oneText(binary, this.index, its)),
      html("td", {class: "mono text"}, otherText(binary, its)));
  }
}

function marked(text, flags) {
  return [text, flags & SIGNAL && "signal frame", flags & KEY_B && "key B"].filter(Boolean).join(", ");
}
function oneText(binary, index, its) {
  const number = binary.stretchOne[its];
  return number ? marked(ruleText(binary.rules[number - 1]), binary.flags[index]) : "no rule";
}
function otherText(binary, its) {
  const number = binary.stretchOther[its];
  return number ? marked(ruleText(binary.sframe.rules[number - 1]), binary.stretchMarks[its]) : "no rule";
}
