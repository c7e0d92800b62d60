// Opens timelines at addresses, and looks at the addresses that clicks and steps make: a line is
// chosen and in view, a line that does not exist is reported, Back shows what was shown before, and
// zooming never ends where there is no event.

import { writeFileSync } from "node:fs";
import path from "node:path";
import { Log, golden, must, root, sameFacts } from "../world.mjs";

export const needs = ["trace"];

export default async function address(tab, world) {
  const small = await world.timeline("address", golden("nested"));
  const large = await world.timeline("address", golden("crowd"));
  await tab.size(1280, 800);
  await tab.open(`${small}#0020`);
  sameFacts(await tab.call(walk), {
    "opened at": "#0020", "a step": "#0021", "the panel": "#0021?state", "a step of the panel": "#0022?state",
    "a click": "#0005", "back to the panel": "#0022?state", "its panel is open": true,
    "back to the line": "#0021", "its panel is closed": true, "an unknown line":
      `There is no line #9999: this log has #0001 to #${golden("nested").seqs.at(-1)}.`,
    "its address stays": "#9999", "not a line": "There is no line #here", "back without a report": true,
    "a step on": "#0022, no report", "events in view": true,
  }, "nested");
  await tab.open(`${large}#0450`);
  sameFacts(await tab.call(lookAround), {
    chosen: "450", "in view": true, "few lines": true, "pinned in a folded group": true, "the window moves": true,
    effects: true, "the key n": true, "Enter at a timer": true,
    "the life of its task": true, pieces: true, "the longest leads to its line": true,
    "states with a cut card": 0,
  }, "crowd");
  // On a telephone.
  await tab.size(400, 800);
  await tab.open("about:blank");
  await tab.open(`${large}#0450?task=5`);
  const cut = await tab.call(lifeCut);
  must(cut === 0, `the life of a task is ${cut} px wider than its box`);
  await tab.size(1280, 800);
  // The same line, by an address that only a reader would write.
  await tab.open("about:blank");
  await tab.open(`${small}#20?state`);
  const own = await tab.call(ownForm, "#0020?state");
  must(own === "#0020?state", `#20?state becomes ${own}`);
  // Without a line, the first.
  for (const [given, opens] of [["#present", "#0001?present"], ["#?state", "#0001?state"], ["#task=2", "#0001?task=2"]]) {
    await tab.open("about:blank");
    await tab.open(`${small}${given}`);
    const own = await tab.call(ownForm, opens);
    must(own === opens, `${given} becomes ${own}`);
  }
  await lives(tab, world);
  await dump(tab, world);
  await selection(tab, world);
  return "6 logs";
}

// The page of a dump opens at the line of the cause, and begins behind the head.
async function dump(tab, world) {
  const log = new Log(path.join(root, "examples/trace/tests/cut.trace"));
  await tab.open(await world.timeline("address", log));
  const facts = await tab.call(ofDump);
  const says = async (seq) => {
    const [sentence] = (await world.trace("why", seq, log.file)).split("\n");
    return sentence;
  };
  const wanted = await Promise.all(log.seqs.map(says));
  sameFacts(facts, {
    "opened at": "#0502", "the first line in view": "499", "the state of the head": 0, "says so": true,
    sentences: wanted.join("\n"), "the holder of y": "mutex y, held by task 3 `a`, who took it at a.rs:7",
    "the first moment": "500", "no cause": "What is behind that was before #0500, where the dump begins.", "a hang": true,
    "counted before it": "0 0 0", "the numbers of a line": "line 500 of 504 line 500 of 504",
  }, log.name);
  // A dump of the watchdog ends with the run that was too long.
  const file = path.join(world.scratch, "address_watched.trace"), [before] = log.text.split(" 5.000000      20  #0501");
  writeFileSync(file, before.replace("cause=hang at=#0502", "cause=watchdog at=#0500"));
  await tab.open(`${await world.timeline("address", new Log(file))}#?present`);
  const told = await tab.call(sentence);
  must(/^c ran because .*\. The run had not ended when the watchdog made the dump\.$/.test(told), `a dump of the watchdog says: ${told}`);
}

async function lifeCut() {
  await opened;
  const { scrollWidth, clientWidth } = document.getElementById("life");
  return scrollWidth - clientWidth;
}

