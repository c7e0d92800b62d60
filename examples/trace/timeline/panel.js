// Below the lanes: the reason for the chosen line, in sentences and in the lines of the log.

const STEPS = 200;
const whyBox = document.getElementById("why");

// Returns the place of an event, or -1.
function placeOf(seq) {
  const n = firstOf(seqOf, (each) => each >= seq);
  return seqOf[n] === seq ? n : -1;
}

// Maps the line that ends a wait to the line that began the wait. A wait of the kernel's own task
// has no ticket, and begins with the last `block`.
let begins = null;
function begun(end) {
  begins ??= new Map(lanes.flatMap(({ waits }) => waits
    .filter(({ ended }) => ended !== UNENDED).map(({ from, to }) => [to, from])));
  if (begins.has(end) || / k=\d/.test(line(end))) return begins.get(end) ?? -1;
  const { events } = lanes[laneOfLine[end]];
  let e = firstOf(events, (n) => n >= end) - 1;
  while (e >= 0 && verbOf(events[e]) !== "block") e--;
  return e < 0 ? -1 : events[e];
}

const nameOf = (id) => (laneOf.has(id) ? lanes[laneOf.get(id)].name : null);
let notifyLines = null;
function notifies() {
  notifyLines ??= Int32Array.from({ length: count }, (_, n) => n).filter((n) => verbOf(n) === "notify");
  return notifyLines;
}
const prose = Why({ line: (n) => (n < seqOf.length ? line(n) : undefined), behind: (n) => behind[n],
  find: placeOf, begun, notifies, name: nameOf, begins: trace.begins });
const firstOfDump = () => `#${String(seqOf[trace.begins]).padStart(4, "0")}`;
// What is said about the state at a line of the head of a dump.
const unknownAt = (n) => (n >= trace.begins ? ""
  : ` The state here is unknown: the dump has all lines from ${firstOfDump()} on, ` +
    "and of those before only what was in force there.");
// What is said about a line that comes from a line that the log does not have.
const behindIs = () => (trace.selected ? "The selection does not have what is behind that."
  : trace.begins === 0 ? "The trace does not say what is behind that."
  : `What is behind that was before ${firstOfDump()}, where the dump begins.`);

// Returns the lines that a line caused, in order. The lists are made when they are first needed:
// `first` and `next` link the effects of each line.
let effectLists = null;
function effects(n) {
  if (!effectLists) {
    effectLists = { first: new Int32Array(count).fill(-1), next: new Int32Array(count).fill(-1) };
    const { first, next } = effectLists;
    for (let m = count - 1; m >= 0; m--) {
      const from = lineBehind(m);
      if (from < 0) continue;
      next[m] = first[from];
      first[from] = m;
    }
  }
  const found = [];
  for (let m = effectLists.first[n]; m >= 0; m = effectLists.next[m]) found.push(m);
  return [...found, ...woken(n)];
}

// Returns the wakes of a `notify` or `give` line, whose cause is the run of that line.
function woken(n) {
  const verb = verbOf(n), it = readLine(line(n)), found = [];
  const most = verb === "notify" ? it.number("woke") : verb === "give" ? Infinity : 0;
  for (let m = n + 1; m < count && found.length < most; m++) {
    const isWake = verbOf(m) === "wake" && behind[m] === behind[n], ends = taskOf[m] === it.task;
    if (ends && ["block", "exit"].includes(verbOf(m))) break;
    if (!isWake && !(ends && verbOf(m) === "give")) continue;
    if (readLine(line(m)).op !== it.op) continue;
    if (!isWake) break;
    found.push(m);
  }
  return found;
}

function make(name, className, text) {
  return Object.assign(document.createElement(name), { className, textContent: text });
}

// A row that leads to a line.
function leadTo(n, ...parts) {
  const button = document.createElement("button");
  button.append(...parts);
  button.addEventListener("click", () => choose(n, true));
  const item = document.createElement("li");
  item.append(button);
  return item;
}

// At most so many effects are listed.
const EFFECTS = 12;
function effectsBox(n) {
  const all = effects(n), list = make("ol", "effects", "");
  if (!all.length) return [];
  list.append(...all.slice(0, EFFECTS).map((m) => leadTo(m, make("span", "line", line(m).trim()))));
  const rest = all.length > EFFECTS ? `and ${all.length - EFFECTS} more` : "";
  const title = n < trace.begins ? "Of what it caused, the dump has:" : "It caused:";
  return [make("p", "hint", title), list, make("p", "hint", rest)];
}

function tellWhy(n) {
  const { sentence, steps, more, open } = prose.why(n, STEPS);
  const list = make("ol", "chain", "");
  list.append(...steps.map(({ place, text }, nth) => leadTo(place,
    make("span", "step", nth ? text : text[0].toUpperCase() + text.slice(1)),
    make("span", "line", line(place).trim()))));
  const rest = more ? `and ${more} steps before` : open ? behindIs() : "";
  whyBox.replaceChildren(make("p", "sentence", sentence), list, make("p", "hint", rest), ...effectsBox(n));
}

// `isStep`: the reader steps from line to line, and the history gets no entry.
function choose(n, follow, isStep = false) {
  if (stepper.open && n >= 0) return stepTo(n);
  view.chosen = n;
  addressing.soon(!isStep);
  pin(n < 0 ? 0 : laneOfLine[n]);
  closeLife();
  if (n >= 0) {
    tellWhy(n);
    if (follow) show(n);
  }
  if (view.tree) growTree();
  draw();
  dispatchEvent(new CustomEvent("chosen", { detail: n }));
}

// Moves the view to an event.
function show(n) {
  // The reason for a line takes room from the lanes.
  if (stage.clientHeight !== height) measure();
  const span = view.to - view.from, r = rowOf[laneOfLine[n]];
  if (x(n) < view.from || x(n) > view.to) pan(x(n) - span / 2 - view.from);
  const room = height - TOP;
  if (tops[r + 1] > view.top + room) view.top = tops[r + 1] - room;
  if (tops[r] < view.top) view.top = tops[r];
}
