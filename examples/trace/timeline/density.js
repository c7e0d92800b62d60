// If events are too many to tell apart: the shares of the time for which tasks ran, were ready and
// were blocked, for each pixel.

// Returns whether the pieces of a lane have too few pixels.
function isDense(n) {
  const { from } = lanes[n];
  const first = firstOf(from, (each) => x(each) >= view.from);
  const last = firstOf(from, (each) => x(each) > view.to);
  return (last - first) * 4 > width - left;
}

// Draws a column for each pixel, with `parts` from the bottom up as shares of the height. A part
// has a colour, the least height of a share that is not zero, and the colour of its upper edge.
function columns(list, y, high, shares, parts) {
  const bodies = parts.map(() => new Path2D()), edges = parts.map(() => new Path2D());
  for (let a = 0; a < list.length; a++) {
    let bottom = y + high;
    for (const [nth, share] of shares(list[a]).entries()) {
      if (!(share > 0)) continue;
      const tall = Math.min(Math.max(share * high, parts[nth].least ?? 1), bottom - y);
      bodies[nth].rect(left + a, bottom - tall, 1, tall);
      bottom -= tall;
      edges[nth].rect(left + a, bottom, 1, 1);
    }
  }
  for (const [nth, { fill, edge }] of parts.entries()) {
    pen.fillStyle = fill;
    pen.fill(bodies[nth]);
    pen.fillStyle = edge ?? fill;
    if (edge) pen.fill(edges[nth]);
  }
}

// The looks of the three states. Each has its own shade, so that they also differ without colour.
// Runs of unknown length have a look of their own.
function looks() {
  return [
    isMeasured() ? { fill: colors.run, least: 2 } : { fill: colors.paper, edge: colors.faint }, { fill: tint, edge: colors.ready }, { fill: colors.rest },
  ];
}

function densityOfLane(n, y, high) {
  columns(averages(laneFlow(n)), y + 3, high - 6, (each) => each, looks());
}

// At the bottom the share of the CPU, above it the numbers of ready and of blocked tasks.
function densityOfGroup(group, y, high) {
  const flow = groupFlow(group), list = averages(flow), middle = Math.round(high * 0.4);
  const [run, ready, blocked] = looks(), part = (many) => many / flow.alive;
  columns(list, y + 3, middle - 4, (each) => [part(each[READY]), part(each[BLOCKED])],
    [ready, blocked]);
  columns(list, y + middle + 2, high - middle - 5, (each) => [Math.min(each[RUN], 1)], [run]);
  pen.fillStyle = colors.rule;
  pen.fillRect(left, y + high - 3, width - left, 1);
}

// Events of the kernel: the number from outside in each pixel, relative to the largest in view.
let comings = null;
function densityOfKernel(y, high) {
  comings ??= lanes[0].events.filter((n) => ["arrive", "fire"].includes(verbOf(n)));
  const list = [];
  let before = firstOf(comings, (n) => x(n) >= view.from);
  for (let a = 1; a <= width - left; a++) {
    const value = view.from + (a / (width - left)) * (view.to - view.from);
    const after = firstOf(comings, (n) => x(n) >= value);
    list.push(after - before);
    before = after;
  }
  const most = Math.max(1, ...list);
  columns(list, y + 3, high - 6, (many) => [many / most], [{ fill: colors.outside }]);
}

function kernelIsDense() {
  const { events } = lanes[0];
  const first = firstOf(events, (n) => x(n) >= view.from);
  return (firstOf(events, (n) => x(n) > view.to) - first) * 4 > width - left;
}
