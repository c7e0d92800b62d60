
// The page: what comes from the server, the answer to "why", the keys.

const at = (id) => document.getElementById(id);
const log = [];
let source = null;

function paused() {
  return source === null;
}

function show() {
  if (!known.history.length) return;
  set(at("headline"), headline());
  set(at("shares"), shares());
  showTrends();
  showLints();
  showHeads();
  showTasks();
  showLocks();
  if (at("log").open) {
    const lines = at("lines"), isBelow = lines.scrollTop + lines.clientHeight > lines.scrollHeight - 20;
    set(lines, log.join("\n"));
    if (isBelow) lines.scrollTop = lines.scrollHeight;
  }
}

// The last minute as three lines, each with its newest number and its largest.
const trends = [["cpu", "CPU", percent], ["ready", "Ready, at most", grouped], ["waiting", "Waiting", grouped]];

function showTrends() {
  const root = at("trends");
  if (!root.children.length) {
    root.innerHTML = trends.map(([, title]) => `<figure class="trend"><figcaption><span>${title}</span><b></b><small></small></figcaption>` +
      `<svg viewBox="0 0 600 100" preserveAspectRatio="none" role="img"><path/></svg></figure>`).join("");
  }
  const last = known.trend.at(-1);
  trends.forEach(([of, title, inWords], nth) => {
    const most = Math.max(...known.trend.map((it) => it[of])), now = inWords(last[of]);
    const [picture, path, number, small] = ["svg", "path", "b", "small"].map((tag) => root.children[nth].querySelector(tag));
    // The newest is at the right, and a minute is the whole width. The base is below the picture.
    const points = known.trend.map((it) => `${(600 - (last.at - it.at) / (TREND / 600)).toFixed(1)} ${(100 - 94 * (most ? it[of] / most : 0)).toFixed(1)}`);
    path.setAttribute("d", `M${points[0].split(" ")[0]} 110L${points.join("L")}L610 ${points.at(-1).split(" ")[1]}V110Z`);
    set(number, now);
    set(small, `most ${inWords(most)}`);
    picture.ariaLabel = `${title} in the last minute: now ${now}, most ${inWords(most)}`;
  });
}

// Changes a list so that it has this many items.
function resize(list, size, item) {
  while (list.children.length > size) list.lastChild.remove();
  while (list.children.length < size) list.append(item());
}

// What is often a mistake, with the lines that show it.
function showLints() {
  const list = at("lints").lastElementChild;
  at("lints").hidden = known.lints.length === 0;
  resize(list, known.lints.length, () => make("li", {}, make("b"), make("span"), make("small", { className: "faint" }), make("pre", { tabIndex: 0 })));
  known.lints.forEach(({ kind, text, at, lines }, nth) => {
    const texts = [kind, `: ${text}. `, `${span(clock() - at)} ago`, lines.join("\n")];
    texts.forEach((text, part) => set(list.children[nth].children[part], text));
  });
}

// Locks, queues and tasks that are waited for: who has them, who waits.
function showLocks() {
  const waits = [...known.tasks.values()].filter(({ state }) => state === "parked")
    .flatMap((task) => task.waits.filter(({ target }) => target).map((wait) => ({ ...wait, task })));
  const found = [...Map.groupBy(waits, ({ target }) => target)];
  const items = found.map(([target, its]) => {
    const newest = its.reduce((a, b) => (b.seq > a.seq ? b : a));
    const holders = newest.kind === "join" ? nameOf(newest.holders[0]) : newest.holders.map(nameOf).join(", ");
    const names = its.slice(0, FEW).map(({ task }) => task.name).join(", ");
    const more = its.length > FEW ? ` and ${grouped(its.length - FEW)} more` : "";
    const longest = span(clock() - Math.min(...its.map(({ task }) => task.since)));
    const by = newest.kind === "join" ? ` (${holders})` : holders ? `, held by ${holders}` : "";
    return `${target}${by}: ${grouped(its.length)} wait${its.length === 1 ? "s" : ""}, longest ${longest}: ${names}${more}`;
  });
  at("free").hidden = items.length > 0;
  const list = at("locks");
  resize(list, items.length, () => make("li"));
  items.forEach((text, nth) => set(list.children[nth], text));
}

// Why.

const whyRow = make("tr", { className: "why" }, make("td", { colSpan: columns.length }));
const asked = { at: 0, lines: "", isAsking: false };

function choose(node) {
  if (node.members) {
    if (!view.open.delete(node.key)) view.open.add(node.key);
  } else {
    view.why = view.why === node.task.id ? null : node.task.id;
    Object.assign(asked, { at: 0, lines: "" });
    whyRow.firstChild.textContent = "…";
    ask();
  }
  show();
}

// Asks again while the panel is open: at most once a second.
async function ask() {
  const id = view.why;
  if (id === null || asked.isAsking || performance.now() - asked.at < 1000) return;
  Object.assign(asked, { at: performance.now() || 1, isAsking: true });
  try {
    const answer = await fetch(`/kernel/why?task=${id}&worker=${known.worker}`);
    if (answer.status === 409 && view.why === id) whyRow.firstChild.textContent = await answer.text();
    if (answer.status === 404 && view.why === id) end(id);
    if (answer.ok && view.why === id) explain(id, (await answer.json()).lines);
  } catch {
    // The feed says that the server is gone.
  } finally {
    asked.isAsking = false;
  }
}