// The life of a task names the kinds of its waits, and not what was so at one of them.
async function lives(tab, world) {
  for (const [name, kind] of [["play/lost-wake-up", "waited for bell dinner"], ["http_drained_shutdown", "waited for one of several events"]]) {
    await tab.open(await world.timeline("address", golden(name)));
    const kinds = await tab.call(kindsOfWaits);
    must(kinds.includes(kind) && !kinds.some((kind) => kind.includes(", ")), `${name}: ${kinds.join(", ")}`);
  }
}

async function kindsOfWaits() {
  await opened;
  return [...laneOf.keys()].filter((id) => id > 0).flatMap((id) => {
    openLife(id);
    return [...document.querySelectorAll("#life tbody tr")].map((row) => row.cells[0].textContent);
  });
}

// A selection leaves lines out on purpose, of a dump too.
async function selection(tab, world) {
  const file = path.join(world.scratch, "address_selected.trace");
  writeFileSync(file, await world.trace("select", "verb=block", path.join(root, "examples/trace/tests/cut.trace")));
  await tab.open(await world.timeline("address", new Log(file)));
  const told = await tab.call(causeOfLast);
  must(told === "The selection does not have what is behind that.", `a selection says: ${told}`);
}

async function causeOfLast() {
  await opened;
  timeline.presenting.open({ n: count - 1 });
  timeline.presenting.key("Enter");
  return document.querySelector(`#present [data-part="told"]`).textContent;
}

async function sentence() {
  await opened;
  const say = document.querySelector(`#present [data-part="say"]`);
  await until(() => say.textContent);
  return say.textContent;
}

async function ofDump() {
  await opened;
  const facts = {}, { view } = timeline, said = (name) => document.querySelector(`#present [data-part="${name}"]`);
  await until(() => location.hash);
  facts["opened at"] = location.hash;
  facts["the first line in view"] = String(seqOf[firstOf(axes[view.axis].of, (each) => each >= view.from)]);
  const [before, first] = [0, 1].map((nth) => integral(everything, nth * axes[view.axis].of[placeOf(500)]));
  facts["counted before it"] = first.map((sum, s) => sum - before[s]).join(" ");
  timeline.openPanel(placeOf(45));
  facts["the state of the head"] = document.querySelectorAll("#climb .card").length;
  facts["says so"] = document.getElementById("say").textContent.includes("The state here is unknown");
  timeline.stepTo(placeOf(500));
  facts["the holder of y"] = [...document.querySelectorAll("#climb .wait")].map((it) => it.textContent)
    .find((text) => text.startsWith("mutex y"))?.replace(/ k=.*/, "");
  facts["the numbers of a line"] = document.getElementById("where").textContent.replace(/ \u00b7.*/, "");
  timeline.closePanel();
  facts.sentences = Array.from(seqOf, (_, n) => timeline.prose.why(n).sentence).join("\n");
  timeline.presenting.open({ n: 0 });
  facts["the first moment"] = String(seqOf[timeline.presenting.now.now]);
  timeline.presenting.goTo(placeOf(502));
  facts["a hang"] = said("say").textContent.includes("A hang: every task waits");
  timeline.presenting.goTo(placeOf(500));
  facts["the numbers of a line"] += said("where").textContent.replace(/.* \u00b7/, "");
  timeline.presenting.goTo(placeOf(500) - 1);
  timeline.presenting.key("Enter");
  facts["no cause"] = said("told").textContent;
  return facts;
}

async function walk() {
  await opened;
  const facts = {};
  const key = (name) => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const address = async (was) => {
    await until(() => location.hash !== was);
    return location.hash;
  };
  const panel = document.getElementById("step"), said = document.getElementById("missing");
  facts["opened at"] = location.hash;
  if (timeline.view.chosen !== 19) facts["opened at"] = `line ${timeline.view.chosen + 1}`;
  timeline.choose(20, true, true);
  facts["a step"] = await address("#0020");
  key("s");
  facts["the panel"] = await address("#0021");
  key("ArrowRight");
  facts["a step of the panel"] = await address("#0021?state");
  key("s");
  await address("#0022?state");
  timeline.choose(4, true);
  facts["a click"] = await address("#0022");
  const back = async () => {
    const was = location.hash;
    history.back();
    return address(was);
  };
  await back();
  facts["back to the panel"] = await back();
  facts["its panel is open"] = panel.checkVisibility();
  facts["back to the line"] = await back();
  facts["its panel is closed"] = !panel.checkVisibility() && timeline.view.chosen === 20;
  const report = async (hash) => {
    location.hash = hash;
    await until(() => said.checkVisibility());
    return said.textContent;
  };
  // The address of the line before, which the page writes after a pause, is not written over it.
  timeline.choose(20, true, true);
  facts["an unknown line"] = await report("#9999");
  await new Promise((then) => setTimeout(then, 500));
  facts["its address stays"] = location.hash;
  history.back();
  facts["back without a report"] = await until(() => !said.checkVisibility());
  facts["not a line"] = (await report("#here")).split(":")[0];
  timeline.choose(21, true, true);
  await until(() => !said.checkVisibility());
  facts["a step on"] = `${await address("#here")}, ${said.checkVisibility() ? "a report" : "no report"}`;
  // Zoom in to where there is no event.
  timeline.choose(-1, false);
  for (let n = 0; n < 40; n++) key("+");
  const { from, to } = timeline.view, inView = [...axes[timeline.view.axis].of].filter((at) => at >= from && at <= to);
  facts["events in view"] = inView.length > 0;
  return facts;
}

