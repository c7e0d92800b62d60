"use strict";

// The page of `trace timeline`. Draws what is in `#data`: see `page.rs` for its form.

const trace = JSON.parse(document.getElementById("data").textContent);
const { lines, at, turn, task: taskOf, behind } = trace;
const RUN = 0, READY = 1, BLOCKED = 2;
const RULER = 26, ROW = 15, ROWS = 3;

// ---- Lanes: the kernel first, then a lane a task ---------------------------------------------

const lanes = [{ id: 0, name: "kernel", pieces: [], end: -1, events: [] }];
for (const [id, name, flat, end] of trace.tasks) {
  const pieces = [];
  for (let n = 0; n < flat.length; n += 3) {
    pieces.push({ state: flat[n], from: flat[n + 1], to: flat[n + 2] });
  }
  lanes.push({ id, name, pieces, end, events: [] });
}
const laneOf = new Map(lanes.map((lane, n) => [lane.id, n]));
lines.forEach((_, n) => lanes[laneOf.get(taskOf[n])].events.push(n));

// Below the bar of a task: a row of notes, and rows of spans, an inner one below its outer one. A
// span that finds no row is not drawn.
for (const lane of lanes) Object.assign(lane, { notes: [], spans: [], ends: [] });
for (const [n, text] of trace.notes) lanes[laneOf.get(taskOf[n])].notes.push({ n, text });
for (const [task, name, from, to] of trace.spans) {
  const { ends, notes, spans } = lanes[laneOf.get(task)];
  let row = 0;
  while (ends[row] > from) row++;
  if (row >= ROWS) continue;
  ends[row] = to;
  spans.push({ name, from, to, row: row + (notes.length ? 1 : 0) });
}
const below = lanes.map(({ notes, ends }) => ((notes.length ? 1 : 0) + ends.length) * ROW);

// ---- Axes: where an event stands ----------------------------------------------------------------

// By turns: a column a turn, the events of one turn spread over it.
const byTurn = new Float64Array(lines.length);
for (let from = 0; from < lines.length;) {
  let to = from;
  while (to < lines.length && turn[to] === turn[from]) to++;
  for (let n = from; n < to; n++) byTurn[n] = turn[from] + (n - from) / (to - from);
  from = to;
}
const axes = {
  turns: { of: byTurn, label: (x) => `turn ${Math.floor(x)}`, step: 1 },
  time: { of: Float64Array.from(at), label: seconds, step: 0 },
  events: {
    of: Float64Array.from(lines.keys()),
    label: (x) => `#${Math.round(x) + 1}`,
    step: 1,
  },
};

function seconds(micros) {
  return `${(micros / 1e6).toFixed(6).replace(/0{1,5}$/, "")} s`;
}

const view = { axis: "turns", from: 0, to: 1, top: 0, chosen: -1, arrows: true, found: [] };

function x(n) {
  return axes[view.axis].of[n];
}

function all() {
  const last = lines.length - 1;
  const [from, to] = last < 0 ? [0, 1] : [x(0), x(last)];
  const room = (to - from) * 0.02 || 0.5;
  [view.from, view.to] = [from - room, to + room];
}

// ---- Drawing ------------------------------------------------------------------------------------

const canvas = document.getElementById("lanes");
const stage = document.getElementById("stage");
const tip = document.getElementById("tip");
const details = document.getElementById("details");
const pen = canvas.getContext("2d");
const COLORS = ["paper", "ink", "faint", "rule", "stripe", "run", "ready", "blocked", "outside",
  "chosen", "span"];
let width = 0, height = 0, left = 120, bar = 26, tops = [], colors = {}, hatch = null;

function measure() {
  const scale = window.devicePixelRatio || 1;
  [width, height] = [stage.clientWidth, stage.clientHeight];
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const style = getComputedStyle(document.documentElement);
  for (const name of COLORS) {
    colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  left = width < 600 ? 84 : 150;
  const room = height - RULER - below.reduce((sum, each) => sum + each, 0);
  bar = Math.max(26, Math.min(44, Math.floor(room / lanes.length)));
  tops = [0];
  for (const each of below) tops.push(tops.at(-1) + bar + each);
  hatch = hatched(colors.ready);
  // At once: to set its size has emptied the canvas.
  paint();
}

function hatched(color) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const it = tile.getContext("2d");
  it.strokeStyle = color;
  it.lineWidth = 1.6;
  it.beginPath();
  for (const d of [-3, 3, 9]) {
    it.moveTo(d - 3, 6.5 + 0);
    it.lineTo(d + 4, -0.5);
  }
  it.stroke();
  return pen.createPattern(tile, "repeat");
}

function px(value) {
  return left + ((value - view.from) / (view.to - view.from)) * (width - left);
}

function laneTop(n) {
  return RULER + tops[n] - view.top;
}

// The lane at a height of the whole picture.
function laneAt(y) {
  return firstOf(tops, (top) => top > y) - 1;
}

let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    paint();
  });
}

