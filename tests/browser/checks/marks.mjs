// Looks at what a timeline says in detail: the scopes and the interrupted waits that it draws are
// those of the log; its tree of tasks and its answers to why are the tool's.

import { readdirSync } from "node:fs";
import path from "node:path";
import { fields, golden, root, same } from "../world.mjs";

export const needs = ["trace"];

export default async function marks(tab, world) {
  const names = readdirSync(path.join(root, "tests/golden")).map((file) => path.parse(file));
  const families = names.filter(({ name, ext }) => ext === ".trace" && /^(http|x10_a)_/.test(name));
  const logs = ["nested", "phases", "echo_two_clients", "crowd", ...families.map(({ name }) => name).sort()];
  await tab.size(1280, 800);
  let scopes = 0;
  for (const log of logs.map(golden)) {
    await tab.open(await world.timeline("marks", log));
    const found = await tab.call(inPage);
    const wanted = await expected(world, log);
    same(found.replace(/^legend:.*$/m, (line) => line.replace(UNCHECKED, "")), wanted,
      `${log.name}: what the log says`);
    scopes += Number(/^scopes drawn: (\d+)/.exec(wanted)[1]);
  }
  // In the log of the lost wake-up, time stands still.
  for (const log of [...logs.slice(0, 4), "play/deadlock", "play/lost-wake-up", "play/channel"].map(golden)) {
    await tab.open(await world.timeline("waits", log));
    const blocks = log.lines.filter((line) => fields(line)[5] === "block").length;
    const drawn = await tab.call(waitsInPage);
    same(drawn, `turns ${blocks}, events ${blocks}`, `${log.name}: the waits in the bars of tasks`);
  }
  await tab.open(await world.timeline("hang", golden("play/deadlock")));
  same(await tab.call(hangInPage), "free, below all lanes", "the words at a hang");
  return `${logs.length} logs, ${scopes} scopes`;
}

// Where the words at a hang are, and whether something is drawn over them.
async function hangInPage() {
  await opened;
  const over = [];
  let words = null;
  for (const name of ["fillText", "fillRect", "moveTo", "arc"]) {
    pen[name] = (...args) => {
      const [x, y] = name === "fillText" ? args.slice(1) : args;
      if (name === "fillText" && args[0].startsWith("hang: ")) words = { x, y, wide: pen.measureText(args[0]).width };
      else if (words && x >= words.x && x <= words.x + words.wide && Math.abs(y - words.y) < 8) over.push(name);
      return CanvasRenderingContext2D.prototype[name].apply(pen, args);
    };
  }
  draw();
  await new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)));
  if (!words) return "no words";
  return `${over.join(" ") || "free"}, ${words.y > rowTop(rows.length) ? "below all lanes" : "in the lanes"}`;
}

// The marks of a legend that are of the picture, and not of a line.
const UNCHECKED = / (unsure|several|endless|late|many|folded|lock|circle)\b/g;

const MARKS = ["run", "ready", "blocked", "interrupted", "withdrawn", "ended", "scope", "shield",
  "branch", "due", "hit", "outside", "kernel", "woke", "hang", "span", "note"];

