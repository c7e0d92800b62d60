// Where events are too many to tell apart: for each pixel the shares of the time that tasks ran,
// were ready and were blocked.

// Whether a lane has less than so many pixels for a piece.
function isDense(n) {
  const { from } = lanes[n];
  const first = firstOf(from, (each) => x(each) >= view.from);
  const last = firstOf(from, (each) => x(each) > view.to);
  return (last - first) * 4 > width - left;
}

// One column of each pixel, `parts` from the bottom up as shares of the height.
function columns(list, y, high, parts, fills) {
  const paths = fills.map(() => new Path2D());
  for (let a = 0; a < list.length; a++) {
    let bottom = y + high;
    parts(list[a]).forEach((part, nth) => {
      // What is there is seen, however short it was.
      const tall = part > 0 ? Math.min(Math.max(part * high, 1), bottom - y) : 0;
      if (tall > 0) paths[nth].rect(left + a, bottom - tall, 1, tall);
      bottom -= tall;
    });
  }
  fills.forEach((fill, nth) => {
    pen.fillStyle = fill;
    pen.fill(paths[nth]);
  });
}

function densityOfLane(n, y, high) {
  columns(averages(laneFlow(n)), y + 3, high - 6, (each) => each, [colors.run, tint, colors.rest]);
}

// Below the share of the CPU, above it the tasks: how many are ready, and how many are blocked.
function densityOfGroup(group, y, high) {
  const flow = groupFlow(group), list = averages(flow), middle = Math.round(high * 0.4);
  columns(list, y + 3, middle - 4, (each) => [each[READY], each[BLOCKED]].map((n) => n / flow.alive),
    [tint, colors.rest]);
  columns(list, y + middle + 2, high - middle - 5, (each) => [Math.min(each[RUN], 1)], [colors.run]);
  pen.fillStyle = colors.rule;
  pen.fillRect(left, y + high - 3, width - left, 1);
}

// Events of the kernel: how many came from outside, a pixel, beside the most in view.
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
  columns(list, y + 3, high - 6, (many) => [many / most], [colors.outside]);
}

function kernelIsDense() {
  const { events } = lanes[0];
  const first = firstOf(events, (n) => x(n) >= view.from);
  return (firstOf(events, (n) => x(n) > view.to) - first) * 4 > width - left;
}