async function lookAround() {
  await opened;
  const { view } = timeline, n = view.chosen, facts = { chosen: `${readLine(timeline.line(n)).seq}` };
  const isIn = (n) => axes[view.axis].of[n] >= view.from && axes[view.axis].of[n] <= view.to;
  const [a, b] = timeline.point(n);
  facts["in view"] = isIn(n) && a > 150 && a < innerWidth && b > 0 && b < document.getElementById("lanes").clientHeight;
  facts["few lines"] = Array.from({ length: timeline.count }, (_, n) => n).filter(isIn).length < timeline.count / 2;
  const lane = laneOfLine[n], row = timeline.rows().find((row) => row.lane === lane);
  facts["pinned in a folded group"] = !groupOf[lane] || (groupOf[lane].folded && row !== undefined);
  // The effects of a line lead forward as its cause leads back.
  let wrong = 0;
  for (let n = 0; n < timeline.count; n++) if (timeline.behind[n] >= 0 && !effects(timeline.behind[n]).includes(n)) wrong++;
  const all = Array.from(timeline.behind, (_, n) => effects(n).length).reduce((sum, size) => sum + size);
  // A timer that fires is an effect of the line that set it.
  const fires = Array.from(timeline.behind, (_, n) => verbOf(n)).filter((verb) => verb === "fire").length;
  facts.effects = wrong === 0 && all === timeline.behind.filter((cause) => cause >= 0).length + fires;
  const cause = timeline.behind[n];
  timeline.choose(cause, true);
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true, cancelable: true }));
  facts["the key n"] = timeline.behind[view.chosen] === cause;
  const fire = Array.from(timeline.behind, (_, n) => verbOf(n)).indexOf("fire");
  timeline.choose(fire, true);
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  facts["Enter at a timer"] = view.chosen !== fire && effects(view.chosen).includes(fire);
  // The life of a task: its pieces are as long as the task's lines.
  const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  key("i");
  await until(() => location.hash.includes("?task="));
  const id = taskOf[view.chosen], { from: pieces, state } = lanes[laneOf.get(id)];
  facts["the life of its task"] = location.hash.endsWith(`?task=${id}`) && document.getElementById("life").checkVisibility();
  const times = [...document.querySelectorAll("#life tbody tr")].map((row) => Number(row.cells[1].textContent));
  facts.pieces = times.reduce((sum, many) => sum + many) === pieces.length && times[0] === [...state].filter((each) => each === RUN).length;
  document.querySelector("#life .lead").click();
  facts["the longest leads to its line"] = taskOf[view.chosen] === id && !document.getElementById("life").checkVisibility();
  // No card of the state is cut after a step.
  timeline.openPanel(0);
  const climb = document.getElementById("climb");
  let cut = 0;
  for (let n = 0; n < timeline.count; n += 10) {
    timeline.stepTo(n);
    timeline.stepBy.line(1);
    // A card that moves may come from below.
    document.getAnimations().forEach((it) => it.finish());
    if (climb.scrollHeight > climb.clientHeight) cut++;
  }
  facts["states with a cut card"] = cut;
  timeline.closePanel();
  // A click into the overview.
  const canvas = document.getElementById("overview"), box = canvas.getBoundingClientRect(), { from } = view;
  canvas.setPointerCapture = () => {};
  const at = { clientX: box.left + 200, clientY: box.top + 5, pointerId: 1, bubbles: true };
  canvas.dispatchEvent(new PointerEvent("pointerdown", at));
  canvas.dispatchEvent(new PointerEvent("pointerup", at));
  facts["the window moves"] = view.from !== from;
  return facts;
}

async function ownForm(wanted) {
  await opened;
  await until(() => location.hash === wanted);
  return location.hash;
}