// What the page should say, from the log alone.
async function expected(world, log) {
  const scopes = new Map(), tasks = new Set(), marks = new Set(), runs = [];
  let interrupted = 0;
  for (const line of log.lines) {
    const words = fields(line), [, , seq, task, , verb, op] = words;
    const mark = (name, holds) => holds && marks.add(name);
    const opens = verb === "trap" && /^(set_timeout|guard|shield|branch)$/.test(op);
    const closes = verb === "trap" && /^un(set_timeout|guard|shield|branch)$/.test(op);
    const isTimed = op === "set_timeout" || op === "guard";
    if (opens) {
      const kind = { set_timeout: `timeout ${words[7]}`, guard: `guard ${words[7]}` }[op] ?? op;
      scopes.set(words[words.indexOf("=", 7) + 1], { text: `${seq} ${kind}`, closed: "open" });
      marks.add(isTimed ? "scope" : op);
    }
    if (closes) {
      scopes.get(words[7]).closed = seq;
      const rest = line.replace(/.* = /, "");
      const own = !rest.includes(" scope=") || `${rest} `.includes(` scope=${words[7]} `);
      if (rest.startsWith("!")) marks.add(/^!timeout( |$)/.test(rest) && own ? "due" : "hit");
    }
    if (verb === "deliver") interrupted++;
    if (verb === "run" && runs.length < 20) runs.push(seq);
    if (task !== "0") tasks.add(task);
    mark("run", task !== "0" && verb === "run");
    mark("ready", /^(spawn|wake|deliver)$/.test(verb));
    mark("blocked", verb === "block");
    mark("ended", verb === "exit");
    mark("hang", verb === "drop" && op === "its_run_failed");
    mark("note", verb === "note");
    mark("span", verb === "enter");
    mark("withdrawn", verb === "withdraw");
    mark("interrupted", verb === "deliver");
    const isOutside = verb === "arrive" || verb === "fire";
    mark("outside", isOutside);
    mark("kernel", task === "0" && !isOutside);
  }
  if (tasks.size > 1) marks.add("woke");
  const middle = fields(log.lines[Math.floor((log.lines.length + 1) / 2) - 1])[0];
  const answers = await world.all(log, "why");
  const why = (seq) => answers.get(seq.slice(1)).split("\n")[0];
  return [
    `scopes drawn: ${scopes.size}`,
    `interrupted drawn: ${interrupted}`,
    ...[...scopes.values()].map(({ text, closed }) => `scope ${text} ${closed}`),
    ["legend:", ...MARKS.filter((mark) => marks.has(mark))].join(" "),
    (await world.trace("tree", "--at", middle, log.file)).trimEnd(),
    ...runs.map((seq) => `why ${seq} ${why(seq)}`),
  ].join("\n");
}

// How many waits the page draws on the axes that do not show time.
async function waitsInPage() {
  await opened;
  return ["turns", "events"].map((axis) => {
    let drawn = 0;
    window.inBar = () => { drawn++; };
    view.axis = axis;
    all();
    lanes.forEach((_, n) => life(n, 0));
    return `${axis} ${drawn}`;
  }).join(", ");
}

// What the page draws and says.
async function inPage() {
  await opened;
  const { timeline } = window;
  const seq = (n) => `#${String(readLine(timeline.line(n)).seq).padStart(4, "0")}`;
  const report = [];

  // How often the page calls what draws a mark, in one paint of everything.
  const drawn = {};
  for (const name of ["bracket", "broken"]) {
    const draws = window[name];
    window[name] = (...args) => {
      drawn[name] = (drawn[name] ?? 0) + 1;
      draws(...args);
    };
  }
  paint();
  report.push(`scopes drawn: ${drawn.bracket ?? 0}`, `interrupted drawn: ${drawn.broken ?? 0}`);

  const scopes = timeline.lanes.flatMap((lane) => lane.scopes).sort((a, b) => a.from - b.from);
  for (const { from, to, left } of scopes) {
    report.push(`scope ${seq(from)} ${scopeName(from)} ${left === OPEN ? "open" : seq(to)}`);
  }

  // A narrow page has no room for it at first.
  if (document.getElementById("legend").hidden) toggleLegend();
  const legend = [...document.querySelectorAll("#legend [data-mark]")];
  const shown = legend.filter((item) => item.getClientRects().length);
  report.push(`legend: ${shown.map((item) => item.dataset.mark).join(" ")}`);

  // The tree, at the last line of the time of the line in the middle.
  let n = Math.floor((timeline.count + 1) / 2) - 1;
  while (n + 1 < timeline.count && readLine(timeline.line(n + 1)).at === readLine(timeline.line(n)).at) n++;
  timeline.choose(n, true);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "g", bubbles: true }));
  report.push(document.querySelector("#tree .sentence").textContent);
  for (const { childNodes: [branch, name, text] } of document.querySelectorAll("#tree li button")) {
    const gap = name.textContent.endsWith(":") ? " " : "  ";
    report.push(`${branch.textContent}${name.textContent}${gap}${text.textContent}`);
  }

  let runs = 0;
  for (let n = 0; n < timeline.count && runs < 20; n++) {
    if (readLine(timeline.line(n)).verb !== "run") continue;
    runs++;
    timeline.choose(n, true);
    report.push(`why ${seq(n)} ${document.querySelector("#why .sentence").textContent}`);
  }
  return report.join("\n");
}
