// Waits: in the bar of a task while it has one, and in rows below it while it has several. Also the
// lateness of timers.

const WELL = 0, TIMEOUT = 1, CANCELLED = 2, WITHDRAWN = 3, UNENDED = 4;
const WAITS = 6;

// Puts the waits of a lane that are open at the same time into separate rows.
function layWaits(waits) {
  let rows = 0;
  for (let first = 0; first < waits.length;) {
    let [next, to] = [first + 1, waits[first].to];
    for (; next < waits.length && waits[next].from < to; next++) to = Math.max(to, waits[next].to);
    if (next - first > 1) {
      const ends = [];
      for (const wait of waits.slice(first, next)) {
        let row = 0;
        while (ends[row] > wait.from) row++;
        ends[row] = wait.to;
        wait.row = Math.min(row, WAITS - 1);
      }
      rows = Math.max(rows, ends.length);
    }
    first = next;
  }
  return Math.min(rows, WAITS);
}

// The late timers, by the line that set each. The timer of a wait or of a scope is marked there.
const lates = new Map(trace.lates.map(([set, fired, micros]) => [set, { fired, micros }]));
for (const lane of lanes) Object.assign(lane, { waits: [], waitRows: 0 });
for (const [from, to, ended] of trace.waits) {
  lanes[laneOf.get(taskOf[from])].waits.push({ from, to, ended, row: -1 });
}
for (const lane of lanes) {
  lane.waitRows = layWaits(lane.waits);
  reach(lane.waits);
}

// Returns the lines that opened the open waits of a lane at a line; the last `most` of them.
function openWaits({ waits }, n, most = Infinity) {
  const open = [];
  for (let w = firstOf(waits, ({ from }) => from > n) - 1; w >= 0 && open.length < most; w--) {
    const { from, to, ended } = waits[w];
    if (to > n || ended === UNENDED) open.unshift(from);
  }
  return open;
}

// Returns the operation of a line's wait in the words of the log: `sleep 2s`, `c1 read`.
function waitName(n) {
  const { op, word, number } = readLine(line(n));
  if (word(0) === "parked") {
    const many = number("n"), [open] = openWaits(lanes[laneOf.get(taskOf[n])], n, 1);
    return many === 1 && open !== undefined ? waitName(open) : `${many} waits`;
  }
  return op.replace(/^io | \S+=\S+/g, "");
}

// Draws the waits of a lane: the ends of waits in its bar at `middle`, the others in rows from `y`.
function waits(n, middle, y) {
  pen.font = SMALL;
  const last = [];
  for (const { from, to, ended, row } of inView(lanes[n].waits)) {
    const a = Math.max(px(x(from)), left - 4), b = Math.min(px(x(to)), width + 4);
    if (b < (last[row] ?? -9) + 1) continue;
    last[row] = b;
    const at = row < 0 ? middle : y + row * ROW + ROW / 2;
    if (row >= 0) {
      const room = ended === WELL || ended === WITHDRAWN ? 8 : 24;
      thread(a, b, at);
      const text = b - a > 40 ? waitName(from) : "";
      labelled(text, Math.max(a, left) + 6, Math.min(b, width) - room, at);
    }
    late(lates.get(from), at, row < 0 ? 9 : 0);
    ending(ended, a, b, at, row >= 0);
  }
  pen.font = PLAIN;
}

function thread(a, b, middle) {
  pen.fillStyle = colors.blocked;
  pen.fillRect(a, middle - 1, Math.max(b - a, 1), 2);
  pen.fillRect(a, middle - 4, 1.5, 8);
}

// Draws the end of a wait.
function ending(ended, a, b, middle, inRow) {
  if (ended === WELL && inRow) {
    pen.fillStyle = colors.blocked;
    pen.beginPath();
    pen.arc(b - 2.5, middle, 3, 0, 7);
    pen.fill();
  } else if (ended === WITHDRAWN) {
    pen.strokeStyle = colors.faint;
    pen.fillStyle = colors.paper;
    pen.lineWidth = 1.25;
    pen.beginPath();
    pen.arc(b - 3, middle, 3, 0, 7);
    pen.fill();
    pen.stroke();
  } else if (ended === TIMEOUT || ended === CANCELLED) {
    broken(a, b, middle);
  } else if (ended === UNENDED && inRow) {
    onwards(b, middle, colors.blocked);
  }
}

// Draws the end of an interrupted wait: a zigzag and a flag, as far as there is room.
function broken(a, b, middle) {
  const from = b - 26;
  if (from > a) {
    erase(from, middle - 2, 16, 4);
    pen.strokeStyle = colors.hit;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let n = 0; n <= 4; n++) pen.lineTo(from + n * 4, middle + (n % 4 ? (n % 2 ? -3.5 : 3.5) : 0));
    pen.stroke();
  }
  if (b - a > 9) flag(b - 1, middle, true);
  else {
    pen.fillStyle = colors.hit;
    pen.fillRect(b - 2, middle - 5, 2, 10);
  }
}

function labelled(text, from, to, middle) {
  const shown = whole(text, to - from);
  if (!shown) return;
  pen.textAlign = "left";
  erase(from - 3, middle - 2, pen.measureText(shown).width + 6, 4);
  pen.fillStyle = colors.faint;
  pen.fillText(shown, from, middle + 0.5);
}

// Returns the place of a time on any axis: between the events around it.
function xOfTime(micros) {
  const after = firstOf(at, (time) => time >= micros);
  if (after === 0 || after === count) return x(Math.min(after, count - 1));
  const share = (micros - at[after - 1]) / (at[after] - at[after - 1]);
  return x(after - 1) + share * (x(after) - x(after - 1));
}

// Draws the part of a wait or a scope after its deadline, with a label `below` it.
function late(timer, y, below) {
  if (!timer) return;
  const { fired, micros } = timer;
  const b = px(x(fired)), a = px(xOfTime(at[fired] - micros));
  if (b < left || a > width || b - a < 2) return;
  pen.fillStyle = colors.late;
  pen.fillRect(a, y - 2, b - a, 4);
  pen.fillRect(a, y - 5, 1.5, 10);
  const from = Math.max(a, left), room = Math.min(b, width) - from - 24;
  const fits = (text) => pen.measureText(text).width <= room;
  const text = [`${span(micros)} late`, `+${span(micros)}`].find(fits);
  if (!text) return;
  const long = pen.measureText(text).width, middle = from + (room + 12) / 2;
  if (!below) erase(middle - long / 2 - 3, y - 6, long + 6, 12);
  pen.textAlign = "center";
  pen.fillStyle = colors.late;
  pen.fillText(text, middle, y + below + 0.5);
}

// Returns a duration in the words of the log: `1s`, `12.5ms`, `64us`.
function span(micros) {
  const number = (of, digits) => of.toFixed(digits).replace(/\.?0+$/, "");
  if (!micros) return "0s";
  if (micros >= 100000) return `${number(micros / 1e6, 6)}s`;
  return micros >= 1000 ? `${number(micros / 1e3, 3)}ms` : `${micros}us`;
}
