// A state in order: tasks with their scopes and waits, queues, timers, and the outside. A box shows
// only the first of many entries, so only those are sorted and read.

const DOING = { READY: "ready", RUNNING: "running", PARKED: "parked" };

// Compares lists of numbers.
function byNumbers(a, b) {
  for (let n = 0; n < a.length; n++) if (a[n] !== b[n]) return a[n] - b[n];
  return 0;
}

// Returns the first `most` entries in an order, and at most as many again for which `is` holds,
// with the number of missing entries. If `isFirst`, the latter come before the others.
function firstFew(list, most, compare, is = () => false, isFirst = false) {
  if (list.length <= most) return { few: list.sort(compare), rest: 0 };
  const few = [], also = [];
  for (const it of list) {
    if (also.length < most && is(it)) also.push(it);
    if (few.length === most && compare(it, few.at(-1)) >= 0) continue;
    few.splice(firstOf(few, (each) => compare(it, each) < 0), 0, it);
    if (few.length > most) few.pop();
  }
  const all = [...new Set([...also.sort(compare), ...few])];
  if (!isFirst) all.sort(compare);
  return { few: all, rest: list.length - all.length };
}

// Returns the tasks at a line by state, and the two queues: a task becomes ready after all earlier
// ready tasks.
function tasksNow() {
  const found = { ready: [], next: [], parked: [], cpu: null };
  const [first] = states.table("n").values(), [cpu] = states.table("c").values();
  const from = first === undefined ? Infinity : states.get(`t${states.number(first)}`);
  for (const [key, value] of states.table("t")) {
    const doing = doingOf(value), task = { id: Number(key.slice(1)), value, doing };
    if (doing === DOING.READY) (value < from ? found.ready : found.next).push(task);
    else if (doing === DOING.PARKED) found.parked.push(task);
  }
  if (cpu !== undefined) found.cpu = states.number(cpu);
  return found;
}

// Whether a parked task waits for a waker, by its row. Such a wait has no ticket, and no row.
function isOnWaker(value) {
  const n = states.line(value);
  return verbOf(n) === "block" && readLine(line(n)).word(0) === "waker";
}
const doingOf = (value) => states.start(value).split(" ", 1)[0];
const byPlace = (a, b) => a.value - b.value;
const byId = (a, b) => a.id - b.id;

// Returns the scopes, waits and pending interrupts of the tasks for which `is` holds, by task, each
// with its `text`.
function belongings(is) {
  const found = new Map();
  const add = (task, list, it) => {
    if (!found.has(task)) found.set(task, { scopes: [], waits: [], pending: [] });
    found.get(task)[list].push(it);
  };
  for (const [list, kind] of [["scopes", "s"], ["waits", "k"]]) {
    for (const [key, value] of states.table(kind)) {
      const task = states.number(value);
      if (is(task)) add(task, list, { key, value, number: Number(key.slice(1)), text: rowText(value) });
    }
  }
  for (const [key, value] of states.table("p")) {
    const [, task, text] = /^p(\d+) (.*)$/.exec(key);
    if (is(Number(task))) add(Number(task), "pending", { key, value, text, ...pendingAt(text) });
  }
  for (const { scopes, waits, pending } of found.values()) {
    for (const list of [scopes, waits]) list.sort((a, b) => a.number - b.number);
    pending.sort((a, b) => byNumbers(a.order, b.order));
  }
  return found;
}

// A scope or a wait without its task.
const rowText = (value) => states.text(value).replace(/^!?\d+ /, "");

// `pending s2 in=s3`: the scope that fired, and the scope at which it is pending; 0 is the task.
function pendingAt(text) {
  const number = (name) => (name === "root" ? 0 : Number(name.slice(1)));
  const [, of, place] = /^pending (\S+?)(?: in=(\S+))?$/.exec(text);
  const source = number(of), at = place ? number(place) : source;
  return { source, at, order: [source, at === source ? 0 : 1, at] };
}

// Returns the timers. At one time, sleeps fire before scopes, and scopes before the shutdown.
function timersNow() {
  return Array.from(states.table("m"), ([key, value]) => ({ key, value, due: states.number(value) }));
}

const TIMERS = "ksdg";
const numberIn = (key) => Number(/\d+$/.exec(key)?.[0] ?? 0);
function byDue(a, b) {
  return a.due - b.due || TIMERS.indexOf(a.key[1]) - TIMERS.indexOf(b.key[1]) ||
    numberIn(a.key) - numberIn(b.key);
}

