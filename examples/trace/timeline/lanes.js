// Lanes: the kernel first, then one for each task. The piece `p` of a life is in `state[p]` from
// line `from[p]` to the line `to[p]`; `events` are all lines of the task.

const ROW = 15, ROWS = 3;

const lanes = [];
const none = new Int32Array(0);
function addLane(id, name, end, state, from, to) {
  // Below its bar: a row of notes, and rows of spans.
  const said = { notes: [], spans: [], ends: [] };
  lanes.push({ id, name, state, from, to, end, events: none, ...said });
}
addLane(0, "kernel", -1, none, none, none);
for (const task of trace.tasks) addLane(...task);
const laneOf = new Map(lanes.map((lane, n) => [lane.id, n]));

// The lane of each line, and the lines of each lane.
const laneOfLine = Int32Array.from(taskOf, (id) => laneOf.get(id));
{
  const sizes = new Int32Array(lanes.length);
  for (const n of laneOfLine) sizes[n]++;
  for (const [n, lane] of lanes.entries()) lane.events = new Int32Array(sizes[n]);
  sizes.fill(0);
  for (let n = 0; n < count; n++) lanes[laneOfLine[n]].events[sizes[laneOfLine[n]]++] = n;
}

// A span is below the spans that contain it. A span without a free row is not drawn.
for (const [n, text] of trace.notes) lanes[laneOf.get(taskOf[n])].notes.push({ n, text });
for (const [task, name, from, to] of trace.spans) {
  const { ends, notes, spans } = lanes[laneOf.get(task)];
  let row = 0;
  while (ends[row] > from) row++;
  if (row >= ROWS) continue;
  ends[row] = to;
  spans.push({ name, from, to, row: row + (notes.length ? 1 : 0) });
}

// Returns the height of the space below the bar of a lane.
function below(n) {
  const { notes, ends, waitRows } = lanes[n];
  return (waitRows + (notes.length ? 1 : 0) + ends.length) * ROW;
}
