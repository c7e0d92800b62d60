// Looks at the present mode as from the back of a hall: at the lines of some logs the cards of each column are the
// tasks of `trace state`, no card is cut, the type is at least 24 px at 1280 x 800, a step forward and
// back ends where it began. Names of tasks cannot become elements, the keys do all, and a reader who
// wants no motion gets none.

import { Log, golden, must, root, sameFacts } from "../world.mjs";
import { writeFileSync } from "node:fs";
import path from "node:path";

export const needs = ["trace", "philosophers"];

const GOLDENS = ["nested", "crowd", "echo_two_clients", "worker", "producer", "http_two_requests", "phases",
  "play/lost-wake-up", "x10_a_timeout_ends_a_wait_on_a_bare_waker", "http_drained_shutdown", "f28_a_token_for_each_item",
  "limiter_beside_the_pool", "d1_one_deadline_for_all_phases"];

export default async function present(tab, world) {
  const handed = new Log(path.join(root, "examples/trace/tests/handed.trace"));
  const logs = [...GOLDENS.map(golden), await world.deadlock(), strange(world), handed, ofOneKind(world, handed)];
  await tab.size(1280, 800);
  let lines = 0;
  for (const log of logs) lines += await check(tab, world, log);
  await motion(tab, world);
  return `${lines} lines of ${logs.length} logs`;
}

// A log whose names are markup.
function strange(world) {
  const file = path.join(world.scratch, "present_strange.trace"), { text } = golden("producer");
  const names = text.replace(/^( *\S+ +\d+ +#\d+ +(?:[3-9]|\d\d) )(\S+)/gm, "$1<img><i>$2</i>");
  must(names !== text, "the golden log `producer` has no name to change");
  writeFileSync(file, names);
  return new Log(file);
}

// A log whose tasks are of one kind: waiters of one lock, and its holder, who sleeps as another task does.
function ofOneKind(world, log) {
  const file = path.join(world.scratch, "handed_kind.trace");
  const names = log.text.replace(/^( *\S+ +\d+ +#\d+ +)([2-4]) \S+ +/gm, "$1$2 conn-$2   ");
  const last = " 3.000000       5  #0030   0 kernel   arrive   SIGUSR1\n";
  writeFileSync(file, names.replace("block    join 4 k=7", "block    sleep 5s until=8.000000 k=7") + last);
  return new Log(file);
}

async function check(tab, world, log) {
  const wanted = await world.all(log, "state", "--raw");
  await tab.open(`${await world.timeline("present", log, "--source", root)}#${log.seqs[0]}?present`);
  const { facts, columns } = await tab.call(inPage), hangs = log.text.includes(" its_run_failed");
  const isCircle = ["philosophers", "handed"].includes(log.name), told = await waitsTold(world, log);
  sameFacts(facts, {
    cut: "", overflows: "", asides: "", elements: 0, "smallest type": true, "wrong steps": 0, "other levels": 0,
    "small sentences": "", "marked cards": 1, keys: true, "keys reach the controls": true, red: hangs || isCircle, "a closed circle": isCircle,
    "a hang": hangs, "missing in a circle": "", "lost words": "", "hidden holders": "",
  }, `${log.name} in the present mode`);
  for (const { n, ...found } of columns) {
    const seq = log.seqs[n], text = wanted.get(seq);
    const row = (word) => (new RegExp(`^${word} (.*)$`, "m").exec(text)?.[1] ?? "").split(" ").filter(Boolean);
    const parked = [...text.matchAll(/^(\d+) \S+ parked/gm)].map(([, id]) => id);
    const state = { running: row("cpu"), ready: [...row("ready"), ...row("next")], waiting: parked };
    const byNumber = (ids) => [...ids].sort((a, b) => a - b).join(" ");
    sameFacts({ ...found, waiting: byNumber(found.waiting) },
      { running: state.running.join(" "), ready: state.ready.join(" "), waiting: byNumber(parked), ...told(seq) },
      `${log.name}: the cards at #${seq}`);
  }
  return columns.length;
}

// Returns a function of a line: the tasks that wait for a waker, and those whose only wait is for a lock
// with one holder, each with the holder, as `trace state` has them.
async function waitsTold(world, log) {
  const states = await world.all(log, "state");
  return (seq) => {
    const wakers = [], holders = [];
    for (const [, id, first, waits] of states.get(seq).matchAll(/(\d+) \S+ +since ([^\n]*)\n((?: +\*? +k=[^\n]*\n)*)/g)) {
      if (first.includes(", waits for a waker")) wakers.push(id);
      const rows = waits.split("\n").filter(Boolean), holder = /#\d+, held by \d+ ([^ ,]+)$/.exec(rows[0] ?? "");
      if (rows.length === 1 && holder) holders.push(`${id} ${holder[1]}`);
    }
    return { wakers: wakers.join(" "), holders: holders.sort().join() };
  };
}

async function motion(tab, world) {
  const page = await world.timeline("present", golden("nested"));
  for (const value of ["reduce", "no-preference"]) {
    await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value }] });
    await tab.open("about:blank");
    await tab.open(`${page}#0001?present`);
    const moved = await tab.call(movesInPage);
    must(moved === (value !== "reduce"), `prefers-reduced-motion: ${value}, and cards move: ${moved}`);
  }
}

