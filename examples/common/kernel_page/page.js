// The live page: what `board.rs` sends, as a table or a tree of tasks.

const at = (id) => document.getElementById(id);
const WINDOW = 10_000, MOST = 300, FOLDED = 4;
const HEADS = [["id", "task"], ["state", "state"], ["wait", "waits for"], ["for", "for"],
  ["until", "until"], ["cpu", "CPU"], ["runs", "runs"]];

const tasks = new Map();
const history = [];
let now = { at: 0, live: 0, count: 0, received: 0 }, source = null, lines = [], dirty = false;
const view = { sort: "id", down: false, fold: true, tree: false, open: new Set(), chosen: null, time: 0 };

// ---- What comes -----------------------------------------------------------------------------

function receive(text) {
  const news = JSON.parse(text), received = performance.now();
  if (news.first) tasks.clear();
  now = { ...news, received };
  for (const id of news.gone) tasks.delete(id);
  for (const [id, parent, name, state, since, runs, busy, until, waits] of news.tasks) {
    const old = tasks.get(id), samples = [...(old?.samples ?? []), [received, busy]];
    const ran = old && old.runs === runs ? old.ran : received;
    // One older than the window, to know what was at its beginning.
    while (samples.length > 1 && samples[1][0] < received - WINDOW) samples.shift();
    tasks.set(id, { id, parent, name, state, since, runs, until, waits: waits.map(readLine), samples, ran });
  }
  history.push([received, news.count]);
  while (history[1] && history[1][0] < received - WINDOW) history.shift();
  lines.push(...news.events);
  lines = lines.slice(-200);
  dirty = true;
}

// The clock of the kernel, in microseconds: it goes on while nothing comes.
const clock = () => now.at + (source ? (performance.now() - now.received) * 1000 : 0);

