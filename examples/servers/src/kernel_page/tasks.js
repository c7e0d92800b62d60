
// What the page knows: the tasks, what they wait for, their shares of the CPU.

const WINDOW = 10e6;

// How long the lines above the table go back.
const TREND = 60e6;

// A family is folded by default if it has more members than this.
const FEW = 5;

const known = { tasks: new Map(), history: [], trend: [], lints: [], at: 0, heard: 0, live: 0, first: 0 };

// The kernel's clock now, in microseconds.
const clock = () => known.at + (paused() ? 0 : (performance.now() - known.heard) * 1000);

function forget() {
  known.tasks.clear();
  known.history.length = 0;
  known.trend.length = 0;
}

// What the server sends: changes since the last time.
function learn({ worker, at, count, live, cpu, ids, rows, common }) {
  const { waiting, most_ready: ready, lints, look } = common;
  const isFirst = known.history.length === 0;
  Object.assign(known, { worker, at, live, lints, heard: performance.now() });
  known.trend.push({ at, ready, waiting, cpu: shareSince(known.history.at(-1), { at, ...cpu }) });
  while (known.trend[0].at < at - TREND) known.trend.shift();
  if (isFirst) known.first = at;
  known.history.push({ at, count, ...cpu });
  while (known.history.length > 2 && known.history[1].at <= at - WINDOW) known.history.shift();
  for (const row of rows) {
    const past = known.tasks.get(row.id)?.past ?? [[at, isFirst ? row.ran : 0]];
    past.push([at, row.ran]);
    while (past.length > 2 && past[1][0] <= at - WINDOW) past.shift();
    const own = { state: row.state, since: row.since, woken: 0 };
    known.tasks.set(row.id, Object.assign(row, { past, own, waits: row.waits.map(waitOf) }, { family: kindOfName(row.name) }));
  }
  const alive = new Set(ids);
  for (const id of known.tasks.keys()) if (!alive.has(id)) known.tasks.delete(id);
  // At the look more tasks were busy than when the rows were made.
  const seen = new Map(look.map(({ id, state, woken, for: span }) => [id, { state, woken, since: at - span }]));
  for (const task of known.tasks.values()) Object.assign(task, task.own, seen.get(task.id));
}

// A wait from its line.
function waitOf(text) {
  const line = readLine(text);
  const op = line.op.replace(/ until=\S+/, "");
  const [first, second, third] = op.split(" ");
  const until = line.key("until");
  return {
    text, op, until: until === null ? null : Number(until) * 1e6, site: line.key("at"),
    kind: first === "io" ? `io ${third}` : first,
    target: ["io", "sleep", "waker", "signal", "yield", "offload", "parked", "foreign", "outside"].includes(first) ? null
      : `${first.replace(/^queue_(get|put)$/, "queue")} ${second}`,
    holders: first === "join" ? [Number(second)] : (line.key("held-by") ?? "").split(",").filter((id) => /^\d+$/.test(id)).map(Number),
    seq: line.seq,
  };
}

// What a task does, in one word or two, with the phase of its connection: `io read (keep-alive)`.
function kindOf(task) {
  if (task.state !== "parked") return task.state;
  const kinds = [...new Set(task.waits.map(({ kind }) => kind))].sort().join(" or ") || "waker";
  const phase = task.limit?.what.startsWith("d") ? task.limit.what.split(" ")[1] : null;
  return phase ? `${kinds} (${phase})` : kinds;
}

// What a task waits for.
const waitText = ({ waits }) => waits.map(({ op, holders, kind }) =>
  (holders.length && kind !== "join" ? `${op} (held by ${holders.map(nameOf).join(", ")})` : op)).join(" | ");

const nameOf = (id) => (known.tasks.has(id) ? `${known.tasks.get(id).name}` : `task ${id}`);

// The nearest end of its waits, and what brings it.
function limitOf(task) {
  const ends = task.waits.filter(({ until }) => until !== null).map(({ until }) => ({ until, what: "sleep" }));
  // One that has passed and did not end the wait limits something else.
  if (task.limit && task.limit.until > known.at - 1e6) ends.push(task.limit);
  return ends.reduce((first, end) => (first && first.until <= end.until ? first : end), null);
}

// The share of the CPU in the last 10 s.
function shareOf({ past }) {
  const since = Math.max(known.at - WINDOW, known.first);
  let base = past[0][1];
  for (const [at, ran] of past) if (at <= since) base = ran;
  const span = known.at - since;
  return span > 0 ? (fair() * (past.at(-1)[1] - base)) / span : 0;
}

