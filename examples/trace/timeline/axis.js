// The horizontal axis: the position of each event, and the part in view.

// By turns: each turn has a column, and the events of the turn are spread over it.
const byTurn = new Float64Array(count);
for (let from = 0; from < count;) {
  let to = from;
  while (to < count && turn[to] === turn[from]) to++;
  for (let n = from; n < to; n++) byTurn[n] = turn[from] + (n - from) / (to - from);
  from = to;
}
const axes = {
  turns: { of: byTurn, label: (x) => `turn ${Math.floor(x)}`, step: 1 },
  time: { of: at, label: shortSeconds, step: 0 },
  events: {
    of: Float64Array.from({ length: count }, (_, n) => n),
    label: (x) => `#${seqOf[Math.max(0, Math.min(count - 1, Math.round(x)))] ?? 0}`,
    step: 1,
  },
};
// On a virtual clock a run takes no time, unless the program has advanced the clock.
const takesTime = trace.clock === "real" || lanes.some(({ state, from, to }) =>
  from.some((place, p) => state[p] === RUN && at[to[p]] > at[place]));
// On a virtual clock time can also pass between runs only.
const timePasses = count > 0 && at[count - 1] > at[trace.begins];
// The lengths of long runs that the log reports, by the places of their `run` lines.
const longRuns = new Map(trace.longs.map(([run, , micros]) => [run, micros]));

// Whether the positions of lines show how long runs were. Only a timed log has a reading of the
// clock at both ends of a run. In another log, the time may belong to other runs.
function isMeasured(axis = view.axis) {
  return axis !== "time" || trace.timed || !takesTime;
}

// The value of the axis at which a piece begins.
function startOf(lane, p) {
  return view.axis === "time" ? timeOfStart(lane, p) : x(lane.from[p]);
}

// The time at which a piece begins. By the times of the lines, the piece after a long run may begin
// before the run has ended.
function timeOfStart({ state, from }, p) {
  if (trace.timed || !longRuns.size) return at[from[p]];
  let run = p;
  while (run > 0 && state[run] !== RUN) run--;
  return run < p ? Math.max(at[from[p]], at[from[run]] + (longRuns.get(from[run]) ?? 0)) : at[from[p]];
}

// The length of the piece `p` of a lane by its lines. Of a run, null if the log does not have it.
function pieceLength(lane, p) {
  const { state, from, to } = lane, micros = at[to[p]] - at[from[p]];
  if (trace.timed || !takesTime) return micros;
  if (state[p] !== RUN) return Math.max(0, at[to[p]] - timeOfStart(lane, p));
  return longRuns.get(from[p]) ?? (micros ? null : 0);
}

const view = {
  axis: takesTime ? "time" : "turns", from: 0, to: 1, top: 0,
  chosen: -1, task: 0, arrows: true, tree: false, found: [], range: null,
};

function shortSeconds(micros) {
  return `${(micros / 1e6).toFixed(6).replace(/0{1,5}$/, "")} s`;
}

function x(n) {
  return axes[view.axis].of[n];
}

function all() {
  const last = count - 1;
  // The head of a dump can be hours older than the rest.
  const [from, to] = last < 0 ? [0, 1] : [x(trace.begins), x(last)];
  const room = (to - from) * 0.02 || 0.5;
  [view.from, view.to] = [from - room, to + room];
}

function px(value) {
  return left + ((value - view.from) / (view.to - view.from)) * (width - left);
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

function pan(by) {
  view.from += by;
  view.to += by;
  draw();
}

// If no event is in view, moves the view to the event that is nearest to a value.
function keepEvent(around) {
  const { of } = axes[view.axis], next = firstOf(of, (each) => each >= view.from);
  if (!count || of[next] <= view.to) return;
  const [near] = [next - 1, next].filter((n) => n >= 0 && n < count)
    .sort((a, b) => Math.abs(of[a] - around) - Math.abs(of[b] - around));
  const half = (view.to - view.from) / 2;
  [view.from, view.to] = [of[near] - half, of[near] + half];
}

function zoom(by, around = (view.from + view.to) / 2) {
  const least = view.axis === "time" ? 5 : 0.5;
  const whole = count ? x(count - 1) - x(0) + 1 : 1;
  const span = Math.min(Math.max((view.to - view.from) * by, least), whole * 1.5);
  const share = (around - view.from) / (view.to - view.from);
  [view.from, view.to] = [around - span * share, around + span * (1 - share)];
  keepEvent(around);
  draw();
}

// The place of an event for a value of the axis, with a fraction between two events; and back.
function placeAt(value) {
  const { of } = axes[view.axis], n = firstOf(of, (each) => each > value) - 1;
  if (n < 0 || n >= count - 1) return Math.min(Math.max(n, 0), count - 1);
  return n + (value - of[n]) / (of[n + 1] - of[n]);
}

function valueAt(place) {
  const { of } = axes[view.axis], n = Math.floor(place);
  return n >= count - 1 ? of[count - 1] : of[n] + (place - n) * (of[n + 1] - of[n]);
}

// Changes to the next axis. The view and the range stay on the same events.
function turnAxis() {
  const names = Object.keys(axes);
  const isAll = !count || (view.from <= x(trace.begins) && view.to >= x(count - 1));
  const ends = [view.from, view.to].map(placeAt), range = view.range?.map(placeAt);
  view.axis = names[(names.indexOf(view.axis) + 1) % names.length];
  if (!isAll) [view.from, view.to] = ends.map(valueAt);
  if (isAll || view.to <= view.from) all();
  if (range) select(...range.map(valueAt));
}