function span(micros) {
  const s = Math.max(0, micros) / 1e6;
  if (s < 0.001) return "0 s";
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

const percent = (share) => (share >= 0.0005 ? `${(share * 100).toFixed(1)} %` : "0 %");

// The share of the CPU in the last 10 s, or since the page has looked, if that is less.
function cpu({ samples }) {
  const [first] = samples, time = performance.now();
  const looked = Math.min(WINDOW, time - (history[0]?.[0] ?? time));
  return looked > 500 ? (samples.at(-1)[1] - first[1]) / 1000 / looked : 0;
}

// What a task waits for: the op of its wait, or of several.
function wait({ state, waits }) {
  if (state !== "parked" || !waits.length) return "";
  return waits.map((line) => line.op.replace(/ until=\S+/, "")).join(", ");
}

const kind = (op) => /^io \S+ (\S+)$/.exec(op)?.[1].replace(/^/, "io ") ?? op.split(" ")[0];

function until({ state, waits, until }) {
  const own = waits.map((line) => line.number("until") ?? Number(line.key("until")) * 1e6);
  const all = [...own, until].filter((time) => time !== null && Number.isFinite(time) && time > 0);
  return state === "parked" && all.length ? Math.min(...all) : null;
}

const family = (name) => name.replace(/\d+/g, "*");

// ---- Rows ------------------------------------------------------------------------------------

function row(task) {
  const time = view.time;
  return {
    key: `t${task.id}`, id: task.id, name: task.name, label: `${task.id} ${task.name}`,
    state: task.state, wait: wait(task), for: time - task.since, until: until(task),
    cpu: cpu(task), runs: task.runs, sites: task.waits.map((line) => line.key("at")), task,
  };
}

function counted(list, of) {
  const counts = new Map();
  for (const each of list) counts.set(of(each), (counts.get(of(each)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function folded(name, rows) {
  const longest = rows.reduce((a, b) => (b.for > a.for ? b : a));
  const soonest = rows.map((each) => each.until).filter((time) => time !== null);
  const waits = counted(rows.filter((each) => each.wait), (each) => kind(each.wait));
  return {
    key: `f${name}`, id: rows[0].id, name, label: `${name} (${rows.length})`,
    state: counted(rows, (each) => each.state).map(([state, n]) => `${n} ${state}`).join(", "),
    wait: waits.slice(0, 3).map(([what, n]) => `${n} ${what}`).join(", "),
    for: longest.for, until: soonest.length ? Math.min(...soonest) : null,
    cpu: rows.reduce((sum, each) => sum + each.cpu, 0),
    runs: rows.reduce((sum, each) => sum + each.runs, 0), sites: [], rows,
  };
}

function sorted(rows) {
  const key = view.sort, sign = view.down ? -1 : 1;
  const value = (each) => each[key] ?? Infinity;
  const before = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b) || 0;
  return rows.sort((a, b) => sign * before(value(a), value(b)) || a.id - b.id);
}

function matching() {
  // The same for all, so that equal times are equal.
  view.time = clock();
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (each) => `${each.label} ${each.state} ${each.wait} ${each.sites.join(" ")}`.toLowerCase();
  const is = (each) => words.every((word) => text(each).includes(word));
  return [...tasks.values()].map(row).filter(is);
}

function table() {
  const rows = matching();
  if (!view.fold) return sorted(rows).map((each) => ({ ...each, depth: "" }));
  const families = new Map();
  for (const each of rows) {
    const name = family(each.name);
    families.set(name, [...(families.get(name) ?? []), each]);
  }
  const heads = [...families].flatMap(([name, of]) => (of.length < FOLDED ? of : [folded(name, of)]));
  return sorted(heads).flatMap((head) => [
    { ...head, depth: head.rows ? (view.open.has(head.key) ? "▾ " : "▸ ") : "" },
    ...(view.open.has(head.key) ? sorted(head.rows).map((each) => ({ ...each, depth: "  " })) : []),
  ]);
}

// As trio prints it: each task below the one that spawned it.
function tree() {
  const rows = matching(), is = new Set(rows.map((each) => each.id)), below = new Map();
  for (const each of rows) {
    const parent = is.has(each.task.parent) ? each.task.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), each]);
  }
  const grouped = (list) => {
    if (!view.fold) return sorted(list);
    const names = Map.groupBy(list, (each) => family(each.name));
    const leaf = (each) => !below.has(each.id);
    return sorted([...names].flatMap(([name, of]) => {
      const leaves = of.filter(leaf);
      return leaves.length < FOLDED ? of : [folded(name, leaves), ...of.filter((each) => !leaf(each))];
    }));
  };
  const found = [];
  const walk = (list, indent, isTop) => grouped(list).forEach((each, n, all) => {
    const last = n === all.length - 1;
    const isOpen = each.rows && view.open.has(each.key);
    const mark = each.rows ? (isOpen ? "▾ " : "▸ ") : "";
    found.push({ ...each, depth: (isTop ? "" : indent + (last ? "└─ " : "├─ ")) + mark });
    const inner = isTop ? "" : indent + (last ? "   " : "│  ");
    if (isOpen) for (const one of sorted(each.rows)) found.push({ ...one, depth: `${inner}   ` });
    if (each.task) walk(below.get(each.id) ?? [], inner, false);
  });
  walk(below.get(null) ?? [], "", true);
  return found;
}

// ---- Drawing -----------------------------------------------------------------------------------

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function drawn(each) {
  const button = element("button", { className: "task", textContent: each.depth + each.label });
  button.dataset.key = each.key;
  if (each.rows) button.setAttribute("aria-expanded", view.open.has(each.key));
  const tr = element("tr", { className: each.task ? each.state : "" }, element("td", {}, button));
  tr.classList.toggle("chosen", each.task !== undefined && each.id === view.chosen);
  const cell = (className, head, ...content) => {
    const td = element("td", { className }, ...content);
    if (head) td.dataset.head = head;
    tr.append(td);
  };
  cell("what", "", each.state);
  cell("wait", "", each.wait, ...each.sites.filter(Boolean).map((site) =>
    element("div", { className: "site", textContent: site })));
  cell("number", "for", span(each.for));
  cell("number", each.until === null ? "" : "until",
    each.until === null ? "" : each.until < clock() ? "now" : `in ${span(each.until - clock())}`);
  const bar = element("span", { className: "bar" });
  bar.style.width = `${Math.min(each.cpu, 1) * 60}px`;
  cell("number", "CPU", ...(each.cpu >= 0.0005 ? [bar] : []), percent(each.cpu));
  cell("number", "runs", each.runs.toLocaleString("en"));
  return tr;
}

function headline() {
  const all = [...tasks.values()], states = counted(all, (task) => task.state);
  const number = (state) => states.find(([name]) => name === state)?.[1] ?? 0;
  const waits = counted(all.filter((task) => wait(task)), (task) => kind(wait(task)));
  const shown = waits.slice(0, 4).map(([what, n]) => `${n} in ${what}`).join(", ");
  const [first, last] = [history[0], history.at(-1)];
  const rate = last[0] - first[0] > 500 ? (last[1] - first[1]) / ((last[0] - first[0]) / 1000) : 0;
  const share = all.reduce((sum, task) => sum + cpu(task), 0);
  const active = all.filter((task) => task.ran > performance.now() - 1000).length;
  const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
  return `${plural(now.live, "task")}, ${active} of them ran in the last second. ` +
    `Now ${number("running")} run, ${number("ready")} are ready and ${number("parked")} parked` +
    `${shown && ` (${shown})`}. ` +
    `Tasks use ${percent(share)} of the CPU. ${plural(Math.round(rate), "event")} a second.`;
}

function locks() {
  const found = new Map();
  for (const task of tasks.values()) {
    if (task.state !== "parked") continue;
    for (const line of task.waits) {
      const isOther = /^(io|sleep|yield|join|wait|offload|signal|waker|foreign|outside|parked)\b/;
      if (isOther.test(line.op)) continue;
      const { holders, waiters } = found.get(line.op) ?? { holders: "", waiters: [] };
      found.set(line.op, { holders: line.key("held-by") ?? holders, waiters: [...waiters, task] });
    }
  }
  at("held").hidden = found.size === 0;
  const name = (id) => (tasks.has(Number(id)) ? `${id} ${tasks.get(Number(id)).name}` : id);
  at("locks").replaceChildren(...[...found].map(([what, { holders, waiters }]) => {
    waiters.sort((a, b) => a.since - b.since);
    const shown = waiters.slice(0, 5).map((task) => `${task.id} ${task.name} (${span(clock() - task.since)})`);
    const rest = waiters.length > 5 ? `, and ${waiters.length - 5} more` : "";
    return element("tr", {}, element("td", { textContent: what }),
      element("td", { textContent: holders ? holders.split(",").map(name).join(", ") : "nobody" }),
      element("td", { textContent: `${waiters.length}: ${shown.join(", ")}${rest}` }));
  }));
}

function draw() {
  dirty = false;
  const focused = document.activeElement?.dataset?.key;
  at("headline").textContent = headline();
  const rows = view.tree ? tree() : table();
  at("tasks").replaceChildren(...rows.slice(0, MOST).map(drawn));
  at("rest").textContent = rows.length > MOST
    ? `And ${(rows.length - MOST).toLocaleString("en")} more: filter, or fold by name.` : "";
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  locks();
  at("counts").replaceChildren(...Object.entries(now.counts ?? {}).map(([verb, count]) =>
    element("li", {}, `${verb} `, element("b", { textContent: count.toLocaleString("en") }))));
  const list = at("events"), below = list.scrollTop + list.clientHeight > list.scrollHeight - 20;
  list.textContent = lines.join("\n");
  if (below) list.scrollTop = list.scrollHeight;
}

function heads() {
  at("heads").replaceChildren(...HEADS.map(([key, text]) => {
    const isIt = view.sort === key, arrow = isIt ? (view.down ? " ↓" : " ↑") : "";
    const th = element("th", {}, element("button", { textContent: text + arrow, onclick: () => sortBy(key) }));
    if (isIt) th.setAttribute("aria-sort", view.down ? "descending" : "ascending");
    return th;
  }));
  at("sort").value = view.sort;
}

function sortBy(key) {
  // What is looked for is the most, but the first by name, number or time.
  const down = ["for", "cpu", "runs"].includes(key);
  view.down = view.sort === key ? !view.down : down;
  view.sort = key;
  heads();
  draw();
}

// ---- Why ---------------------------------------------------------------------------------------

async function choose(id) {
  view.chosen = id;
  const answer = await fetch(`/kernel/why?task=${id}`).catch(() => null);
  const task = tasks.get(id), panel = at("why");
  panel.classList.add("open");
  if (!answer?.ok || !task) {
    panel.replaceChildren(element("p", { textContent: `Task ${id} has ended.` }));
    return;
  }
  const log = await answer.json(), read = log.map(readLine), behind = Causes();
  const place = (seq) => read.findIndex((line) => line.seq === seq);
  const causes = read.map((line) => behind(line)).map((seq) => (typeof seq === "number" ? place(seq) : -1));
  const prose = Why({ line: (n) => log[n], behind: (n) => causes[n], find: place });
  const run = read.findLastIndex((line) => line.verb === "run" && line.task === id);
  const left = read.findLast((line) => line.verb === "block");
  const parked = left ? clock() - Number(left.at) * 1e6 : clock() - task.since;
  const now = task.waits.map((line) => `${prose.wait(log[place(line.seq)])}${line.key("at") ? ` at ${line.key("at")}` : ""}`);
  const said = { running: "It runs", ready: "It is ready: it waits for the CPU" }[task.state] ??
    `It has been parked for ${span(parked)}${now.length ? ` and waits for ${now.join(", and for ")}` : ""}`;
  panel.replaceChildren(element("h2", { textContent: `${id} ${task.name}` }), element("p", { textContent: `${said}.` }),
    ...(run < 0 ? [] : [element("p", {}, `Its last run: ${prose.why(run).sentence}`)]),
    element("pre", { textContent: log.map((line) => line.trim()).join("\n") }));
  draw();
}

function press(key) {
  if (key.startsWith("f")) {
    if (!view.open.delete(key)) view.open.add(key);
    draw();
  } else choose(Number(key.slice(1)));
}

// ---- Whoever looks -----------------------------------------------------------------------------

function open() {
  lines = [];
  history.length = 0;
  source = new EventSource(`/kernel/events${location.search}`);
  source.onopen = () => (at("state").textContent = "live");
  source.onmessage = (event) => receive(event.data);
  source.onerror = () => (at("state").textContent = "the server is gone; trying again");
}

function pause() {
  const isLive = source !== null;
  at("pause").textContent = isLive ? "Go on" : "Pause";
  at("pause").setAttribute("aria-pressed", isLive);
  if (!isLive) return open();
  source.close();
  now.at = clock();
  source = null;
  at("state").textContent = "paused";
}

function toggle(name) {
  view[name] = !view[name];
  at(name).setAttribute("aria-pressed", view[name]);
  draw();
}

at("tasks").addEventListener("click", (event) => {
  const key = event.target.closest("tr")?.querySelector("button.task")?.dataset.key;
  if (key) press(key);
});
at("pause").addEventListener("click", pause);
at("fold").addEventListener("click", () => toggle("fold"));
at("tree").addEventListener("click", () => toggle("tree"));
at("filter").addEventListener("input", draw);
at("sort").addEventListener("change", () => sortBy(at("sort").value));
document.addEventListener("keydown", (event) => {
  const isField = event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey;
  if (event.key === "Escape" && event.target === at("filter")) at("filter").blur();
  if (isField) return;
  const act = { f: () => toggle("fold"), t: () => toggle("tree"), "/": () => at("filter").focus() }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
heads();
open();
// Durations go on; what came is drawn soon.
setInterval(() => source && history.length && draw(), 1000);
setInterval(() => dirty && draw(), 250);