async function movesInPage() {
  await opened;
  let moves = 0;
  while (presenting.step(1)) moves += document.getAnimations().filter(({ effect }) => effect.target.dataset.key).length;
  return moves > 0;
}

async function inPage() {
  await opened;
  const { presenting, columnsAt, count } = timeline, root = document.getElementById("present");
  const facts = { cut: "", overflows: "", asides: "", elements: 0, red: false, "a closed circle": false, "small sentences": "",
    "a hang": false, "missing in a circle": "", "lost words": "", "hidden holders": "" };
  const lists = ["running", "ready", "waiting"].map((name) => root.querySelector(`[data-part="${name}"]`));
  const settle = () => document.getAnimations().forEach((it) => it.finish());
  const idsOf = (list) => [...list.querySelectorAll("[data-ids]")].flatMap((card) => card.dataset.ids.split(" "));
  const say = root.querySelector('[data-part="say"]');

  // The cards of some lines. The state is followed forward and back by the steps below.
  const every = Math.ceil(count / 60), columns = [];
  let smallest = Infinity, others = 0;
  for (let n = 0; n < count; n++) {
    if (n % every && !columnsAt.stuckSaid(n) && !["block", "give", "take"].includes(verbOf(n))) continue;
    presenting.goTo(n);
    settle();
    const [running, ready, waiting] = lists.map(idsOf);
    const onWaker = [...lists[2].querySelectorAll("[data-ids]")].filter((card) => card.querySelector(".for")?.textContent === "a waker");
    columns.push({ n, running: running.join(" "), ready: ready.join(" "), waiting, wakers: onWaker.map((card) => card.dataset.ids).join(" "),
      holders: [...lists[2].querySelectorAll("[data-ids]")].map((card) => [card.dataset.ids, / held by (\S+)$/.exec(card.querySelector(".for")?.textContent)?.[1]])
        .filter(([, holder]) => holder).map((each) => each.join(" ")).sort().join() });
    if (columnsAt.circleClosedAt(n) || (n === trace.hang && trace.hung)) {
      const missing = trace.hung - lists[2].querySelectorAll(".red").length, isDrawn = lists[2].querySelector(".ring");
      if (missing || !isDrawn) facts["missing in a circle"] ||= `${missing} cards at line ${n + 1}`;
    }
    facts["a hang"] ||= /A hang: every task waits, (and nothing wakes|because of a deadlock)/.test(say.textContent);
    facts.red ||= say.classList.contains("red");
    facts["a closed circle"] ||= lists[2].querySelector(".ring") !== null;
    for (const list of lists) {
      if (list.scrollHeight > list.clientHeight + 1) facts.overflows ||= `${list.dataset.part} at line ${n + 1}`;
      const { right, bottom } = list.getBoundingClientRect();
      for (const card of list.querySelectorAll("[data-key]")) {
        const it = card.getBoundingClientRect(), isCut = it.right > right + 1 || it.bottom > bottom + 1;
        if (isCut || card.scrollHeight > card.clientHeight + 1) facts.cut ||= `${card.textContent} at line ${n + 1}`;
      }
    }
    const isLarger = root.scrollWidth > root.clientWidth || root.scrollHeight > root.clientHeight;
    if (isLarger) facts.overflows ||= `line ${n + 1}`;
    if (say.offsetHeight > say.parentNode.clientHeight + 2) facts.cut ||= `the sentence at line ${n + 1}`;
    if (parseFloat(getComputedStyle(say).fontSize) < 29.9) facts["small sentences"] ||= say.textContent;
    for (const it of [say, ...root.querySelectorAll(".columns *, [data-part=say] *")]) {
      const hasText = [...it.childNodes].some((part) => part.nodeType === Node.TEXT_NODE && part.textContent.trim());
      if (hasText) smallest = Math.min(smallest, parseFloat(getComputedStyle(it).fontSize));
    }
    if (/#\d{4}|\.rs:\d/.test(say.textContent)) facts.asides ||= say.textContent;
    facts.elements += root.querySelectorAll("img, i").length;
    // If there are fewer cards, they stand for the same tasks.
    const all = columnsAt(n, 1), ids = (cards) => cards.flatMap((card) => card.ids);
    // A card of several says of a lock with one holder what the card of each would say.
    const single = new Map(all.waiting(0, Infinity).map((card) => [card.ids[0], card.reason]));
    for (const { ids, reason, wait } of all.waiting(1, Infinity)) {
      const isLost = (id) => single.get(id).filter(Number).length <= 1 && single.get(id).join() !== reason.join();
      if (wait.sort === "lock" && ids.some(isLost)) facts["lost words"] ||= `${reason} of ${ids} at line ${n + 1}`;
    }
    // The holder of a lock is in no pile, unless there are many holders.
    const piles = [...all.ready(1, Infinity), ...all.waiting(1, Infinity)].filter(({ ids }) => ids.length > 1);
    const hidden = all.locks.size > 6 ? [] : ids(piles).filter((id) => all.locks.has(id));
    if (hidden.length) facts["hidden holders"] ||= `${hidden} at line ${n + 1}`;
    for (const level of [0, 1, 2]) {
      if (ids(all.ready(level, 4)).join(" ") !== ready.join(" ")) others++;
      if (ids(all.waiting(level, 4)).sort().join(" ") !== waiting.map(Number).sort().join(" ")) others++;
    }
  }
  facts["smallest type"] = smallest >= 23.99 || smallest;
  facts["other levels"] = others;

  // A task that a longer step has moved has a card of its own; all else is as before.
  const texts = (list) => [...list].map((it) => it.textContent).join("|");
  const look = (unit) => [unit === "line" ? texts(lists) : lists.map(idsOf).join("|"), say.textContent,
    texts(root.querySelectorAll(".time *, [data-part=code]"))].join("|");
  let wrong = 0, marked = 0;
  for (const unit of ["line", "move", "run", "turn"]) {
    presenting.goTo(Math.floor(count / 3));
    for (let n = 0; n < 8; n++) {
      const from = presenting.now.now, before = look(unit);
      if (!presenting.step(1, unit)) break;
      const there = presenting.now.now, after = look(unit);
      marked = Math.max(marked, root.querySelectorAll(".columns .hot").length);
      presenting.goTo(from);
      if (look(unit) !== before) wrong++;
      presenting.goTo(there);
      if (look(unit) !== after) wrong++;
    }
  }
  facts["wrong steps"] = wrong;
  facts["marked cards"] = marked;

  // The keys alone.
  const key = (name, more) => (document.activeElement ?? document.body).dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
  const now = () => presenting.now.now, part = (name) => root.querySelector(`[data-part="${name}"]`);
  const keys = [];
  key("Escape");
  keys.push(!root.checkVisibility());
  key("p");
  keys.push(root.checkVisibility() && document.activeElement === root);
  key("Home");
  keys.push(now() === 0);
  key("ArrowRight");
  keys.push(now() > 0);
  key("ArrowLeft");
  keys.push(now() === 0);
  key("ArrowDown", { shiftKey: true });
  keys.push(now() > 0);
  key("End");
  keys.push(now() === count - 1);
  key("Enter");
  // The end of the kernel has no cause, and does not come from outside either.
  const isUncaused = verbOf(count - 1) === "halt" ? part("told").textContent === "No line of the log is its cause." : true;
  keys.push(timeline.behind[count - 1] < 0 ? isUncaused : now() === timeline.behind[count - 1]);
  key("Home");
  for (let n = 0; n < 9; n++) key("+");
  key(" ");
  keys.push(await until(() => now() > 0) && part("play").textContent === "Pause");
  key(" ");
  keys.push(part("play").textContent === "Play");
  const units = [...part("unit").options].filter(({ disabled }) => !disabled).map(({ value }) => value);
  const found = units.map(() => {
    key("u");
    return part("told").checkVisibility() && part("unit").value;
  });
  keys.push(found.join() === [...units, ...units].slice(2, 2 + units.length).join());
  key("l");
  keys.push(part("loop").getAttribute("aria-pressed") === "true");
  key("b");
  keys.push(part("blank").checkVisibility());
  key("ArrowRight");
  keys.push(!part("blank").checkVisibility());
  key("?");
  keys.push(part("keys").checkVisibility());
  facts.keys = keys.every(Boolean) || keys.join(" ");
  const controls = [...root.querySelectorAll("button, select")];
  facts["keys reach the controls"] = controls.every((it) => {
    it.focus();
    return document.activeElement === it && it.tabIndex === 0;
  });
  return { facts, columns };
}
