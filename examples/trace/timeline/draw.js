// The frame of a paint: sizes, colours, the lanes in view.

const RULER = 26, BAND = 22, STRIP = 3 * BAND + 4;
// The lanes begin below the ruler and the strip.
const TOP = RULER + STRIP;
// The smallest and the largest height of the head of a group.
const GROUP = [46, 110];
const canvas = document.getElementById("lanes");
const stage = document.getElementById("stage");
const pen = canvas.getContext("2d");
const COLORS = ["paper", "ink", "faint", "rule", "stripe", "run", "ready", "blocked", "outside",
  "chosen", "span", "scope", "hit", "lock", "late", "soft", "grain", "rest"];
let width = 0, height = 0, left = 120, bar = 26, groupHigh = 46, tops = [], colors = {}, hatch = null, tint = null;

function measure() {
  const scale = window.devicePixelRatio || 1;
  [width, height] = [stage.clientWidth, stage.clientHeight];
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const style = getComputedStyle(document.documentElement);
  const before = colors.paper;
  for (const name of COLORS) {
    colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  if (colors.paper !== before) overview.forget();
  left = width < 600 ? 104 : 150;
  const rest = ({ lane }) => (lane < 0 ? 0 : above(lane) + below(lane));
  const room = height - TOP - rows.reduce((sum, row) => sum + rest(row), 0);
  const heads = rows.filter(({ group }) => group).length, others = rows.length - heads;
  bar = Math.max(26, Math.min(44, Math.floor((room - heads * GROUP[0]) / others)));
  const each = Math.floor((room - others * bar) / heads);
  groupHigh = Math.max(GROUP[0], Math.min(GROUP[1], each));
  tops = [0];
  for (const row of rows) tops.push(tops.at(-1) + (row.group ? groupHigh : bar + rest(row)));
  hatch = hatched(colors.ready, null, 1.6);
  // Columns one pixel wide would look like noise of strong lines.
  tint = hatched(colors.grain, colors.soft, 1);
  // Paint at once, because setting its size has emptied the canvas.
  paint();
}

function hatched(color, ground, thick) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const it = tile.getContext("2d");
  if (ground) {
    it.fillStyle = ground;
    it.fillRect(0, 0, 6, 6);
  }
  it.strokeStyle = color;
  it.lineWidth = thick;
  it.beginPath();
  for (const d of [-3, 3, 9]) {
    it.moveTo(d - 3, 6.5 + 0);
    it.lineTo(d + 4, -0.5);
  }
  it.stroke();
  return pen.createPattern(tile, "repeat");
}

function rowTop(r) {
  return TOP + tops[r] - view.top;
}

// Above the bar are the scopes.
function barTop(n) {
  const r = rowOf[n];
  return rowTop(r) + (rows[r].group ? 0 : above(n));
}

// The height of a lane's events: in the middle of its bar, or of its group.
function middleOf(n) {
  return barTop(n) + (rows[rowOf[n]].group ? groupHigh : bar) / 2;
}

// The row at a height of the whole picture.
function rowAt(y) {
  return firstOf(tops, (top) => top > y) - 1;
}

const overview = Ribbon(document.getElementById("overview"), {
  isSmall: true,
  window: () => [view.from, view.to],
  playhead: () => (view.chosen < 0 ? null : x(view.chosen)),
  go: (value) => pan(value - (view.from + view.to) / 2),
});

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
  pen.font = PLAIN;
  pen.textBaseline = "middle";
  const first = Math.max(0, rowAt(view.top));
  const last = Math.min(rows.length - 1, rowAt(view.top + height - TOP));
  for (let r = first; r <= last; r++) background(r);
  grid();
  pen.save();
  pen.beginPath();
  pen.rect(left, TOP, width - left, height - TOP);
  pen.clip();
  hang();
  const clear = [];
  for (let r = first; r <= last; r++) if (drawRow(r)) clear.push(rows[r].lane);
  found();
  if (view.arrows) {
    wakes(clear);
    locks();
  }
  if (view.chosen >= 0) causes(view.chosen);
  clear.forEach(lengths);
  hangSaid();
  veil();
  pen.restore();
  for (let r = first; r <= last; r++) label(r);
  strip();
  ruler();
  drawRange();
  overview.paint();
}

// Fades what is before the first line of a dump: of the lines there, its head has only those that were in force.
function veil() {
  const edge = trace.begins ? Math.min(px(x(trace.begins)), width) : left;
  if (edge <= left) return;
  pen.fillStyle = colors.paper;
  pen.globalAlpha = 0.75;
  pen.fillRect(left, TOP, edge - left, height - TOP);
  pen.globalAlpha = 1;
  pen.fillStyle = colors.faint;
  pen.textAlign = "right";
  pen.fillText(whole(`before ${firstOfDump()}: only what was still in force`, edge - left - 16), edge - 8, TOP + 9);
}

// Draws a row. Returns whether it shows each event.
function drawRow(r) {
  const { lane, group } = rows[r], y = rowTop(r), high = tops[r + 1] - tops[r];
  if (group) {
    densityOfGroup(group, y, high);
    crowdOf(group, y, high);
  } else if (lane ? isDense(lane) : kernelIsDense()) {
    if (lane) densityOfLane(lane, y, high);
    else densityOfKernel(y, high);
  } else {
    detail(lane, barTop(lane));
    return true;
  }
  return false;
}

function background(r) {
  if (r % 2) {
    pen.fillStyle = colors.stripe;
    pen.fillRect(0, rowTop(r), width, tops[r + 1] - tops[r]);
  }
}

function label(r) {
  const y = rowTop(r), high = tops[r + 1] - tops[r], { lane, group } = rows[r];
  if (y + high < TOP) return;
  pen.fillStyle = r % 2 ? colors.stripe : colors.paper;
  pen.fillRect(0, y, left - 1, high);
  const lanesChosen = [view.chosen < 0 ? -1 : laneOfLine[view.chosen], laneOf.get(view.task || -1)];
  const isChosen = lanesChosen.some((n) => n >= 0 && rowOf[n] === r);
  pen.fillStyle = isChosen ? colors.chosen : colors.ink;
  pen.textAlign = "left";
  // The tasks of an open group are below its head.
  const from = lane > 0 && groupOf[lane] ? 22 : 10;
  const middle = group ? y + high / 2 : barTop(lane) + bar / 2;
  pen.fillText(wholeName(rowName(rows[r]), left - from - 8), from, middle);
}

function scroll(by) {
  const most = Math.max(0, tops.at(-1) + TOP + 8 - height);
  view.top = Math.min(most, Math.max(0, view.top + by));
  draw();
}
