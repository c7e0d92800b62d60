// Cards: a task with its waits inside the nested frames of its scopes.

// The largest number of shown cards of a box, the least number that a box without room is shortened
// to, and the largest number of shown rows of a table.
const CARDS = 10, LEAST_CARDS = 2, LINES = 8;

function box(tag, className, ...parts) {
  const it = document.createElement(tag);
  it.className = className;
  it.append(...parts.filter((part) => part !== null && part !== ""));
  return it;
}

const small = (text) => box("small", "", text);
// The kernel of the course has no `wakeup`, so main is task 1 there.
const who = (id) => `${id} ${nameOf(id) ?? (id === 1 ? "wakeup" : "")}`;

const moreOf = (count) => (count ? box("p", "rest", `and ${count} more`) : null);

// The facts about a row from its line of the log: the time, and the place in the program.
function placeText(n) {
  const site = n < 0 ? null : readLine(line(n)).key("at");
  return n < 0 ? "" : `since ${seconds(at[n])}${site ? `, ${site}` : ""}`;
}

const OPENED = /#(\d+)/;
const openedAt = (text) => placeOf(Number(OPENED.exec(text)?.[1] ?? -1));

function waitCard({ key, text, number }, step) {
  const n = openedAt(text);
  const words = n < 0 ? text : prose.wait(waitLine(n, step.n), step.n);
  const hot = step.changed.has(key) ? " hot" : "";
  return box("div", `wait${hot}`, words, " ", small(`k=${number} ${placeText(n)}`));
}

const FLAG = { root: "cancelled" };
function pendingFlag({ key, source, text }, step) {
  const what = source ? `s${source}` : FLAG.root;
  const it = box("span", `flag${step.changed.has(key) ? " new" : ""}`, `\u2691 ${what} pending`);
  it.title = text;
  return it;
}

// The name of a frame: `timeout s2`, `shield s4`.
function frameName(text) {
  const [scope, kind, of] = text.split(" ");
  if (kind === "set_timeout") return `timeout ${scope}`;
  return kind === "guard" ? `guard ${scope} of ${of}` : `${kind} ${scope}`;
}

// A scope with its contents.
function frame(scope, theirs, step) {
  const { key, number, text } = scope, kind = text.split(" ")[1];
  const until = / until=(\S+)/.exec(text)?.[1];
  const hasFired = until && !states.has(`ms${number}`);
  const ends = hasFired ? box("b", "tag", "fired") : until ? small(`until ${until}`) : "";
  const it = box("div", `frame ${kind}${hasFired ? " fired" : ""}${step.changed.has(key) ? " hot" : ""}`,
    box("div", "top", frameName(text), ends));
  it.title = `opened ${placeText(openedAt(text))}`;
  it.append(...inside(number, theirs, step));
  return it;
}

// The direct contents of a scope or, with 0, of the task. Branches are side by side.
function inside(number, theirs, step) {
  const within = ({ text }) => Number(/ in=s(\d+)/.exec(text)?.[1] ?? 0) === number;
  const scopes = theirs.scopes.filter(within);
  const [branches, others] = [[], []];
  for (const scope of scopes) (/^s\d+ branch/.test(scope.text) ? branches : others).push(scope);
  const parts = theirs.pending.filter(({ at }) => at === number).map((it) => pendingFlag(it, step));
  parts.push(...theirs.waits.filter(within).map((wait) => waitCard(wait, step)));
  parts.push(...others.map((scope) => frame(scope, theirs, step)));
  if (branches.length) {
    parts.push(box("div", "branches", ...branches.map((scope) => frame(scope, theirs, step))));
  }
  return parts;
}

const NOTHING = { scopes: [], waits: [], pending: [] };
const BOX = { ready: "Ready", running: "the CPU", parked: "Parked" };
const HIGH = { parked: 0, ready: 1, running: 2 };

// The state of a task before the step: `ready`, `running`, `parked`, or nothing.
function doingBefore(id, step) {
  const before = step.changed.get(`t${id}`);
  return before === undefined ? null : doingOf(before);
}

// The card of a task, with its changes in this step.
function card(task, step) {
  const { id, doing, value } = task, theirs = step.theirs.get(id) ?? NOTHING;
  const isChanged = step.changed.has(`t${id}`), before = doingBefore(id, step);
  const hasMoved = isChanged && before !== doing;
  let tag = "";
  if (hasMoved && before) tag = `${HIGH[doing] > HIGH[before] ? "\u25b2" : "\u25bc"} from ${BOX[before]}`;
  else if (hasMoved) tag = "new";
  const told = step.told.get(id) ?? "";
  const it = box("div", `card ${doing}${hasMoved ? " hot" : ""}`,
    box("div", "top", box("b", "", who(id)), tag && box("b", "tag", tag)),
    told && box("div", "told", told),
    doing === DOING.PARKED || hasMoved ? "" : small(`since ${states.text(value).split("=")[1]}`),
    doing === DOING.PARKED && isOnWaker(value) ? box("div", "wait", "a waker") : "",
    ...inside(0, theirs, step), ...goneFrom(id, hasMoved, step));
  it.dataset.key = `t${id}`;
  return it;
}

// The scopes that a step has closed, and the waits that it has ended if no ghost shows them.
function goneFrom(id, hasMoved, step) {
  const gone = step.gone.get(id) ?? [];
  return gone.filter(({ key }) => key[0] === "s" || !hasMoved)
    .map(({ key, text }) => box("div", "gone", key[0] === "s" ? frameName(text) : goneWait(text)));
}

function goneWait(text) {
  const n = openedAt(text);
  return n < 0 ? text : prose.wait(line(n));
}

// A ghost: the former place of a card that has moved.
function ghost(id, doing, step) {
  const value = states.get(`t${id}`), now = value === undefined ? null : doingOf(value);
  const waits = (step.gone.get(id) ?? []).filter(({ key }) => key[0] === "k");
  const arrow = now && HIGH[now] < HIGH[doing] ? "\u25bc" : "\u25b2";
  return box("div", "card ghost",
    box("div", "top", box("b", "", who(id)), box("b", "tag", now ? `${arrow} to ${BOX[now]}` : "ended")),
    ...waits.map(({ text }) => box("div", "wait", goneWait(text))));
}
