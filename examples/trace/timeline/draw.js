// The frame of a paint: sizes, colours, the lanes in view.

const RULER = 26;
const canvas = document.getElementById("lanes");
const stage = document.getElementById("stage");
const pen = canvas.getContext("2d");
const COLORS = ["paper", "ink", "faint", "rule", "stripe", "run", "ready", "blocked", "outside",
  "chosen", "span", "scope", "hit", "late"];
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
  const room = height - RULER - lanes.reduce((sum, _, n) => sum + above(n) + below(n), 0);
  bar = Math.max(26, Math.min(44, Math.floor(room / lanes.length)));
  tops = [0];
  lanes.forEach((_, n) => tops.push(tops.at(-1) + above(n) + bar + below(n)));
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

function laneTop(n) {
  return RULER + tops[n] - view.top;
}

// Above the bar are the scopes.
function barTop(n) {
  return laneTop(n) + above(n);
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
  pen.font = PLAIN;
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
    detail(n, barTop(n));
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
    pen.fillRect(0, laneTop(n), width, above(n) + bar + below(n));
  }
}

function label(n) {
  const y = laneTop(n), high = above(n) + bar + below(n);
  if (y + high < RULER) return;
  pen.fillStyle = n % 2 ? colors.stripe : colors.paper;
  pen.fillRect(0, y, left - 1, high);
  const chosen = view.chosen >= 0 && lanes[n].id === taskOf[view.chosen];
  pen.fillStyle = chosen ? colors.chosen : colors.ink;
  pen.textAlign = "left";
  const text = n ? `${lanes[n].id} ${lanes[n].name}` : "kernel";
  pen.fillText(wholeName(text, left - 18), 10, barTop(n) + bar / 2);
}

function scroll(by) {
  const most = Math.max(0, tops.at(-1) + RULER + 8 - height);
  view.top = Math.min(most, Math.max(0, view.top + by));
  draw();
}
