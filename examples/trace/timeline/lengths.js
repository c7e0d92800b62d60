// The lengths of runs and of waits for the CPU, in their bars, and the largest number of ready
// tasks of a group. These are the first questions of a reader of the time axis.

function lengths(n) {
  if (view.axis !== "time") return;
  const lane = lanes[n], { state, from, to } = lane, y = barTop(n);
  const ground = rowOf[n] % 2 ? colors.stripe : colors.paper;
  pen.font = SMALL;
  for (let p = firstOf(to, (end) => x(end) >= view.from); p < from.length && x(from[p]) <= view.to; p++) {
    const micros = pieceLength(lane, p);
    if (state[p] === BLOCKED || micros === 0) continue;
    const isLong = state[p] === RUN && longRuns.has(from[p]), end = x(isLong ? from[p] : to[p]);
    const stop = px(isLong ? end + micros : end);
    const [a, b] = [Math.max(px(startOf(lane, p)), left), Math.min(stop, width)];
    if (micros === null) {
      boxed(["a run of unknown length", "unknown"], a, b, y + bar / 2, ground, colors.faint);
      continue;
    }
    const text = state[p] === RUN ? `ran ${span(micros)}` : `ready for ${span(micros)}`;
    const [back, color] = state[p] === RUN ? [colors.run, colors.paper] : [ground, colors.ink];
    boxed([text, span(micros)], a, b, y + bar / 2, back, color);
  }
  pen.font = PLAIN;
}

// Draws the largest number of ready tasks of a group, at the place where it lasted longest.
function crowdOf(group, y, high) {
  const flow = groupFlow(group), p = flow.crowd ??= longestCrowd(flow);
  if (p < 0) return;
  const { places, most: { [READY]: most } } = flow;
  const [a, b] = [Math.max(px(x(places[p])), left), Math.min(px(x(places[p + 1])), width)];
  pen.font = SMALL;
  boxed([`${most} ready`], a, b, y + high * 0.2 + 1, colors.paper, colors.ink);
  pen.font = PLAIN;
}

function longestCrowd({ places, counts: { [READY]: ready }, most: { [READY]: most } }) {
  let found = -1;
  const long = (p) => at[places[p + 1]] - at[places[p]];
  for (let p = 0; most && p + 1 < places.length; p++) {
    if (ready[p] === most && (found < 0 || long(p) > long(found))) found = p;
  }
  return found;
}

// Writes the first text that has room from one place to another, on a background.
function boxed(texts, a, b, middle, back, color) {
  const text = texts.find((each) => pen.measureText(each).width + 16 <= b - a);
  if (!text) return;
  const wide = pen.measureText(text).width, center = (a + b) / 2;
  pen.fillStyle = back;
  pen.fillRect(center - wide / 2 - 4, middle - 7, wide + 8, 14);
  pen.textAlign = "center";
  pen.fillStyle = color;
  pen.fillText(text, center, middle + 0.5);
}
