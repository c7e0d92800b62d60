// Runs inside a timeline page: uses it as a reader would, and tells the page around it what it
// found. `check.sh` appends it to a page and reads the report.
"use strict";
opened.then(() => {
  // The page has been read and painted: milliseconds since it began to load.
  const painted = Math.round(performance.now());
  const report = [];
  const say = (what, value) => report.push(`${what}: ${value}`);
  const { timeline } = window;
  const canvas = document.getElementById("lanes");
  const isBig = timeline.count > 10_000;

  // Of many lines: the panel opens at the last one, and steps from there and from the middle.
  if (isBig) {
    timeline.openPanel(timeline.count - 1);
    const opened = performance.now();
    let longest = 0;
    const timed = (does) => {
      const from = performance.now();
      does();
      // With its layout and its picture.
      document.getElementById("climb").getBoundingClientRect();
      paint();
      longest = Math.max(longest, performance.now() - from);
    };
    for (const n of [timeline.count - 1, Math.floor(timeline.count / 2)]) {
      timed(() => timeline.stepTo(n));
      for (const kind of ["line", "run", "turn"]) {
        for (const by of [-1, -1, 1]) timed(() => timeline.stepBy[kind](by));
      }
      timed(() => timeline.stepBy.cause());
    }
    say("with its panel ms", Math.round(opened));
    say("longest step ms", Math.round(longest));
    // What follows is of the page without it.
    timeline.closePanel();
  }

  // No scrolling sideways, at whatever width this is.
  const root = document.documentElement;
  say("painted ms", painted);
  say("width", window.innerWidth);
  say("sideways", root.scrollWidth - root.clientWidth);

  // A click on each of some runs shows its chain of causes, as the lines themselves have it.
  const runs = [];
  for (let n = 0; n < timeline.count && runs.length < 20; n++) {
    if (/ run +cause=/.test(timeline.line(n))) runs.push(n);
  }
  let wrong = 0;
  for (const n of runs) {
    timeline.choose(n, true);
    const box = canvas.getBoundingClientRect();
    const [x, y] = timeline.point(n);
    const at = { clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true };
    canvas.setPointerCapture = () => {};
    canvas.dispatchEvent(new PointerEvent("pointerdown", at));
    canvas.dispatchEvent(new PointerEvent("pointerup", at));
    // Of many events on one point, a click finds one.
    if (Math.abs(timeline.point(timeline.view.chosen)[0] - x) < 1) timeline.choose(n, true);
    const shown = [...document.querySelectorAll("#details li button")];
    const seq = /cause=#(\d+)/.exec(timeline.line(timeline.view.chosen))?.[1];
    if (timeline.view.chosen !== n || !shown[1]?.textContent.includes(`#${seq} `)) wrong++;
    if (shown.length !== timeline.chain(n).length) wrong++;
  }
  say("runs clicked", runs.length);
  say("wrong causes", wrong);

  // Something is drawn.
  const pen = canvas.getContext("2d");
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  const colors = new Set();
  for (let n = 0; n < pixels.length; n += 404) colors.add(pixels[n] * 65536 + pixels[n + 1] * 256 + pixels[n + 2]);
  say("drawn", colors.size > 4);

  const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const before = timeline.view.to - timeline.view.from;
  key("+");
  say("keys zoom", timeline.view.to - timeline.view.from < before);

  // What the strip shows of the CPU is the time, and the events, of all runs.
  say("axis at first", timeline.view.axis);
  for (const axis of ["turns", "time", "events"]) {
    while (timeline.view.axis !== axis) key("t");
    if (axis !== "turns") say(`busy ${axis}`, Math.round(timeline.busy()));
  }
  key("t");

  // Every group folded, and every one open.
  const counts = [0, 1].map(() => {
    timeline.choose(-1, false);
    key("f");
    return timeline.rows().length;
  });
  say("rows folded", Math.min(...counts));
  say("rows unfolded", Math.max(...counts));

  // A range of everything has every event; it is chosen with keys.
  key("Home");
  key("b");
  key("End");
  key("e");
  say("range", /: (\d+) events/.exec(document.getElementById("range").textContent)?.[1]);
  key("Escape");
  say("range hidden", document.getElementById("range").hidden);

  // To the page around this one, which has room for it. Of many lines a few are enough.
  const every = isBig ? 997 : 1;
  const lines = [];
  for (let n = 0; n < timeline.count; n += every) lines.push(`${timeline.line(n)}\n`);
  const lanes = isBig ? "" : timeline.laneText(100);
  const parts = ["REPORT", ...report, `LANES\n${lanes}LINES\n${lines.join("")}END\n`];
  window.parent.postMessage(parts.join("\n"), "*");
});
