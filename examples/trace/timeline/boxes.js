// The boxes of the panel: the CPU above the ready queue above the parked tasks, so that a card
// climbs. At the left are timers, events from outside, and locks.

function titled(name, title, ...parts) {
  const isEmpty = parts.length === 1 && parts[0].className === "none";
  return box("section", `box ${name}${isEmpty ? " empty" : ""}`, box("h2", "", title), ...parts);
}

const nobody = (text) => box("p", "none", text);

function ghostsIn(doing, step) {
  return step.ghosts.filter((each) => each.doing === doing).map(({ id }) => ghost(id, doing, step));
}

function cpuBox(step) {
  const { cpu } = step.tasks, value = states.get(`t${cpu}`);
  const parts = ghostsIn(DOING.RUNNING, step);
  if (value !== undefined) parts.unshift(card({ id: cpu, value, doing: DOING.RUNNING }, step));
  else if (cpu === 1) parts.unshift(wakeupCard());
  return titled("cpu", "Has the CPU", ...(parts.length ? parts : [nobody("no task")]));
}

// The kernel's own task has no row.
function wakeupCard() {
  const [messages] = states.table("y").values();
  const it = box("div", "card running",
    box("div", "top", box("b", "", who(1)), small("the kernel's own task")),
    messages === undefined ? "" : `moves ${states.text(messages)} messages of other threads`);
  it.dataset.key = "t1";
  return it;
}

function queue(title, { few, rest }, step, ghosts) {
  const parts = [...ghosts, ...few.map((task) => card(task, step))];
  return box("div", "queue", small(title), ...(parts.length ? parts : [nobody("no task")]), moreOf(rest));
}

function readyBox(step) {
  const { ready, next } = step.tasks, ghosts = ghostsIn(DOING.READY, step);
  const size = ready.length + next.length;
  if (!size && !ghosts.length) return titled("ready", "Ready, in order", nobody("no task"));
  return titled("ready", `Ready, in order${sizeOf(size)}`, box("div", "queues",
    queue("this turn", step.few.ready, step, ghosts), queue("next turn", step.few.next, step, [])));
}

const sizeOf = (count) => (count > 1 ? `: ${count}` : "");

// In the order of numbers, so that cards keep their places. A ghost keeps a place for one step. If
// there are many tasks, the changed ones come first.
function parkedBox(step) {
  const { few, rest } = step.few.parked;
  const shown = step.ghosts.filter(({ doing }) => doing === DOING.PARKED)
    .map(({ id, doing }) => [id, ghost(id, doing, step)]);
  shown.push(...few.map((task) => [task.id, card(task, step)]));
  if (!rest) shown.sort((a, b) => a[0] - b[0]);
  const cards = shown.map(([, it]) => it);
  return titled("parked", `Parked: what each waits for${sizeOf(step.tasks.parked.length)}`,
    ...(cards.length ? cards : [nobody("no task")]), moreOf(rest));
}

function table(rows, rest) {
  return [box("table", "", box("tbody", "", ...rows)), moreOf(rest)];
}

// A row of a table. It is marked if a step has changed it, or if the line names it.
function tableRow(key, isHot, cells, from) {
  const it = box("tr", isHot ? "hot" : "", ...cells.map((cell) => box("td", "", cell)));
  it.dataset.key = key;
  if (from) it.dataset.from = from;
  return it;
}

// The owner of a timer: the task of its wait, of its scope, or of the line that armed it, or null.
function ownerOf(key) {
  if (key[0] === "a") return taskOf[states.line(states.get(key))];
  if (key[1] !== "k" && key[1] !== "s") return null;
  const value = states.get(key[1] === "k" ? `k${key.slice(3)}` : key.slice(1));
  return value === undefined ? null : states.number(value);
}

function timerName(name, value) {
  if (name.startsWith("k=")) return `sleep ${name}`;
  if (/^s\d/.test(name)) return `timeout ${name}`;
  if (!/^d\d/.test(name)) return `end of ${name}`;
  const phase = value === undefined ? null : readLine(line(states.line(value))).key("phase");
  return `deadline ${name}${phase ? ` (${phase})` : ""}`;
}

function timersBox(step) {
  const timers = timersNow(), armed = armedNow(), fires = verbOf(step.n) === "fire";
  const isHot = ({ key }) => step.changed.has(key) || step.names.has(timerOf(key).replace("=", ""));
  const [first, second] = [firstFew(timers, LINES, byDue, isHot), firstFew(armed, LINES, byDeadline, isHot)];
  const gone = [...step.changed].filter(([key, before]) =>
    (key[0] === "m" || key[0] === "a") && before !== undefined && !states.has(key));
  const shown = gone.slice(0, LINES).map(([key, before]) => {
    const how = fires ? box("b", "tag", "fires") : "gone";
    const cells = [seconds(states.number(before)), timerName(timerOf(key), before), how];
    const it = tableRow(`gone ${key}`, fires, cells);
    it.classList.add("gone");
    return it;
  });
  for (const timer of [...first.few, ...second.few].sort((a, b) => a.due - b.due)) {
    const name = timerOf(timer.key), owner = ownerOf(timer.key);
    const cells = [seconds(timer.due), timerName(name, timer.value), owner === null ? "" : who(owner)];
    shown.push(tableRow(timer.key, isHot(timer), cells, `t${owner}`));
  }
  return titled("timers", `Timers, the next to fire first${sizeOf(timers.length + armed.length)}`,
    ...(shown.length ? table(shown, first.rest + second.rest) : [nobody("none")]));
}

