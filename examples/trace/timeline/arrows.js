// Arrows between events: from the wake of a task to its run, and along the chosen line's causes.

function point(n) {
  return [px(x(n)), middleOf(laneOfLine[n])];
}

function arrow(from, to, color, thick) {
  const [[a, b], [c, d]] = [point(from), point(to)];
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = thick;
  const bend = Math.max(6, Math.min(40, Math.abs(c - a) / 2));
  pen.beginPath();
  pen.moveTo(a, b);
  pen.bezierCurveTo(a + bend, b, c - bend, d, c, d);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(c, d);
  pen.lineTo(c - 6, d - 3);
  pen.lineTo(c - 6, d + 3);
  pen.fill();
}

// From the line that woke a task to its run, if the arrows are few enough to tell apart.
function wakes(clear) {
  const shown = [];
  for (const n of clear) {
    const { state, from, to } = lanes[n];
    const begin = firstOf(to, (end) => x(end) >= view.from);
    for (let p = begin; p < from.length && x(from[p]) <= view.to; p++) {
      if (state[p] === RUN) shown.push(from[p]);
      if (shown.length > 120) return;
    }
  }
  pen.globalAlpha = 0.55;
  for (const run of shown) {
    const wake = behind[run], from = wake < 0 ? -1 : behind[wake];
    if (from >= 0 && taskOf[from] !== taskOf[run]) arrow(from, run, colors.outside, 1);
  }
  pen.globalAlpha = 1;
}

function causes(n) {
  const all = chain(n).slice(0, STEPS);
  for (let i = all.length - 1; i > 0; i--) arrow(all[i], all[i - 1], colors.chosen, 2);
  for (const each of effects(n).slice(0, STEPS)) arrow(n, each, colors.outside, 1.5);
  for (const each of all) {
    const [a, b] = point(each);
    pen.fillStyle = colors.chosen;
    pen.beginPath();
    pen.arc(a, b, each === n ? 5 : 3.5, 0, 7);
    pen.fill();
  }
}
