// The log. Only the rows that can be seen are in the page: a log may have 80,000 lines.

const ROW = 18;
const log = {
  box: element("log"),
  rows: element("rows"),
  // The program that has written it.
  program: "",
  lines: [],
  // How many lines at the top are remarks, which are not events.
  heads: 0,
  // The event that the reader has chosen, from 0; -1 for none.
  chosen: -1,
  // The events that led to it.
  causes: new Set(),
  // The line from which on the kernel cleans up after a hang; Infinity without one. A rule, which is a
  // row, is above it.
  hang: Infinity,
  // The line of the program for each line of the log, or 0.
  sites: [],
};

const eventCount = () => log.lines.length - log.heads;
const topOf = (line) => (line + (line >= log.hang)) * ROW;
const words = (line) => line.trim().split(/\s+/);
// A note can have any text, so the verb is found by its column.
const isEvent = (verb, word) => (line) => words(line)[5] === verb && words(line)[6] === word;
const numberOf = (event) => Number(/#(\d+)/.exec(log.lines[event + log.heads])[1]);

// Returns the line of the program for each line of the log, or 0. An event has its own, by `at=` or,
// by its number, in `given`; or it has that of the wait that it ends. A task that is spawned, and a
// deadlock, have theirs in a line that follows.
function sitesOf(lines, given) {
  const sites = lines.map(() => 0), waits = new Map(), bySeq = new Map(), open = new Map();
  for (const [n, line] of lines.entries()) {
    if (line.startsWith("#")) continue;
    const [, , seq, task, , verb, word, , , child] = words(line), ticket = / k=(\d+)/.exec(line)?.[1];
    const close = (key) => {
      if (open.has(key)) sites[open.get(key)] = sites[n];
      open.delete(key);
    };
    // A note can have any text.
    if (verb === "note" || verb === "notify") sites[n] = given.get(Number(seq.slice(1))) ?? 0;
    else if (["wake", "deliver", "run"].includes(verb)) sites[n] = waits.get(ticket) ?? 0;
    else if (verb === "fire") sites[n] = bySeq.get(/ cause=(#\d+)/.exec(line)?.[1]) ?? 0;
    // The site of `main` is in no program.
    else if (!line.includes(" parent=-")) sites[n] = Number(/ at=program:(\d+)/.exec(line)?.[1] ?? 0);
    bySeq.set(seq, sites[n]);
    if (verb === "block") {
      waits.set(ticket, sites[n]);
      close(`block ${task}`);
    }
    if (verb === "spawn") close(`spawn ${task}`);
    if (verb === "warn" && word === "deadlock") open.set(`block ${task}`, n);
    if (verb === "trap" && word === "spawn") open.set(`spawn ${child}`, n);
  }
  return sites;
}

function showRun({ log: lines, program, problems, report, lines: sites, took }) {
  showProblems(problems);
  document.body.classList.toggle("stale", !lines);
  if (lines) {
    log.program = program;
    log.lines = lines.trimEnd().split("\n");
    log.heads = Math.max(0, log.lines.findIndex((line) => !line.startsWith("#")));
    [log.chosen, log.causes, log.sites] = [-1, new Set(), sitesOf(log.lines, new Map(sites))];
    timeline.isCurrent = false;
    const hang = report ? log.lines.findIndex(isEvent("drop", "its_run_failed")) : -1;
    log.hang = hang < 0 ? Infinity : hang;
    element("all").style.height = `${topOf(log.lines.length)}px`;
    showReport(report);
    showHint();
    if (hang > 0) showRow(hang);
  }
  tell(...statusOf(lines, problems, report));
  drawRows();
  paint();
  // For the test of the page: how long the first log and this run took.
  document.body.dataset.shown ??= Math.round(performance.now());
  document.body.dataset.took = took;
}

function statusOf(lines, problems, report) {
  const strong = (text) => make("b", "", text);
  const at = problems[0]?.[0];
  if (!lines) {
    const before = log.lines.length > 0 ? "; the log is still that of the program before" : "";
    return [strong("Not run"), `: see line ${at}${before}`];
  }
  const end = `${Math.round(words(log.lines.at(-1))[0] * 1e6) / 1000} ms of virtual time`;
  const size = `${eventCount().toLocaleString("en")} lines in the log`;
  if (report) return [strong("Stuck"), ` at ${end}: no task can continue; ${size}`];
  if (at) return [strong(`Failed in line ${at}`), `, and ended after ${end}; ${size}`];
  return [strong("Done"), ` after ${end}; ${size}`];
}

function drawRows() {
  const { box, rows, lines, heads, hang } = log;
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
  const end = Math.min(lines.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 8);
  const caret = caretLine();
  rows.style.top = `${topOf(first)}px`;
  rows.replaceChildren(...lines.slice(first, end).flatMap((line, n) => {
    const event = first + n - heads;
    if (event < 0) return [make("div", "head", line)];
    const row = rowOf(line, event, log.sites[first + n] === caret);
    row.classList.toggle("after", first + n >= hang);
    return first + n === hang && n > 0 ? [make("div", "rule", RULE), row] : [row];
  }));
  box.setAttribute("aria-activedescendant", log.chosen < 0 ? "" : `event-${log.chosen}`);
}

const RULE = "every task is blocked forever: from here the kernel cleans up";

// The tasks that are in every log.
const GIVEN = {
  1: "Task 1 `wakeup` is the kernel's own, and waits for wake-ups from other threads",
  2: "Task 2 `main` spawns the tasks of the program, and waits for the end of each",
};

function rowOf(line, event, isOfCaret) {
  const [, , , task, , verb] = words(line);
  const row = make("div", `v-${verb}`, line);
  row.id = `event-${event}`;
  row.title = GIVEN[task] ?? "";
  row.setAttribute("role", "option");
  row.setAttribute("aria-selected", event === log.chosen);
  row.setAttribute("aria-setsize", eventCount());
  row.setAttribute("aria-posinset", event + 1);
  if (task in GIVEN) row.classList.add("given");
  if (isOfCaret) row.classList.add("of-caret");
  if (log.causes.has(event)) row.classList.add("cause");
  if (event === log.chosen) row.classList.add("chosen");
  row.addEventListener("click", () => choose(event));
  return row;
}

// Chooses an event: in the log, in the program and, unless it was chosen there, in the timeline.
function choose(event, isFromTimeline = false) {
  if (event < 0 || event >= eventCount()) return;
  [log.chosen, log.causes] = [event, new Set()];
  showRow(event + log.heads);
  if (!isFromTimeline) timelineInside()?.choose(event, true);
  kernel.worker.postMessage({ why: event, program: log.program });
  drawRows();
  paint();
  showMark();
}

// Scrolls the log so that a line has its neighbours around it.
function showRow(line) {
  const { box } = log, top = topOf(line);
  if (top < box.scrollTop + ROW) box.scrollTop = top - ROW;
  if (top + 3 * ROW > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + 3 * ROW - box.clientHeight;
  }
}

// Shows an event that comes from the line of the caret, if no such event can be seen.
function showLinesOf(caret) {
  const { box } = log;
  const found = log.sites.flatMap((site, n) => site === caret ? [n] : []);
  const isSeen = (n) => topOf(n) >= box.scrollTop && topOf(n) + ROW <= box.scrollTop + box.clientHeight;
  if (found.length > 0 && !found.some(isSeen)) showRow(found[0]);
}

log.box.addEventListener("scroll", drawRows);
log.box.addEventListener("keydown", (event) => {
  const by = {
    ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity,
  }[event.key];
  if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  choose(Math.min(eventCount() - 1, Math.max(0, log.chosen + by)));
});
