// Steps through the panel of the state: at each line of each log its rows are those of `trace state`,
// and its cards those of the rows; steps back and forth end where they began; a link opens it at its
// line; nothing makes it scroll sideways.

import { golden, root, same, sameFacts } from "../world.mjs";

export const needs = ["trace", "spin", "philosophers"];

const GOLDENS = [
  "nested", "hello", "phases", "worker", "producer", "linger", "echo_two_clients", "remote_spawn",
  "http_two_requests", "http_drained_shutdown", "x10_a_shield_in_one_branch", "c32_shutdown",
  "d31_guards_nest_on_one_deadline", "x5_all_open_deadlines_stay_in_force", "f28_queue_or_refuse",
  "x8_a_job_that_outlives_its_caller", "curio_l5_order_within_a_turn",
  "curio_k6_joiners_are_woken_first_in_first_out",
];

export default async function state(tab, world) {
  const logs = [...GOLDENS.map(golden), await world.timed(), await world.deadlock()];
  let states = 0;
  for (const [nth, log] of logs.entries()) states += await check(tab, world, log, nth % 2 ? 1280 : 400);
  return `${states} lines of ${logs.length} logs`;
}

// Each log opens at its line in the middle. Returns how many states have been compared.
async function check(tab, world, log, width) {
  const middle = log.seqs[Math.floor(log.seqs.length / 2)];
  const wanted = await world.all(log, "state", "--raw");
  await tab.size(width, 800);
  await tab.open(`${await world.timeline("state", log, "--source", root)}#${middle}?state`);
  const { facts, states } = await tab.call(inPage);
  sameFacts(facts, {
    "opened at": middle, lines: log.seqs.length, sideways: 0, "cut sentences": 0, "wrong cards": 0,
    "wrong on the way back": 0, "wrong after steps": 0, keys: true, moves: true, plays: true,
  }, `${log.name} at ${width} px`);
  for (const [n, seq] of log.seqs.entries()) {
    same(states[n].trimEnd(), wanted.get(seq).trimEnd(), `${log.name}: the state at #${seq}`);
  }
  return log.seqs.length;
}

async function inPage() {
  await opened;
  const { timeline } = window, { count, view, stepBy, stateText } = timeline;
  const facts = {};
  const seq = (n) => /#(\d+)/.exec(timeline.line(n))[1];
  const all = (selector) => [...document.querySelectorAll(selector)];

  // The line in the address, with the panel.
  const isOpen = document.getElementById("step").checkVisibility();
  facts["opened at"] = isOpen ? seq(view.chosen) : "no panel";
  facts.lines = count;
  const root = document.documentElement;
  facts.sideways = root.scrollWidth - root.clientWidth;

  // The tasks of the cards of a box, ghosts left out, as the text of a state has them.
  const ids = (selector) => all(`#climb ${selector} > .card:not(.ghost) > .top > b:first-child`)
    .map((it) => it.textContent.split(" ")[0]);
  function cardsAreRight(text) {
    const rows = (word) => (new RegExp(`^${word} (.*)$`, "m").exec(text)?.[1] ?? "").split(" ").filter(Boolean);
    const parked = [...text.matchAll(/^(\d+) \S+ parked/gm)].map((found) => found[1]);
    const pairs = [[".cpu", rows("cpu")], [".queue:first-child", rows("ready")],
      [".queue:last-child", rows("next")], [".parked", parked]];
    // Of many tasks the first are shown, and those that have changed.
    const shown = pairs.every(([box, of]) => (of.length > 10 ? ids(box).every((id) => of.includes(id))
      : ids(box).join() === of.join()));
    const timers = all(".timers tr:not(.gone) td:first-child").map((it) => it.textContent).slice(0, 3);
    const due = [...text.matchAll(/^(?:timer (\S+) .*|armed \S+ (\S+))$/gm)].map((found) => found[1] ?? found[2]);
    return shown && timers.join() === due.sort((a, b) => a - b).slice(0, 3).join();
  }

  // Line by line to the end, and back.
  const states = [], looks = [];
  const look = () => document.getElementById("climb").textContent + document.getElementById("sources").textContent;
  const sentence = document.getElementById("say");
  let wrong = 0, wrongBack = 0, cut = 0;
  timeline.stepTo(0);
  for (;;) {
    const text = stateText(view.chosen);
    if (!cardsAreRight(text)) wrong++;
    if (sentence.scrollHeight > sentence.clientHeight + 1) cut++;
    states.push(text);
    looks.push(look());
    if (view.chosen === count - 1) break;
    stepBy.line(1);
  }
  facts["wrong cards"] = wrong;
  facts["cut sentences"] = cut;
  for (; view.chosen > 0; stepBy.line(-1)) {
    if (stateText(view.chosen) !== states[view.chosen] || look() !== looks[view.chosen]) wrongBack++;
  }
  if (stateText(0) !== states[0]) wrongBack++;
  facts["wrong on the way back"] = wrongBack;

  // By runs and turns forth and back, and to a cause.
  let wrongSteps = 0;
  const part = (n) => timeline.line(n).trim().split(/ +/);
  const begins = { run: (n) => part(n)[5] === "run", turn: (n) => part(n)[1] !== part(n - 1)[1] };
  const compare = (kind) => {
    const n = view.chosen;
    if (stateText(n) !== states[n]) wrongSteps++;
    if (n > 0 && n < count - 1 && !begins[kind](n)) wrongSteps++;
  };
  for (const kind of ["run", "turn"]) {
    timeline.stepTo(0);
    const passed = [];
    for (let before = -1; view.chosen !== before && view.chosen < count - 1;) {
      before = view.chosen;
      passed.push(before);
      stepBy[kind](1);
      compare(kind);
    }
    // Back from the end, all of them are passed again.
    const again = [];
    while (view.chosen > 0) {
      stepBy[kind](-1);
      again.unshift(view.chosen);
      compare(kind);
    }
    if (passed.some((n) => !again.includes(n))) wrongSteps++;
  }
  timeline.stepTo(count - 1);
  const cause = timeline.behind[view.chosen];
  stepBy.cause();
  if (view.chosen !== (cause < 0 ? count - 1 : cause)) wrongSteps++;
  facts["wrong after steps"] = wrongSteps;

  // The same by keys.
  const key = (name, more) => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
  timeline.stepTo(Math.floor(count / 2));
  const from = view.chosen, places = [];
  for (const name of ["ArrowRight", "ArrowLeft", "PageDown", "PageUp"]) {
    key(name);
    places.push(view.chosen);
  }
  key("s");
  const isClosed = !document.getElementById("step").checkVisibility();
  key("s");
  const isRight = places[0] === from + 1 && places[1] === from && places[2] > from && places[3] <= places[2];
  facts.keys = isRight && isClosed && document.getElementById("step").checkVisibility();

  // The card of a task moves to the CPU when it runs.
  const run = states.findIndex((_, n) => part(n)[5] === "run" && part(n)[3] > 1);
  timeline.stepTo(run - 1);
  document.getAnimations().forEach((it) => it.finish());
  timeline.stepTo(run);
  const moving = document.getAnimations().map(({ effect }) => effect.target);
  facts.moves = moving.some((it) => it.matches(`.cpu [data-key="t${part(run)[3]}"]`));

  // It plays until it is told not to.
  timeline.stepTo(0);
  document.getElementById("speed").value = "20";
  key(" ");
  const played = await until(() => view.chosen >= 2);
  key(" ");
  facts.plays = played && document.getElementById("play").textContent.includes("play");

  return { facts, states };
}