function armedNow() {
  return Array.from(states.table("a"), ([key, value]) => ({ key, value, due: states.number(value) }));
}

const byDeadline = (a, b) => a.due - b.due || numberIn(a.key) - numberIn(b.key);

// `k=9`, `s2`, `d1`.
const timerOf = (key) => (key[0] === "a" ? `d${key.slice(1)}` : key.slice(1));

// Returns descriptors or jobs, in the order of letters and numbers.
function thingsNow(kind) {
  return Array.from(states.table(kind), ([key, value]) =>
    ({ key, value, name: kind === "f" ? key.slice(1) : key }));
}

function byAlias(a, b) {
  return a.name.charCodeAt(0) - b.name.charCodeAt(0) || numberIn(a.name) - numberIn(b.name);
}

// The words of a wait in the queue of a primitive, `mutex fork-0`, or null. A row never changes.
const wordsOf = new Map();
function primitiveOf(value) {
  if (!states.start(value).startsWith("!")) return null;
  if (!wordsOf.has(value)) {
    if (wordsOf.size > 200_000) wordsOf.clear();
    wordsOf.set(value, /^!\d+ k=\d+ (.*?) #\d+/.exec(states.text(value))[1]);
  }
  return wordsOf.get(value);
}

const holderOf = (key) => /^h(\d+) (.*)$/.exec(key).slice(1);

// Returns the primitives that tasks wait for in a queue, or hold.
function primitivesNow() {
  const found = new Map();
  const at = (words) => {
    if (!found.has(words)) found.set(words, { words, holders: [], waits: [] });
    return found.get(words);
  };
  for (const [key, value] of states.table("h")) {
    const [task, words] = holderOf(key);
    at(words).holders.push({ key, value, task: Number(task) });
  }
  for (const [key, value] of states.table("k")) {
    const words = primitiveOf(value);
    if (words !== null) at(words).waits.push({ key, value, task: states.number(value) });
  }
  return [...found.values()];
}

const byWords = (a, b) => (a.words < b.words ? -1 : 1);
const byTask = (a, b) => a.task - b.task;
const byTicket = (a, b) => numberIn(a.key) - numberIn(b.key);

// The whole state as `trace state --raw` prints it.
function stateText(n) {
  states.go(n);
  const { ready, next, cpu } = tasksNow(), theirs = belongings(() => true);
  const lines = [`${seconds(at[n])} turn ${turn[n]}`];
  const list = (word, tasks) => tasks.length &&
    lines.push(`${word} ${tasks.sort(byPlace).map(({ id }) => id).join(" ")}`);
  if (cpu !== null) lines.push(`cpu ${cpu}`);
  list("ready", ready);
  list("next", next);
  const tasks = Array.from(states.table("t"), ([key, value]) => ({ id: Number(key.slice(1)), value }));
  for (const { id, value } of tasks.sort(byId)) {
    lines.push(`${id} ${nameOf(id) ?? ""} ${states.text(value)}`);
    const { scopes, pending, waits } = theirs.get(id) ?? { scopes: [], pending: [], waits: [] };
    for (const { text } of [...scopes, ...pending, ...waits]) lines.push(`  ${text}`);
  }
  for (const { key, due } of timersNow().sort(byDue)) lines.push(`timer ${seconds(due)} ${timerOf(key)}`);
  for (const { key, due } of armedNow().sort(byDeadline)) lines.push(`armed ${timerOf(key)} ${seconds(due)}`);
  for (const { name, value } of thingsNow("f").sort(byAlias)) lines.push(name + states.text(value));
  for (const { words, holders, waits } of primitivesNow().sort(byWords)) {
    const tasks = (of) => of.map(({ task }) => task).join(",");
    lines.push(words + (holders.length ? ` held-by=${tasks(holders.sort(byTask))}` : "") +
      (waits.length ? ` waits=${tasks(waits.sort(byTicket))}` : ""));
  }
  const notified = Array.from(states.table("w"), ([key, value]) => ({ words: key.slice(1), value }));
  for (const { words, value } of notified.sort(byWords)) lines.push(`notified ${words} ${states.text(value)}`);
  for (const { name, value } of thingsNow("o").sort(byAlias)) lines.push(`job ${name} ${states.text(value)}`);
  for (const value of states.table("x").values()) lines.push(`shutdown ${states.text(value)}`);
  for (const value of states.table("y").values()) lines.push(`messages ${states.text(value)}`);
  return `${lines.join("\n")}\n`;
}