function paint() {
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const first = Math.max(0, laneAt(view.top));
  const last = Math.min(lanes.length - 1, laneAt(view.top + height - RULER));
  for (let n = first; n <= last; n++) background(n);
  grid();
  pen.save();
  pen.beginPath();
  pen.rect(left, RULER, width - left, height - RULER);
  pen.clip();
  for (let n = first; n <= last; n++) {
    lane(n);
    said(n);
  }
  found();
  if (view.arrows) wakes(first, last);
  if (view.chosen >= 0) causes(view.chosen);
  pen.restore();
  for (let n = first; n <= last; n++) label(n);
  ruler();
}

function background(n) {
  if (n % 2) {
    pen.fillStyle = colors.stripe;
    pen.fillRect(0, laneTop(n), width, bar + below[n]);
  }
}

function label(n) {
  const y = laneTop(n), high = bar + below[n];
  if (y + high < RULER) return;
  pen.fillStyle = n % 2 ? colors.stripe : colors.paper;
  pen.fillRect(0, y, left - 1, high);
  const chosen = view.chosen >= 0 && lanes[n].id === taskOf[view.chosen];
  pen.fillStyle = chosen ? colors.chosen : colors.ink;
  pen.textAlign = "left";
  const text = n ? `${lanes[n].id} ${lanes[n].name}` : "kernel";
  pen.fillText(shortened(text, left - 18), 10, y + bar / 2);
}

function shortened(text, most) {
  if (pen.measureText(text).width <= most) return text;
  while (text && pen.measureText(text + "…").width > most) text = text.slice(0, -1);
  return text + "…";
}

// Steps of 1, 2 or 5 that leave room for their labels.
function step() {
  const least = ((view.to - view.from) / (width - left)) * (view.axis === "time" ? 110 : 80);
  const ten = 10 ** Math.floor(Math.log10(least));
  const found = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= least);
  return Math.max(found, axes[view.axis].step);
}

function grid() {
  const by = step();
  pen.strokeStyle = colors.rule;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let value = Math.ceil(view.from / by) * by; value <= view.to; value += by) {
    const at = Math.round(px(value)) + 0.5;
    if (at < left) continue;
    pen.moveTo(at, RULER);
    pen.lineTo(at, height);
  }
  pen.moveTo(left - 0.5, 0);
  pen.lineTo(left - 0.5, height);
  pen.stroke();
}

function ruler() {
  const by = step();
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, width, RULER);
  pen.fillStyle = colors.faint;
  pen.textAlign = "left";
  for (let value = Math.ceil(view.from / by) * by; value <= view.to; value += by) {
    const at = px(value);
    const text = axes[view.axis].label(value);
    if (value >= 0 && at >= left - 1 && at + 3 + pen.measureText(text).width < width) {
      pen.fillText(text, at + 3, RULER / 2);
    }
  }
  pen.fillRect(0, RULER - 1, width, 1);
}

// The first of a sorted list for which `is` holds.
function firstOf(list, is) {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (is(list[middle])) to = middle;
    else from = middle + 1;
  }
  return from;
}

function lane(n) {
  const { pieces, events, end } = lanes[n];
  const y = laneTop(n), middle = y + bar / 2;
  const from = firstOf(pieces, (piece) => x(piece.to) >= view.from);
  let [lastRun, lastReady] = [-9, -9];
  for (let p = from; p < pieces.length && x(pieces[p].from) <= view.to; p++) {
    const { state, from, to } = pieces[p];
    const a = Math.max(px(x(from)), left - 4), b = Math.min(px(x(to)), width + 4);
    if (state === BLOCKED) {
      pen.fillStyle = colors.blocked;
      pen.fillRect(a, middle - 1, Math.max(b - a, 1), 2);
      waits(lines[from], Math.max(a, left), b, middle);
    } else if (state === READY) {
      if (b < lastReady + 1) continue;
      lastReady = b;
      pen.fillStyle = hatch;
      pen.fillRect(a, y + 7, Math.max(b - a, 3), bar - 14);
      pen.strokeStyle = colors.ready;
      pen.lineWidth = 1;
      pen.strokeRect(a + 0.5, y + 7.5, Math.max(b - a - 1, 2), bar - 15);
    } else {
      // Many that fall on one point are drawn once.
      if (b < lastRun + 1) continue;
      lastRun = Math.max(b, a + 3);
      pen.fillStyle = colors.run;
      pen.fillRect(a, y + 4, Math.max(b - a, 3), bar - 8);
      if (b - a > 24) marks(events, from, to, y);
    }
  }
  if (end >= 0 && x(end) >= view.from && x(end) <= view.to) {
    const a = px(x(end));
    pen.strokeStyle = colors.ink;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (const d of [-3, 3]) {
      pen.moveTo(a - 3, middle + d);
      pen.lineTo(a + 3, middle - d);
    }
    pen.stroke();
  }
  if (!n) outside(events, middle);
}

// What a task waits for, where there is room to say it.
function waits(line, a, b, middle) {
  if (b - a < 70) return;
  const what = / block +(\S+(?: [^= ]+(?= |$))*)/.exec(line);
  if (!what) return;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  const text = shortened(what[1], b - a - 12);
  if (text.length > 3) {
    const half = pen.measureText(text).width / 2 + 4;
    pen.clearRect((a + b) / 2 - half, middle - 2, half * 2, 4);
    pen.fillStyle = colors.faint;
    pen.fillText(text, (a + b) / 2, middle + 1);
  }
  pen.font = "12px system-ui, sans-serif";
}

