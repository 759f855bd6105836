// The file that a page is about: its functions as columns, and what is asked of them. Addresses have 64 bits and are
// BigInts; offsets and sizes are numbers.
const KIND = {UNCHANGED: 0, UNDEFINED: 1, REGISTER: 2, AT_REGISTER: 3, CFA: 4, AT_CFA: 5, INEXPRESSIBLE: 6};
const VERDICT = {NEITHER: 0, EQUAL: 1, DIFFERENT: 2, ONLY_FRAMES: 3, ONLY_SFRAME: 4};
const SIGNAL = 1, KEY_B = 2, LSDA = 4;

// Things at rising offsets, some for each function, each with a number.
class Offsets {
  constructor(columns, name, functions) {
    const count = columns.numbers(`${name}Count`), steps = columns.numbers(`${name}Step`);
    this.first = count.length ? sums(count) : new Uint32Array(functions + 1);
    this.number = columns.numbers(`${name}Number`);
    this.offset = steps instanceof Float64Array ? new Float64Array(steps.length) : new Uint32Array(steps.length);
    for (let its = 0; its < count.length; its++)
      for (let at = this.first[its], sum = 0; at < this.first[its + 1]; at++) this.offset[at] = sum += steps[at];
  }
  count(index) { return this.first[index + 1] - this.first[index]; }
  // The last at or before an offset; -1 if there is none.
  at(index, offset) {
    let low = this.first[index], high = this.first[index + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.offset[middle] <= offset) low = middle + 1; else high = middle;
    }
    return low > this.first[index] ? low - 1 : -1;
  }
}

class Binary {
  constructor(meta, buffer) {
    Object.assign(this, meta);
    const columns = new Columns(meta.columns, buffer);
    this.start = columns.addresses("start");
    this.length = this.start.length;
    for (const name of ["size", "text", "flags", "block", "fde", "fdeBytes"]) this[name] = columns.numbers(name);
    this.fdePosition = columns.signed("fdePosition");
    this.symbols = columns.texts("symbols", this.length);
    this.names = columns.texts("names", this.length);
    this.cost = new Map();
    this.reason = new Map();
    for (const {version, impossible} of this.versions) {
      if (impossible) continue;
      this.cost.set(version, columns.numbers(`bytes${version}`));
      this.reason.set(version, columns.numbers(`reason${version}`));
    }
    this.rows = new Offsets(columns, "row", this.length);
    this.sets = new Offsets(columns, "set", this.length);
    this.setFirst = sums(columns.numbers("setEntries"));
    this.setRegister = columns.numbers("setRegister");
    this.setKind = columns.numbers("setKind");
    this.setBase = columns.numbers("setBase");
    this.setOffset = columns.signed("setOffset");
    this.readStretches(columns);
    this.layOut();
  }

  // Code of which .sframe and call frame information do not say the same.
  readStretches(columns) {
    this.stretchStart = columns.addresses("stretchStart");
    for (const name of ["Size", "Verdict", "Function", "One", "Other", "Marks", "Section"])
      this[`stretch${name}`] = columns.numbers(`stretch${name}`);
    this.stretchesOf = new Map();
    this.outside = [];
    this.found = new Set();
    this.verdicts = new Uint8Array(this.length);
    for (let its = 0; its < this.stretchStart.length; its++) {
      const owner = this.stretchFunction[its] - 1;
      if (owner < 0) {
        this.outside.push(its);
        continue;
      }
      if (!this.stretchesOf.has(owner)) this.stretchesOf.set(owner, []);
      this.stretchesOf.get(owner).push(its);
      if (this.stretchVerdict[its] !== VERDICT.NEITHER) this.verdicts[owner] |= 1 << this.stretchVerdict[its];
      this.found.add(this.stretchVerdict[its]);
    }
  }

  // Places on the line: all stretches of code one after the other.
  layOut() {
    this.texts = this.line.map(([name, start, size]) => ({name, start: BigInt(start), size}));
    let end = 0;
    for (const text of this.texts) {
      text.x = end;
      end += text.size;
    }
    this.lineLength = end || 1;
    this.x = new Float64Array(this.length);
    this.xEnd = new Float64Array(this.length);
    for (let its = 0; its < this.length; its++) {
      const text = this.texts[this.text[its]];
      this.x[its] = text.x + Number(this.start[its] - text.start);
      // What claims to go on behind its section is drawn up to there.
      this.xEnd[its] = Math.min(this.x[its] + this.size[its], text.x + text.size);
    }
  }

  name(index) { return this.names[index] || this.symbols[index] || this.place(this.start[index], this.text[index]); }
  sectionOf(index) { return this.texts[this.text[index]].name; }
  // A place in the code: an address, or in object files section and offset.
  place(where, text) {
    return this.relocatable ? `${this.texts[text].name || "?"}+0x${where.toString(16)}` : `0x${where.toString(16)}`;
  }
  placeIn(index, offset) { return this.place(this.start[index] + BigInt(Math.round(offset)), this.text[index]); }

  // The function that begins last at or before a place on the line; -1 if there is none.
  before(x) {
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] <= x) low = middle + 1; else high = middle;
    }
    return low - 1;
  }
  // The functions, with the offset in each, that hold an address; in object files there can be several.
  at(where) {
    const found = [];
    for (const text of this.texts) {
      const away = where - text.start;
      if (away < 0n || away >= BigInt(Math.round(text.size))) continue;
      const index = this.before(text.x + Number(away));
      if (index < 0) continue;
      const offset = where - this.start[index];
      const inside = offset >= 0n && Number(offset) < this.size[index];
      if (inside && this.texts[this.text[index]] === text) found.push([index, Number(offset)]);
    }
    return found;
  }

  // What holds at an offset of a function: its row, -1 for none; rows of a repeating block come again.
  rowAt(index, offset) {
    return this.rows.at(index, this.block[index] ? offset % this.block[index] : offset);
  }
  rule(row) { return this.rules[this.rows.number[row]]; }
  // The rules of other registers there: [register, [kind, base, offset]].
  savedAt(index, offset) {
    const at = this.sets.at(index, offset), found = [];
    if (at < 0) return found;
    const set = this.sets.number[at];
    for (let its = this.setFirst[set]; its < this.setFirst[set + 1]; its++)
      found.push([this.setRegister[its], [this.setKind[its], this.setBase[its], this.setOffset[its]]]);
    return found;
  }
  register(number) { return this.machine.registers[number] ?? `r${number}`; }
  reasonOf(index, version) {
    const column = this.reason.get(version);
    return column && column[index] ? this.versionOf(version).reasons[column[index]] : null;
  }
  versionOf(version) { return this.versions.find((one) => one.version === version); }
}

// Where a value is, in the notation of the rules.
function partText(binary, [kind, base, offset]) {
  const from = kind === KIND.AT_CFA || kind === KIND.CFA ? "CFA" : binary.register(base);
  const place = offset ? `${from}${offset < 0 ? "" : "+"}${offset}` : from;
  switch (kind) {
    case KIND.UNCHANGED: return "unchanged";
    case KIND.UNDEFINED: return "undefined";
    case KIND.AT_CFA: case KIND.AT_REGISTER: return `*(${place})`;
    case KIND.CFA: case KIND.REGISTER: return place;
    default: return "by an expression";
  }
}