// A task that has ended keeps what was said last.
function end(id) {
  const cell = whyRow.firstChild, text = `Task ${id} has ended. What was known last:`;
  if (cell.firstChild?.textContent === text) return;
  if (cell.textContent === "…") cell.replaceChildren();
  cell.prepend(make("p", { textContent: text }));
}

function explain(id, texts) {
  if (texts.join() === asked.lines) return;
  asked.lines = texts.join();
  const lines = texts.map(readLine);
  const places = new Map(lines.map(({ seq }, place) => [seq, place]));
  const find = (seq) => places.get(seq) ?? -1;
  const cause = Causes();
  const behind = lines.map((line) => find(cause(line)));
  const prose = Why({ line: (n) => texts[n], behind: (n) => behind[n], find, whole: false });
  const last = (verb) => lines.findLastIndex((line) => line.task === id && verb.includes(line.verb));
  const [ran, left, woken] = [last(["run"]), last(["block"]), last(["wake", "deliver", "spawn"])];
  const over = new Set(lines.filter(({ verb }) => ["wake", "deliver"].includes(verb)).map((line) => line.key("k")));
  const paragraphs = [];
  if (left > ran && left > woken) {
    const awaits = lines.flatMap((line, n) => (line.verb === "await" && line.task === id && !over.has(line.key("k")) ? [n] : []));
    const waits = lines[left].op.startsWith("parked") ? awaits : [left];
    const words = waits.map((n) => `${prose.wait(texts[n])}${lines[n].key("at") ? ` at ${lines[n].key("at")}` : ""}`);
    paragraphs.push(`Parked since ${lines[left].at} s (kernel time). It waits for ${words.join(", or for ") || "a waker"}.`);
  }
  const of = ran > woken || left > woken ? ran : woken;
  const answer = of < 0 ? null : prose.why(of);
  if (answer) paragraphs.push(of === ran ? `Its last run: ${answer.sentence}` : `Why it is ready: ${answer.sentence}`);
  const steps = make("ol", { className: "steps" }, ...(answer?.steps ?? []).map(({ seq, text }) =>
    make("li", { textContent: `#${seq} ${text}` })));
  const wasOpen = whyRow.querySelector("details")?.open ?? false;
  const raw = make("details", { open: wasOpen }, make("summary", { textContent: "The lines" }), make("pre", { textContent: texts.join("\n"), tabIndex: 0 }));
  const note = answer?.open ? [make("p", { className: "faint", textContent: "What is behind that is no longer kept." })] : [];
  whyRow.firstChild.replaceChildren(...paragraphs.map((textContent) => make("p", { textContent })), steps, ...note, raw);
}

// The feed.

function open() {
  source = new EventSource(`/kernel/events${location.search}`);
  // It comes again from the start, perhaps of another process.
  source.onopen = () => {
    forget();
    log.length = 0;
    set(at("state"), "live");
  };
  source.onmessage = ({ data }) => {
    const news = JSON.parse(data);
    learn(news);
    log.push(...news.lines);
    log.splice(0, log.length - 200);
    ask();
    show();
    showCards(400);
  };
  source.onerror = () => set(at("state"), "the server is gone; trying again");
}

function pause() {
  if (paused()) open();
  else {
    known.at = clock();
    source.close();
    source = null;
    set(at("state"), "paused");
  }
  set(at("pause"), paused() ? "Resume" : "Pause");
  at("pause").ariaPressed = String(paused());
}

async function dump() {
  try {
    const answer = await fetch("/kernel/dump", { method: "POST" });
    set(at("state"), (await answer.text()).trimEnd());
  } catch {
    set(at("state"), "the server is gone");
  }
}

function shape(name) {
  view.shape = name;
  for (const button of document.querySelectorAll("[data-view]")) button.ariaPressed = String(button.dataset.view === name);
  show();
}

at("pause").addEventListener("click", pause);
at("dump").addEventListener("click", dump);
at("filter").addEventListener("input", ({ target }) => { view.filter = target.value.trim(); show(); });
at("fold").addEventListener("change", ({ target }) => { view.fold = target.checked; show(); });
at("log").addEventListener("toggle", show);
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => shape(button.dataset.view));

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (cards.isOpen) {
    if (key === "Escape" || key === "c") openCards(false);
    else if (key === "p") pause();
    return;
  }
  if (key === "Escape") {
    if (target === at("filter")) target.blur();
    else view.why = null;
    show();
  }
  if (target instanceof HTMLInputElement && target.type !== "checkbox") return;
  if (key === "/") at("filter").focus();
  else if (key === "t") shape(view.shape === "table" ? "tree" : "table");
  else if (key === "p") pause();
  else if (key === "c") openCards(true);
  else if (key === "ArrowDown" || key === "ArrowUp") {
    const buttons = [...document.querySelectorAll("#tasks .name button")];
    const now = buttons.indexOf(document.activeElement);
    buttons[Math.max(0, Math.min(buttons.length - 1, now + (key === "ArrowDown" ? 1 : -1)))]?.focus();
  } else return;
  event.preventDefault();
});

// Durations count on between the updates.
setInterval(() => { if (!document.hidden && !paused()) show(); }, 250);