// What the program says of itself: its spans as thin bars, its notes as marks, with their names
// where there is room.
function said(n) {
  const { spans, notes } = lanes[n];
  const y = laneTop(n) + bar - 3;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  for (const { name, from, to, row } of spans) {
    if (x(to) < view.from || x(from) > view.to) continue;
    const a = Math.max(px(x(from)), left - 4), b = Math.min(px(x(to)), width + 4);
    const top = y + row * ROW;
    pen.fillStyle = colors.span;
    pen.globalAlpha = 0.22;
    pen.fillRect(a, top, Math.max(b - a, 2), ROW - 2);
    pen.globalAlpha = 1;
    pen.fillRect(a, top, 2, ROW - 2);
    write(name, Math.max(a, left) + 5, Math.min(b, width) - 3, top);
  }
  const shown = notes.filter(({ n }) => x(n) >= view.from && x(n) <= view.to);
  for (const [i, { n, text }] of shown.entries()) {
    const a = px(x(n)), next = shown[i + 1], end = next ? px(x(next.n)) - 5 : width;
    pen.fillStyle = colors.span;
    pen.beginPath();
    for (const [dx, dy] of [[-3, 6], [0, 2], [3, 6], [0, 10]]) pen.lineTo(a + dx, y + dy);
    pen.fill();
    write(text, a + 5, end, y);
  }
  pen.font = "12px system-ui, sans-serif";
}

function write(text, from, to, top) {
  if (to - from < 18) return;
  pen.fillStyle = colors.ink;
  pen.fillText(shortened(text, to - from), from, top + ROW / 2 - 1);
}

// The events of a run, as ticks in its bar.
function marks(events, from, to, y) {
  pen.fillStyle = colors.paper;
  let last = px(x(from));
  for (let e = firstOf(events, (n) => n > from); e < events.length && events[e] < to; e++) {
    const a = px(x(events[e]));
    if (a < last + 4) continue;
    last = a;
    pen.fillRect(a, y + 8, 1, bar - 16);
  }
}

function outside(events, middle) {
  let last = -9;
  const first = firstOf(events, (n) => x(n) >= view.from);
  for (let e = first; e < events.length && x(events[e]) <= view.to; e++) {
    const n = events[e], a = px(x(n));
    if (a < last + 1) continue;
    last = a;
    const comes = / (arrive|fire) /.test(lines[n]);
    pen.fillStyle = comes ? colors.outside : colors.blocked;
    pen.beginPath();
    pen.arc(a, middle, comes ? 4 : 2, 0, 7);
    pen.fill();
  }
}

function point(n) {
  return [px(x(n)), laneTop(laneOf.get(taskOf[n])) + bar / 2];
}

function arrow(from, to, color, thick) {
  const [[a, b], [c, d]] = [point(from), point(to)];
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = thick;
  const bend = Math.max(6, Math.min(40, Math.abs(c - a) / 2));
  pen.beginPath();
  pen.moveTo(a, b);
  pen.bezierCurveTo(a + bend, b, c - bend, d, c, d);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(c, d);
  pen.lineTo(c - 6, d - 3);
  pen.lineTo(c - 6, d + 3);
  pen.fill();
}

// From what woke a task to its run, where there are few enough to tell them apart.
function wakes(first, last) {
  const shown = [];
  for (let n = first; n <= last; n++) {
    const { pieces } = lanes[n];
    const from = firstOf(pieces, (piece) => x(piece.to) >= view.from);
    for (let p = from; p < pieces.length && x(pieces[p].from) <= view.to; p++) {
      if (pieces[p].state === RUN) shown.push(pieces[p].from);
      if (shown.length > 120) return;
    }
  }
  pen.globalAlpha = 0.55;
  for (const run of shown) {
    const wake = behind[run], from = wake < 0 ? -1 : behind[wake];
    if (from >= 0 && taskOf[from] !== taskOf[run]) arrow(from, run, colors.outside, 1);
  }
  pen.globalAlpha = 1;
}

function chain(n) {
  const found = [];
  for (; n >= 0; n = behind[n]) found.push(n);
  return found;
}

function causes(n) {
  const all = chain(n);
  for (let i = all.length - 1; i > 0; i--) arrow(all[i], all[i - 1], colors.chosen, 2);
  for (const each of all) {
    const [a, b] = point(each);
    pen.fillStyle = colors.chosen;
    pen.beginPath();
    pen.arc(a, b, each === n ? 5 : 3.5, 0, 7);
    pen.fill();
  }
}

function found() {
  pen.fillStyle = colors.outside;
  let last = -9;
  for (const n of view.found) {
    const [a, b] = point(n);
    if (a < left || a > width || b < RULER || (a < last + 2 && lanes.length < 2)) continue;
    last = a;
    pen.fillRect(a - 1, b + bar / 2 - 5, 3, 4);
  }
}

