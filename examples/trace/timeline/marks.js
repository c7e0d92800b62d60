// One lane in detail: the pieces of a life, its waits, and the notes of the program.

// Draws the lane `n`, with its bar from `y`.
function detail(n, y) {
  ground = rowOf[n] % 2 ? colors.stripe : colors.paper;
  life(n, y);
  waits(n, y + bar / 2, y + bar - 3);
  scopes(n, y - above(n), y + bar - 2);
  said(n, y + bar - 3 + lanes[n].waitRows * ROW);
}

function life(n, y) {
  const lane = lanes[n], { state, from, to, events, end } = lane;
  const middle = y + bar / 2;
  let [lastRun, lastReady] = [-9, -9];
  const first = firstOf(to, (n) => x(n) >= view.from);
  for (let p = first; p < from.length && x(from[p]) <= view.to; p++) {
    const a = Math.max(px(startOf(lane, p)), left - 4), b = Math.min(px(x(to[p])), width + 4);
    // A wait that was over before the long run that set it has no length on this axis.
    if (state[p] !== RUN && view.axis === "time" && pieceLength(lane, p) === 0 && x(to[p]) > x(from[p])) continue;
    if (state[p] === BLOCKED) {
      pen.fillStyle = colors.blocked;
      pen.fillRect(a, middle - 1, Math.max(b - a, 1), 2);
      inBar(n, from[p], Math.max(a, left), Math.min(b, width), middle);
    } else if (state[p] === READY) {
      if (b < lastReady + 1) continue;
      lastReady = b;
      pen.fillStyle = hatch;
      pen.fillRect(a, y + 7, Math.max(b - a, 3), bar - 14);
      pen.strokeStyle = colors.ready;
      pen.lineWidth = 1;
      pen.strokeRect(a + 0.5, y + 7.5, Math.max(b - a - 1, 2), bar - 15);
    } else {
      // Of many runs on one point, draw one.
      if (b < lastRun + 1) continue;
      lastRun = Math.max(b, a + 3);
      const ran = isMeasured() ? 0 : pieceLength(lane, p), isKnown = ran !== null;
      const stop = ran ? Math.min(px(x(from[p]) + ran), width + 4) : isKnown ? b : a;
      pen.fillStyle = colors.run;
      pen.fillRect(a, y + 4, Math.max(stop - a, 3), bar - 8);
      if (!isKnown) unsure(a, b, y);
      if (b - a > 24) ticks(events, from[p], to[p], y);
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

// A run of unknown length: where it may have ended.
function unsure(a, b, y) {
  pen.strokeStyle = colors.faint;
  pen.lineWidth = 1;
  pen.setLineDash([2, 3]);
  pen.strokeRect(a + 0.5, y + 7.5, Math.max(b - a - 1, 2), bar - 15);
  pen.setLineDash([]);
}

// Writes the event of a wait above the line, if there is room and no row has it.
function inBar(n, block, a, b, middle) {
  if (b - a < 30) return;
  const { waits } = lanes[n];
  const wait = waits[firstOf(waits, ({ from }) => from >= block)];
  if (wait?.from === block && wait.row >= 0) return;
  pen.font = SMALL;
  const text = whole(waitName(block), b - a - 8);
  pen.textAlign = "center";
  pen.fillStyle = colors.faint;
  pen.fillText(text, (a + b) / 2, middle - 9);
  pen.font = PLAIN;
}

// Draws the program's own marks: spans as thin bars, and notes as marks, with their names if there
// is room.
function said(n, y) {
  const { spans, notes } = lanes[n];
  pen.font = SMALL;
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
    write(name, Math.max(a, left) + 5, Math.min(b, width) - 3, top + ROW / 2 - 1);
  }
  const shown = notes.filter(({ n }) => x(n) >= view.from && x(n) <= view.to);
  for (const [i, { n, text }] of shown.entries()) {
    const a = px(x(n)), next = shown[i + 1], end = next ? px(x(next.n)) - 5 : width;
    pen.fillStyle = colors.span;
    pen.beginPath();
    for (const [dx, dy] of [[-3, 6], [0, 2], [3, 6], [0, 10]]) pen.lineTo(a + dx, y + dy);
    pen.fill();
    write(text, a + 5, end, y + ROW / 2 - 1);
  }
  pen.font = PLAIN;
}

// Draws the events of a run as ticks in its bar.
function ticks(events, from, to, y) {
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
    const comes = ["arrive", "fire"].includes(verbOf(n));
    pen.fillStyle = comes ? colors.outside : colors.blocked;
    pen.beginPath();
    pen.arc(a, middle, comes ? 4 : 2, 0, 7);
    pen.fill();
  }
}