const KIND = { l: "listener", c: "connection", p: "pipe", e: "event", f: "file" };

// The tasks that wait for a descriptor, each with its direction.
function waiters(text) {
  const found = ["read", "write"].map((way) => [way, new RegExp(` ${way}=(\\d+)`).exec(text)?.[1]]);
  return found.filter(([, task]) => task);
}

function descriptorCells({ name, value }, before) {
  const text = states.text(value);
  const ready = / ready=(\S+)/.exec(text)?.[1];
  const watched = text.includes(" registered") ? "watched" : "not watched";
  const waits = waiters(text), chips = waits.map(([way, task]) => {
    const chip = box("span", "chip", `${who(Number(task))} ${way}s`);
    chip.dataset.key = `${name} ${way} ${task}`;
    chip.dataset.from = `t${task}`;
    return chip;
  });
  for (const [way, task] of waiters(before)) {
    if (!waits.some(([each, is]) => each === way && is === task)) {
      chips.push(box("span", "chip gone", `${who(Number(task))} ${way}s`));
    }
  }
  const what = ready ? box("b", "tag", `ready to ${ready.replace(",", " and ")}`)
    : `${KIND[name[0]] ?? "file"}, ${watched}`;
  return [name, what, chips.length ? box("span", "", ...chips) : box("span", "none", "no task")];
}

// The text of a row before the step, if the row existed and has changed.
function textBefore(key, step) {
  const before = step.changed.get(key);
  return before === undefined ? "" : states.text(before);
}

function jobCells({ name, value }) {
  const [doing, by] = states.text(value).split(" by=");
  return [name, `job, ${doing}`, by ? who(Number(by)) : ""];
}

function outsideBox(step) {
  const found = [...thingsNow("f"), ...thingsNow("o")], size = found.length;
  const isHot = ({ key, name }) => step.changed.has(key) || step.names.has(name);
  const { few, rest } = firstFew(found, LINES, byAlias, isHot, true);
  const shown = few.map((it) => tableRow(it.key, isHot(it),
    it.key[0] === "f" ? descriptorCells(it, textBefore(it.key, step)) : jobCells(it)));
  return titled("outside", `Outside: what the poller watches, jobs${sizeOf(size)}`,
    ...(shown.length ? table(shown, rest) : [nobody("nothing")]));
}

// The words of the primitives that a step has changed, or that its line names.
function changedWords({ n, changed }) {
  const found = new Set([readLine(line(n)).op]);
  for (const [key, before] of changed) {
    if (key[0] === "h") found.add(holderOf(key)[1]);
    if (key[0] === "w") found.add(key.slice(1));
    const value = states.get(key) ?? before;
    if (key[0] === "k" && value !== undefined) found.add(primitiveOf(value));
  }
  return found;
}

// Locks and queues with their holders and their waiters. If there are none, the box is missing.
function locksBox(step) {
  const found = primitivesNow(), changed = changedWords(step), size = found.length;
  if (!size) return null;
  const { few, rest } = firstFew(found, LINES, byWords, ({ words }) => changed.has(words));
  const names = (list, by) => {
    const { few, rest } = firstFew(list, 4, by);
    return few.map(({ task }) => who(task)).join(", ") + (rest ? ` and ${rest} more` : "");
  };
  const shown = few.map(({ words, holders, waits }) => {
    const held = holders.length ? `held by ${names(holders, byTask)}${heldSince(holders)}` : "";
    const by = waits.length ? `waits: ${names(waits, byTicket)}${notifiedLast(words)}` : "";
    return tableRow(words, changed.has(words), [words, held, by]);
  });
  return titled("locks", `Locks and queues: who holds, who waits${sizeOf(size)}`, ...table(shown, rest));
}

// The last notification of a primitive that tasks wait for: `#0012 by=5 woke=0`.
function notifiedLast(words) {
  const value = states.get(`w${words}`);
  if (value === undefined) return "";
  const [, seq, by, woke] = /^#(\d+) by=(\d+) woke=(\d+)$/.exec(states.text(value)).map(Number);
  return `; ${notifiedWords(seq, by, woke)}`;
}

// If there is one holder, the line at which it took the primitive.
function heldSince(holders) {
  if (holders.length !== 1) return "";
  const n = states.line(holders[0].value), site = readLine(line(n)).key("at");
  return `, #${String(seqOf[n]).padStart(4, "0")}${site ? ` ${site}` : ""}`;
}

const PHASES = ["close", "drain", "cancel", "cleanup", "halt"];

function shutdownBox(step) {
  const [value] = states.table("x").values();
  if (value === undefined) return null;
  const [phase, until] = states.text(value).split(" until=");
  const steps = PHASES.map((each) => box("span", each === phase ? "now" : "", each));
  if (!PHASES.includes(phase)) steps.push(box("span", "now", phase));
  return titled(`shutdown${step.changed.has("x") ? " hot" : ""}`, "Shutdown",
    box("p", "phases", ...steps), until ? small(`until ${until}`) : null);
}
