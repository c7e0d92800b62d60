// Uses timelines as a reader would, at 1280 and 400 px: lines, lanes, groups and the time on the CPU
// are those of the log; a click shows the cause; nothing makes it scroll sideways. Of a log of a
// million lines it says how long the page took to open with its state, and the longest step.

import { statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { Log, fields, golden, must, same, sameFacts } from "../world.mjs";

export const needs = ["trace", "spin"];

export default async function timeline(tab, world) {
  const logs = [...["nested", "echo_two_clients", "crowd"].map(golden), await world.timed()];
  for (const log of logs) await check(tab, world, log, [1280, 400]);

  for (const hasLongRuns of [true, false]) {
    const log = world.burnt("timeline", hasLongRuns);
    await tab.open(await world.timeline("timeline", log));
    const found = await tab.call(runsInPage);
    const busy = hasLongRuns ? "100000 100000 100000" : "0 0 0";
    const wanted = { busy, innocent: "null null null", unsure: true, cpu: "CPU unknown" };
    sameFacts(found, wanted, `runs of ${log.name}`);
  }

  const file = path.join(world.scratch, "big.trace");
  writeFileSync(file, big());
  const { address, spans } = await check(tab, world, new Log(file), [1280]);
  const { size } = statSync(fileURLToPath(address));
  must(size < 10_000_000, `a page of 1,000,000 events has ${size} bytes`);
  const shown = Object.entries(spans).map(([what, ms]) => `${what} ${ms} ms`).join(", ");
  return `${logs.length} logs; of 1,000,000 events: ${shown}`;
}

async function check(tab, world, log, widths) {
  const address = await world.timeline("timeline", log);
  const isBig = log.lines.length > 10_000;
  const wanted = await facts(world, log);
  const lanes = isBig ? "" : await world.trace("lanes", log.file);
  const lines = log.lines.filter((_, n) => !isBig || n % 997 === 0).join("\n");
  let found;
  for (const width of widths) {
    await tab.size(width, 760);
    await tab.open(address);
    found = await tab.call(inPage);
    const where = `${log.name} at ${width} px`;
    sameFacts(found.facts, { ...wanted, width }, where);
    same(found.lanes, lanes, `${where}: the lanes of \`trace lanes\``);
    same(found.lines, lines, `${where}: the lines of the log`);
  }
  return { address, spans: found.spans };
}

// What the page has to say, from the log and from `trace tasks`.
async function facts(world, log) {
  const names = new Map(), sizes = new Map(), began = new Map();
  let busy = 0;
  log.lines.forEach((line, nth) => {
    const [, , , task, name, verb] = fields(line), n = nth + 1;
    if (task !== "0" && !names.has(task)) {
      const group = name.replace(/[0-9]+/g, "*");
      names.set(task, name);
      sizes.set(group, (sizes.get(group) ?? 0) + 1);
    }
    if (verb === "run" && !began.has(task)) began.set(task, n);
    if ((verb === "block" || verb === "exit") && began.has(task)) {
      busy += n - began.get(task);
      began.delete(task);
    }
  });
  for (const from of began.values()) busy += log.lines.length - from;
  const groups = [...sizes.values()].filter((size) => size >= 4);
  const lanes = 1 + names.size;

  // `-` of a log that does not know it.
  const micros = (span) => (parseFloat(span) || 0) * (/us$/.test(span) ? 1 : /ms$/.test(span) ? 1000 : 1e6);
  let time = 0;
  const [heads, ...rows] = (await world.trace("tasks", log.file)).split("\n");
  const columns = heads.includes(" unknown ") ? [-5, -4] : [-4];
  for (const row of rows) {
    const words = fields(row);
    if (/^\d+$/.test(words[0])) for (const nth of columns) time += micros(words.at(nth));
  }
  const isReal = /clock=real/.test(log.text.slice(0, log.text.indexOf("\n")));
  return {
    width: 0,
    sideways: 0,
    "wrong causes": 0,
    drawn: true,
    "keys zoom": true,
    "axis at first": time > 0 || isReal ? "time" : "turns",
    "busy time": Math.round(time),
    "busy events": busy,
    "rows folded": groups.reduce((sum, size) => sum + 1 - size, lanes),
    "rows unfolded": lanes + groups.length,
    range: log.lines.length,
    "range hidden": true,
  };
}

// The lengths of runs of a log that is not timed, on the axis of time.
async function runsInPage() {
  await opened;
  const facts = {};
  for (const lane of timeline.lanes.slice(1)) {
    const runs = [...lane.state.keys()].filter((p) => lane.state[p] === RUN);
    facts[lane.name] = runs.map((p) => String(pieceLength(lane, p))).join(" ");
  }
  facts.unsure = !document.querySelector("#legend [data-mark=unsure]").hidden;
  select(0, 300000);
  facts.cpu = /CPU [^,]+/.exec(document.getElementById("range").textContent)[0];
  return facts;
}

// 1,000,000 events of 500 tasks that take turns.
function big() {
  const lines = ["#trace v3 clock=real seed=0 tick=0.3s"], causes = [];
  let seq = 0;
  const put = (at, turn, task, name, text) => {
    const number = String(++seq).padStart(4, "0");
    lines.push(`${at.toFixed(6).padStart(9)} ${String(turn).padStart(7)}  #${number} `
      + `${String(task).padStart(3)} ${name.padEnd(8)} ${text}`);
  };
  const four = (number) => `#${String(number).padStart(4, "0")}`;
  for (let task = 3; task < 503; task++) {
    put(0, 0, task, `conn-${task - 2}`, "spawn    parent=-");
    causes[task] = seq;
  }
  let turn = 0;
  while (seq < 1_000_000) {
    turn++;
    for (let task = 3; task < 503; task++) {
      const at = turn / 1000 + task / 600000, name = `conn-${task - 2}`, k = turn * 500 + task;
      put(at, turn, task, name, `run      cause=${four(causes[task])}`);
      put(at, turn, task, name, `io       c${task} read = ${40 + ((seq + 1) * 7919) % 1000}`);
      const line = 200 + (seq + 1) % 3;
      put(at + 1e-6, turn, task, name, `block    io c${task} read k=${k} at=net/src/http/connection.rs:${line}`);
      put(at + 1e-6, turn, task, name, `wake     io c${task} read k=${k} cause=${four(seq)}`);
      causes[task] = seq;
    }
  }
  put(turn / 1000 + 1, turn + 1, 0, "kernel", "halt     tasks=500 tickets=0 timers=0 handles=0");
  return `${lines.join("\n")}\n`;
}

async function inPage() {
  await opened;
  // The page has been read and painted: milliseconds since it began to load.
  const spans = { painted: Math.round(performance.now()) };
  const facts = {};
  const { timeline } = window;
  const canvas = document.getElementById("lanes");
  const isBig = timeline.count > 10_000;

  // Of many lines: the panel opens at the last one, and steps from there and from the middle.
  if (isBig) {
    timeline.openPanel(timeline.count - 1);
    spans["with its panel"] = Math.round(performance.now());
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
    spans["longest step"] = Math.round(longest);
    // What follows is of the page without it.
    timeline.closePanel();
  }

  // No scrolling sideways, at whatever width this is.
  const root = document.documentElement;
  facts.width = window.innerWidth;
  facts.sideways = root.scrollWidth - root.clientWidth;

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
    const shown = [...document.querySelectorAll("#why .chain li button")];
    const seq = /cause=#(\d+)/.exec(timeline.line(timeline.view.chosen))?.[1];
    if (timeline.view.chosen !== n || !shown[1]?.textContent.includes(`#${seq} `)) wrong++;
    if (shown.length !== timeline.chain(n).length) wrong++;
  }
  facts["wrong causes"] = wrong;

  // Something is drawn.
  const pen = canvas.getContext("2d");
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  const colors = new Set();
  for (let n = 0; n < pixels.length; n += 404) colors.add(pixels[n] * 65536 + pixels[n + 1] * 256 + pixels[n + 2]);
  facts.drawn = colors.size > 4;

  const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const before = timeline.view.to - timeline.view.from;
  key("+");
  facts["keys zoom"] = timeline.view.to - timeline.view.from < before;

  // What the page counts as runs is the time, and the events, of all runs.
  facts["axis at first"] = timeline.view.axis;
  for (const axis of ["turns", "time", "events"]) {
    while (timeline.view.axis !== axis) key("t");
    if (axis !== "turns") facts[`busy ${axis}`] = Math.round(timeline.busy());
  }
  key("t");

  // Every group folded, and every one open.
  const counts = [0, 1].map(() => {
    timeline.choose(-1, false);
    key("f");
    return timeline.rows().length;
  });
  facts["rows folded"] = Math.min(...counts);
  facts["rows unfolded"] = Math.max(...counts);

  // A range of everything has every event; it is chosen with keys.
  key("Home");
  key("b");
  key("End");
  key("e");
  facts.range = /: (\d+) events/.exec(document.getElementById("range").textContent)?.[1];
  key("Escape");
  facts["range hidden"] = document.getElementById("range").hidden;

  // Of many lines a few are enough.
  const lines = [];
  for (let n = 0; n < timeline.count; n += isBig ? 997 : 1) lines.push(timeline.line(n));
  const lanes = isBig ? "" : timeline.laneText(100);
  return { spans, facts, lanes, lines: lines.join("\n") };
}
