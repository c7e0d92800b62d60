"use strict";

// The trace: the facts about each line, by its place from 0. See `pack.rs` for the form of the
// data. The text of a line is made on demand.

const RUN = 0, READY = 1, BLOCKED = 2;
let cursor = 0;

function nextNumber() {
  let value = 0, scale = 1, byte;
  do {
    byte = unpacked[cursor++];
    value += (byte & 127) * scale;
    scale *= 128;
  } while (byte > 127);
  return value;
}

function nextSigned() {
  const value = nextNumber();
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

// Reads `size` numbers. Each is stored as its difference from the number before.
function nextColumn(size, Kind) {
  const column = new Kind(size);
  for (let n = 0, value = 0; n < size; n++) column[n] = value += nextSigned();
  return column;
}

function nextHead() {
  const size = nextNumber();
  cursor += size;
  return JSON.parse(new TextDecoder().decode(unpacked.subarray(cursor - size, cursor)));
}

const trace = nextHead();
const { count } = trace;
const seqOf = nextColumn(count, Float64Array);
const lineNumber = (n) => seqOf[n];
const at = nextColumn(count, Float64Array);
const turn = nextColumn(count, Float64Array);
const taskOf = nextColumn(count, Float64Array);
// The cause of a line, or -1.
const behind = new Int32Array(count);
for (let n = 0; n < count; n++) behind[n] = n - (nextNumber() || n + 1);

// A template: its parts, which are texts and signs for the varying values; its verb; a column of
// numbers for each sign that has one.
const AS_IS = "\0", HEAD = "\x01", NUMBER = "\x02", TIME = "\x03", CAUSE = "\x04";
const templates = trace.templates.map((text) => {
  const parts = text[0] === AS_IS ? [text.slice(1)] : text.split(/([\x01-\x04])/).filter(Boolean);
  const verb = parts[0] === HEAD ? parts[1].split(" ", 1)[0] : "";
  return { parts, verb, lines: 0, columns: [] };
});
const templateOf = new Int32Array(count), nthOf = new Int32Array(count);
for (let n = 0; n < count; n++) {
  templateOf[n] = nextNumber();
  nthOf[n] = templates[templateOf[n]].lines++;
}
for (const { parts, lines, columns } of templates) {
  for (const part of parts) {
    if (part === NUMBER || part === TIME) columns.push(nextColumn(lines, Float64Array));
  }
}

// The pieces of tasks' lives. They continue the entries of `trace.tasks`.
let lastFrom = 0;
for (const task of trace.tasks) {
  const size = nextNumber(), state = new Uint8Array(size), from = new Int32Array(size + 1);
  for (let p = 0; p < size; p++) state[p] = nextNumber();
  for (let p = 0; p <= size; p++) from[p] = lastFrom += nextSigned();
  task.push(state, from.subarray(0, size), from.subarray(1));
}

lastFrom = 0;
function nextList() {
  const size = nextNumber(), list = new Array(size);
  for (let n = 0; n < size; n++) {
    lastFrom += nextSigned();
    list[n] = [lastFrom, lastFrom + nextSigned(), nextNumber()];
  }
  return list;
}
for (const name of ["scopes", "waits", "lates", "longs", "links", "linkEnds"]) trace[name] = nextList();

// The changes of each line to the kernel's state: see `changes.rs`.
const changesOf = new Int32Array(count), nthChange = new Int32Array(count);
const changes = trace.changes.map((text) => ({ text, lines: 0, columns: [] }));
{
  const last = new Int32Array(templates.length);
  for (let n = 0; n < count; n++) {
    const nth = nextNumber() || last[templateOf[n]];
    last[templateOf[n]] = nth;
    changesOf[n] = nth - 1;
    nthChange[n] = changes[nth - 1].lines++;
  }
}
// The number of an argument comes after its sign, and may look like any sign.
for (const { text, lines, columns } of changes) {
  for (const sign of text.match(/\x04[^]|[\x05-\x07]/g) ?? []) {
    if (sign.length === 1) columns.push(nextColumn(lines, Float64Array));
  }
}
unpacked = null;

// Pads a name to the width of its column.
const pad = (name) => name + " ".repeat(Math.max(0, 8 - [...name].length));
const padded = new Map(trace.tasks.map(([id, name]) => [id, pad(name)]));

function seconds(micros) {
  return `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")}`;
}

function head(n) {
  const name = padded.get(taskOf[n]) ?? "kernel  ";
  return `${seconds(at[n]).padStart(9)} ${String(turn[n]).padStart(7)}  ` +
    `#${String(seqOf[n]).padStart(4, "0")} ${String(taskOf[n]).padStart(3)} ${name} `;
}

// Returns a line as it is in the log.
function line(n) {
  const { parts, columns } = templates[templateOf[n]], nth = nthOf[n];
  let text = "", column = 0;
  for (const part of parts) {
    if (part === HEAD) text += head(n);
    else if (part === NUMBER) text += columns[column++][nth];
    else if (part === TIME) text += seconds(at[n] + columns[column++][nth]);
    else if (part === CAUSE) text += seqOf[behind[n]];
    else text += part;
  }
  return text;
}

function verbOf(n) {
  return templates[templateOf[n]].verb;
}

// Returns the line to which the key Enter leads back, or -1: the cause. Time makes a timer fire, but its
// line names the line that has set it.
function lineBehind(n) {
  return verbOf(n) === "fire" ? placeOf(readLine(line(n)).cause) : behind[n];
}

// Returns the causes of a line. The line itself is first.
function chain(n) {
  const found = [];
  for (; n >= 0; n = behind[n]) found.push(n);
  return found;
}

// Returns the first element of a sorted list for which `is` holds.
function firstOf(list, is) {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (is(list[middle])) to = middle;
    else from = middle + 1;
  }
  return from;
}