// The wall clock counts time in which the system ran other processes. If the runs come to more than
// what the thread had, all are scaled down to that.
function fair() {
  const [thread, tasks, page] = ["thread", "tasks", "page"].map((of) => rate(of));
  return thread === null || tasks + page <= thread ? 1 : thread / (tasks + page);
}

// How much a counter has grown for each second of the last 10 s.
function rate(counter) {
  const [first, last] = [known.history[0], known.history.at(-1)];
  if (!last || last.at <= first.at || last[counter] === null) return null;
  return (last[counter] - first[counter]) / ((last.at - first.at) / 1e6);
}

// The share of the CPU between two updates.
function shareSince(before, now) {
  const used = (of) => of.thread ?? of.tasks;
  return before && now.at > before.at ? Math.max(0, (used(now) - used(before)) / (now.at - before.at)) : 0;
}

// Where it waits: the file, with its folder. The whole path is in the answer to "why".
function siteOf({ waits }) {
  const site = waits.map((wait) => wait.site).find(Boolean) ?? "";
  return site.split("/").slice(-2).join("/");
}

// Numbers in words.

function span(micros) {
  const s = Math.max(0, micros) / 1e6;
  if (s < 0.1) return "< 0.1 s";
  if (s < 60) return `${s.toFixed(1)} s`;
  const [min, h] = [Math.floor(s / 60), Math.floor(s / 3600)];
  if (s < 3600) return `${min} min ${Math.floor(s % 60)} s`;
  return h < 48 ? `${h} h ${min % 60} min` : `${Math.floor(h / 24)} days`;
}

function until(end) {
  const left = end.until - clock();
  return left < 0 ? "now" : `in ${span(left)}`;
}

function percent(share) {
  const value = share * 100;
  return value < 0.05 ? "0 %" : value < 10 ? `${value.toFixed(1)} %` : `${Math.round(value)} %`;
}

const grouped = (n) => Math.round(n).toLocaleString("en");

// How many there are of each kind, the most first: `460 in io read, 38 in sleep`.
function tally(words, most, join = " ") {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const shown = sorted.slice(0, most).map(([word, n]) => `${grouped(n)}${join}${word}`);
  const rest = sorted.slice(most).reduce((sum, [, n]) => sum + n, 0);
  return shown.concat(rest ? [`${grouped(rest)} in other waits`] : []).join(", ");
}

// The first answer to "what is this process doing?".
function headline() {
  const tasks = [...known.tasks.values()];
  const of = (state) => tasks.filter((task) => task.state === state);
  const parked = of("parked");
  const waits = parked.length ? `: ${tally(parked.map(kindOf), 4, " in ")}` : "";
  const busy = ["running", "ready"].map((state) => [of(state).length, state]).filter(([n]) => n);
  const states = busy.length ? `: ${busy.map((it) => it.join(" ")).join(", ")}, ${grouped(parked.length)} parked` : ", all parked at the last look";
  const more = known.live > tasks.length ? ` (the first ${grouped(tasks.length)} of ${grouped(known.live)})` : "";
  const cpu = rate("thread") ?? rate("tasks");
  const load = cpu === null ? "" : ` CPU ${percent(cpu / 1e6)} over ${span(Math.min(10e6, known.at - known.first))}.`;
  const events = rate("count");
  return `${grouped(tasks.length)} task${tasks.length === 1 ? "" : "s"}${more}${states}${waits}.${load}` +
    (events === null ? "" : ` ${grouped(events)} event${Math.round(events) === 1 ? "" : "s"}/s.`);
}

// Who has the CPU: families of tasks, the kernel, the page.
function shares() {
  if (rate("tasks") === null) return "";
  const [thread, tasks, page] = [rate("thread"), fair() * rate("tasks"), fair() * rate("page")];
  const families = new Map();
  for (const task of known.tasks.values()) {
    families.set(task.family, (families.get(task.family) ?? 0) + shareOf(task));
  }
  const busiest = [...families].sort((a, b) => b[1] - a[1]).slice(0, 3).filter(([, share]) => share >= 0.0005);
  const ended = tasks / 1e6 - [...families.values()].reduce((sum, share) => sum + share, 0);
  if (ended >= 0.0005) busiest.push(["tasks that ended", ended]);
  if (thread !== null) busiest.push(["the kernel itself", Math.max(0, thread - tasks - page) / 1e6]);
  busiest.push(["this page", page / 1e6]);
  return `CPU: ${busiest.map(([who, share]) => `${who} ${percent(share)}`).join(", ")}.`;
}
