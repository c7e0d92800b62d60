// A range of the axis, and the events in it.

const TOP_TASKS = 10;
const rangeBox = document.getElementById("range");

// Sets the two ends as values of the axis, in any order; null for no range.
function select(from, to) {
  view.range = from === null ? null : [from, to];
  rangeBox.hidden = !view.range;
  draw();
  if (view.range) tellRange();
}

// A dragged range is only drawn, because counting its lines takes longer than a frame.
function drag(from, to) {
  view.range = [from, to];
  draw();
}

// Sets one end of the range to the chosen line.
function selectEnd(which) {
  if (view.chosen < 0) return;
  const ends = view.range ?? [x(trace.begins), x(count - 1)].sort((a, b) => a - b);
  ends.sort((a, b) => a - b)[which] = x(view.chosen);
  if (ends[0] > ends[1]) ends[1 - which] = ends[which];
  select(...ends);
}

function zoomToRange() {
  if (!view.range) return;
  const [from, to] = ordered();
  if (to > from) [view.from, view.to] = [from, to];
  draw();
}

function ordered() {
  return view.range.toSorted((a, b) => a - b);
}

function drawRange() {
  if (!view.range) return;
  const [a, b] = ordered().map(px);
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, width - left, height);
  pen.clip();
  pen.fillStyle = colors.chosen;
  pen.globalAlpha = 0.1;
  pen.fillRect(a, RULER, b - a, height - RULER);
  pen.globalAlpha = 1;
  for (const edge of [a, b]) pen.fillRect(Math.round(edge), 0, 1.5, height);
  pen.restore();
}

// Returns a length on the axis in words.
function long(value) {
  if (view.axis === "time") return span(Math.round(value));
  const many = Math.round(value * 10) / 10;
  return `${many} ${many === 1 ? view.axis.slice(0, -1) : view.axis}`;
}

// Counts the lines of a range, its runs, and the bytes that were read and written.
function countLines(first, last) {
  let runs = 0, read = 0, written = 0;
  for (let n = first; n < last; n++) {
    const verb = verbOf(n);
    if (verb === "run") runs++;
    else if (verb === "io") {
      const [, way, many] = / (read|write) = (\d+)/.exec(line(n)) ?? [];
      if (way === "read") read += Number(many);
      if (way === "write") written += Number(many);
    }
  }
  return { runs, read, written };
}

// Returns the shares of the range for which a flow ran, was ready and was blocked.
function shares(flow, from, to) {
  const before = integral(flow, from);
  return integral(flow, to).map((sum, s) => sum - before[s]);
}

function rangeSays(from, to) {
  const { of } = axes[view.axis];
  const first = firstOf(of, (value) => value >= from), last = firstOf(of, (value) => value > to);
  const [run] = shares(everything, from, to);
  const tasks = [];
  for (let n = 1; n < lanes.length; n++) {
    const [run, ready, blocked] = shares(laneFlow(n), from, to);
    if (run + ready + blocked > 0) tasks.push({ n, run, ready, blocked });
  }
  tasks.sort((a, b) => b.run - a.run || b.ready - a.ready || a.n - b.n);
  return { events: last - first, ...countLines(first, last), run, tasks, first, last };
}

function percent(part, all) {
  return `${((part / (all || 1)) * 100).toFixed(1)}\u00a0%`;
}

function tellRange() {
  const [from, to] = ordered();
  const { events, runs, read, written, run, tasks, first, last } = rangeSays(from, to);
  const length = view.axis !== "time" && last > first ? `, ${span(at[last - 1] - at[first])}` : "";
  const facts = [`${events} events`, `${runs} runs`, isMeasured() ? `CPU ${percent(run, to - from)}` : "CPU unknown",
    `${read} bytes read, ${written} written`];
  const rest = tasks.length - TOP_TASKS;
  const note = rest > 0 ? `The ${TOP_TASKS} tasks that ran most; ${rest} more were alive.` : "";
  rangeBox.replaceChildren(
    make("p", "sentence", `Range of ${long(to - from)}${length}: ${facts.join(", ")}.`),
    taskTable(tasks.slice(0, TOP_TASKS)), make("p", "hint", note));
}

function taskTable(tasks) {
  const table = document.createElement("table");
  const cells = (kind, texts) => {
    const line = document.createElement("tr");
    line.append(...texts.map((text) => make(kind, "", text)));
    return line;
  };
  table.append(cells("th", ["task", isMeasured() ? "run" : "run or not (unknown)", "ready", "blocked"]));
  for (const { n, run, ready, blocked } of tasks) {
    const all = run + ready + blocked;
    const texts = [run, ready, blocked].map((part) => `${long(part)} (${percent(part, all)})`);
    table.append(cells("td", [`${lanes[n].id} ${lanes[n].name}`, ...texts]));
  }
  return table;
}
