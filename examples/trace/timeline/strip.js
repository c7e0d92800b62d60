// The strip above the lanes: the used share of the CPU, the numbers of ready and of waiting tasks.
// The numbers at the left are the maxima: of the CPU in a pixel, of tasks in the trace.

function strip() {
  pen.fillStyle = colors.paper;
  pen.fillRect(0, RULER, width, STRIP);
  const list = averages(everything), [, ready, waiting] = everything.most;
  const busiest = Math.max(...list.map((each) => each[RUN]));
  const [used, most] = isMeasured() ? [list, `${Math.round(busiest * 100)} %`] : [[], "?"];
  const [run, isReady, blocked] = looks();
  band(0, used, (each) => Math.min(each[RUN], 1), run, "CPU", most);
  band(1, list, (each) => each[READY] / ready, isReady, "ready", ready);
  const waits = { ...blocked, edge: colors.faint };
  band(2, list, (each) => each[BLOCKED] / waiting, waits, "waiting", waiting);
  if (!isMeasured()) unmeasured();
  pen.fillStyle = colors.faint;
  pen.fillRect(0, TOP - 1, width, 1);
}

function band(nth, list, share, look, name, most) {
  const y = RULER + 2 + nth * BAND;
  columns(list, y + 2, BAND - 4, (each) => [share(each)], [look]);
  pen.fillStyle = colors.rule;
  pen.fillRect(left, y + BAND - 2, width - left, 1);
  pen.font = SMALL;
  pen.fillStyle = colors.ink;
  pen.textAlign = "left";
  pen.fillText(name, 10, y + BAND / 2);
  pen.fillStyle = colors.faint;
  pen.textAlign = "right";
  pen.fillText(width < 600 ? most : `max ${most}`, left - 8, y + BAND / 2);
  pen.font = PLAIN;
}

function unmeasured() {
  pen.font = SMALL;
  pen.textAlign = "left";
  pen.fillStyle = colors.faint;
  const hint = "This log does not say how long runs took: record it with time_the_trace or --timed.";
  const text = whole(hint, width - left - 16);
  pen.fillText(text, left + 8, RULER + 2 + BAND / 2);
  pen.font = PLAIN;
}

// The used share of the CPU over the whole trace, for the strip.
function busy() {
  return count ? integral(everything, x(count - 1))[RUN] : 0;
}
