// Flows: the numbers of some tasks that run, are ready and are blocked, after each line that
// changes them, and the integrals of the three. A paint needs an integral for each pixel.

const NOT = 3;
const stateBefore = new Uint8Array(count).fill(NOT), stateAfter = new Uint8Array(count).fill(NOT);
// The kernel's own task waits for other threads all the time, so it counts only while it runs. The
// state of the kernel has no row for it either.
const isOwn = ({ id, name }) => id === 1 && name === "wakeup";
for (const lane of lanes) {
  const { state, from, to, end } = lane;
  const counted = (p) => (isOwn(lane) && state[p] !== RUN ? NOT : state[p]);
  for (let p = 0; p < from.length; p++) {
    stateAfter[from[p]] = counted(p);
    if (p) stateBefore[from[p]] = counted(p - 1);
  }
  if (end >= 0 && from.length) stateBefore[to[from.length - 1]] = counted(from.length - 1);
}

// Returns the flow of these places, which are the lines of the changes, in order. The lines in the head
// of a dump are few of those that were written, so the maxima begin with the state after them.
function flowOf(places) {
  const counts = [RUN, READY, BLOCKED].map(() => new Int32Array(places.length));
  const now = [0, 0, 0, 0], most = [0, 0, 0];
  let alive = 0;
  for (let p = 0; p < places.length; p++) {
    now[stateBefore[places[p]]]--;
    now[stateAfter[places[p]]]++;
    const isHead = p + 1 < places.length && places[p + 1] <= trace.begins;
    for (let s = 0; s < NOT; s++) {
      counts[s][p] = now[s];
      if (!isHead) most[s] = Math.max(most[s], now[s]);
    }
    if (!isHead) alive = Math.max(alive, now[RUN] + now[READY] + now[BLOCKED]);
  }
  return { places, counts, most, alive, sums: null, axis: "" };
}

// Returns the flow of the lanes for which `has` holds.
function flowWhere(has) {
  const places = [];
  for (let n = 0; n < count; n++) {
    if ((stateBefore[n] !== NOT || stateAfter[n] !== NOT) && has(laneOfLine[n])) places.push(n);
  }
  return flowOf(Int32Array.from(places));
}

const everything = flowWhere(() => true);

function laneFlow(n) {
  const lane = lanes[n];
  if (!lane.flow) {
    const ends = lane.end >= 0 && lane.from.length ? [lane.to[lane.to.length - 1]] : [];
    lane.flow = flowOf(Int32Array.from([...lane.from, ...ends]));
  }
  return lane.flow;
}

function groupFlow(group) {
  const has = new Set(group.lanes);
  return group.flow ??= flowWhere((n) => has.has(n));
}

function sumUp(flow) {
  if (flow.axis === view.axis) return;
  const { places, counts } = flow, of = axes[view.axis].of;
  flow.axis = view.axis;
  flow.sums = counts.map((list) => {
    const sums = new Float64Array(list.length);
    for (let p = 1; p < sums.length; p++) {
      sums[p] = sums[p - 1] + list[p - 1] * (of[places[p]] - of[places[p - 1]]);
    }
    return sums;
  });
}

// The three integrals from the beginning to a value of the axis. Those of a dump begin behind its head.
function integral(flow, exact) {
  sumUp(flow);
  const { places, counts, sums } = flow, of = axes[view.axis].of, value = Math.max(exact, of[trace.begins] ?? 0);
  const p = firstOf(places, (n) => of[n] > value) - 1;
  if (p < 0) return [0, 0, 0];
  const more = Math.min(value, of[count - 1]) - of[places[p]];
  return sums.map((list, s) => list[p] + counts[s][p] * more);
}

// The averages of the three over each pixel: the numbers of tasks in each state.
function averages(flow) {
  const size = Math.max(1, Math.ceil(width - left)), found = [];
  const value = (a) => view.from + (a / (width - left)) * (view.to - view.from);
  const each = value(1) - value(0);
  let before = integral(flow, value(0));
  for (let a = 0; a < size; a++) {
    const after = integral(flow, value(a + 1));
    found.push(after.map((sum, s) => (sum - before[s]) / each));
    before = after;
  }
  return found;
}
