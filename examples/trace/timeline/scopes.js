// Scopes: brackets above the bar of a task, around their contents.

const BRACKET = 15, BRACKETS = 8;
const OK = 0, DEADLINE = 1, INTERRUPT = 2, OPEN = 3;

// Puts the scopes of a lane, in the order of their opening, into the first free rows. An inner
// scope is below its outer one. If there are too many, the rest share the last row.
function layScopes(scopes) {
  const rows = [];
  for (const scope of scopes) {
    let row = 0;
    while (rows[row] && rows[row].to > scope.from) row++;
    const above = row ? rows[row - 1] : null;
    scope.outer = above && above.to >= scope.to ? above : null;
    scope.row = Math.min(row, BRACKETS - 1);
    rows[row] = scope;
  }
  return Math.min(rows.length, BRACKETS);
}

for (const lane of lanes) Object.assign(lane, { scopes: [], brackets: 0 });
for (const [from, to, left] of trace.scopes) {
  lanes[laneOf.get(taskOf[from])].scopes.push({ from, to, left, a: 0, b: 0 });
}
for (const lane of lanes) {
  lane.brackets = layScopes(lane.scopes);
  reach(lane.scopes);
}

// Returns the height of the space above the bar of a lane.
function above(n) {
  return lanes[n].brackets * BRACKET;
}

// `timeout 1s`, `shield`, `guard d1`, `branch`
function scopeName(n) {
  const op = readLine(line(n)).op.split(" ");
  return `${op[0].replace("set_", "")} ${op[1] ?? ""}`.trim();
}

// Draws the brackets of a lane, from the height `y` down to the height `end`.
function scopes(n, y, end) {
  pen.font = SMALL;
  let last = [];
  for (const scope of inView(lanes[n].scopes)) {
    const { from, to, left: how, row, outer } = scope;
    // Those that open or close together still nest.
    scope.a = Math.max(px(x(from)), outer ? outer.a + 3 : -Infinity);
    scope.b = Math.min(px(x(to)), outer ? outer.b - 3 : Infinity);
    if (scope.b < scope.a) scope.a = scope.b = (scope.a + scope.b) / 2;
    // Of many runs on one point, draw one.
    if (scope.b < (last[row] ?? -9) + 1) continue;
    last[row] = scope.b;
    bracket(scope, y + row * BRACKET + 7, end);
    const text = scope.b - scope.a > 24 ? scopeName(from) : "";
    const timer = lates.get(from), top = y + row * BRACKET + 7;
    const right = timer ? px(xOfTime(at[timer.fired] - timer.micros)) : scope.b;
    const flagged = how === DEADLINE || how === INTERRUPT;
    named(text, Math.max(scope.a, left) + 8, Math.min(right, width) - (flagged ? 15 : 6), top);
  }
  pen.font = PLAIN;
}

// Writes a name on a line. Without room for all of it, prefers its second word, which says more.
function named(text, from, to, middle) {
  const fits = (part) => part && pen.measureText(part).width <= to - from;
  const shown = [text, text.split(" ")[1]].find(fits) ?? "";
  if (!shown) return;
  const long = pen.measureText(shown).width;
  erase(from - 3, middle - 6, long + 6, 12);
  pen.textAlign = "left";
  pen.fillStyle = colors.scope;
  pen.fillText(shown, from, middle + 0.5);
}

function bracket({ from, a, b, left: how }, top, end) {
  const kind = /trap +(\w+)/.exec(line(from))?.[1];
  pen.strokeStyle = colors.scope;
  pen.lineWidth = kind === "shield" ? 3 : 1.25;
  pen.setLineDash(kind === "branch" ? [2, 2] : []);
  const [from_, to_] = [Math.round(a) + 0.5, Math.round(b) + 0.5];
  pen.beginPath();
  pen.moveTo(from_, end);
  pen.lineTo(from_, top);
  pen.lineTo(to_, top);
  if (how !== OPEN) pen.lineTo(to_, end);
  pen.stroke();
  pen.setLineDash([]);
  late(lates.get(from), top, 0);
  if (how === OPEN) onwards(b, top, colors.scope);
  if (how === DEADLINE) flag(b, top, true);
  if (how === INTERRUPT) flag(b, top, false);
}

// Draws an open end: the scope continues.
function onwards(a, b, color) {
  pen.strokeStyle = color;
  pen.beginPath();
  pen.moveTo(a - 5, b - 3);
  pen.lineTo(a, b);
  pen.lineTo(a - 5, b + 3);
  pen.stroke();
}

// Draws a "!" at the end by an interrupt: full if the deadline was due, otherwise hollow.
function flag(a, b, full) {
  pen.fillStyle = full ? colors.hit : colors.paper;
  pen.strokeStyle = colors.hit;
  pen.lineWidth = 1.25;
  pen.beginPath();
  pen.rect(a - 9, b - 6, 9, 12);
  pen.fill();
  pen.stroke();
  pen.fillStyle = full ? colors.paper : colors.hit;
  pen.fillRect(a - 5.5, b - 4, 2, 5);
  pen.fillRect(a - 5.5, b + 2, 2, 2);
}
