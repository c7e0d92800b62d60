// The panel of the state: opens at a line, steps, plays.

const stepBox = document.getElementById("step");
const climbBox = document.getElementById("climb");
const sourcesBox = document.getElementById("sources");
const main = document.querySelector("main");
const stepper = { open: false, shown: -1, playing: null };

// Returns the contents of a step: the tasks, the changes of its lines, and the names in the line.
// The tasks whose cards are shown have their scopes and waits. Of more than `CARDS` tasks, a box has
// `most` cards.
function stepAt(n, lines, most) {
  states.go(n);
  const tasks = tasksNow(), changed = states.changed(lines), it = readLine(line(n));
  const isChanged = ({ id }) => changed.has(`t${id}`) || id === it.task;
  const shortened = (list, ...how) => firstFew(list, list.length > CARDS ? most : CARDS, ...how);
  const few = {
    ready: shortened(tasks.ready, byPlace, isChanged),
    next: shortened(tasks.next, byPlace, isChanged),
    parked: shortened(tasks.parked, byId, isChanged, true),
  };
  const shown = new Set(Object.values(few).flatMap(({ few }) => few.map(({ id }) => id)));
  shown.add(tasks.cpu);
  return {
    n, tasks, few, changed, theirs: belongings((task) => shown.has(task)), ...goneSince(changed, most),
    names: new Set(it.detail.split(/[ ,]/).map((word) => word.replace("=", ""))), told: told(it),
  };
}

// Returns the cards that have left a box, and by task the scopes and waits that have ended.
function goneSince(changed, most) {
  const gone = new Map(), ghosts = [];
  for (const [key, before] of changed) {
    const value = states.get(key);
    if (before === undefined || value === before) continue;
    if (key[0] === "t") {
      const doing = doingOf(before);
      if (value === undefined || doingOf(value) !== doing) ghosts.push({ id: Number(key.slice(1)), doing });
    } else if ((key[0] === "s" || key[0] === "k") && value === undefined) {
      const task = states.number(before);
      if (!gone.has(task)) gone.set(task, []);
      gone.get(task).push({ key, text: rowText(before) });
    }
  }
  return { gone, ghosts: ghosts.slice(0, most) };
}

// Returns the results that a task gets by a line.
function told({ verb, task, detail }) {
  if (verb !== "run" && verb !== "deliver") return new Map();
  const ended = detail.match(/k=\d+ = [^,]*?(?=, k=| cause=| waited=|$)/g) ?? [];
  return new Map([[task, ended.map((text) => text.trim().replace(/ set-at=\S+/, "")).join(", ")]]);
}

function showStep(n, lines) {
  const places = placesOf(main), scrolled = [climbBox.scrollTop, sourcesBox.scrollTop];
  const show = (root, ...boxes) => root.replaceChildren(...boxes.filter(Boolean));
  let step = null;
  // Its sentence decides how much room there is.
  tellStep(n);
  // The lines of the head of a dump do not make a state.
  if (n < trace.begins) {
    show(climbBox);
    show(sourcesBox, programBox(n));
    stepper.shown = n;
    return;
  }
  const fits = () => climbBox.scrollHeight <= climbBox.clientHeight;
  const showCards = (most) => {
    step = stepAt(n, lines, most);
    show(climbBox, shutdownBox(step), cpuBox(step), readyBox(step), parkedBox(step));
    const { ready, next, parked } = step.few;
    return fits() || !(ready.rest + next.rest + parked.rest);
  };
  // So that no card is cut: first without some details, then with fewer cards.
  climbBox.classList.remove("tight");
  const isAll = showCards(CARDS);
  if (!fits()) climbBox.classList.add("tight");
  if (!isAll && !fits()) {
    let [most, tooMany] = [LEAST_CARDS, CARDS];
    while (tooMany - most > 1) {
      const middle = (most + tooMany) >> 1;
      if (showCards(middle)) most = middle;
      else tooMany = middle;
    }
    showCards(most);
  }
  show(sourcesBox, timersBox(step), outsideBox(step), locksBox(step), programBox(n));
  [climbBox.scrollTop, sourcesBox.scrollTop] = scrolled;
  move(main, places, stepper.playing ? 800 / speed() : MOVE);
  stepper.shown = n;
}

function tellStep(n) {
  const where = `line ${lineNumber(n)} of ${lineNumber(count - 1)} \u00b7 ${seconds(at[n])} s \u00b7 turn ${turn[n]}`;
  document.getElementById("where").textContent = where;
  const { verb, detail, seq, task, name } = readLine(line(n));
  const parts = [`#${String(seq).padStart(4, "0")}`, `${task} ${name}`, make("b", "", verb), detail];
  document.getElementById("whole").replaceChildren(...parts.flatMap((part) => [part, "  "]).slice(0, -1));
  document.getElementById("say").textContent = prose.why(n, 0).sentence + unknownAt(n);
  document.getElementById("to-cause").disabled = lineBehind(n) < 0;
}

// Steps to a line. If the step goes forward over several lines, marks all their changes.
function stepTo(n) {
  if (!count) return;
  n = Math.min(count - 1, Math.max(0, n));
  const lines = n > view.chosen ? Math.min(n - view.chosen, 1000) : 1;
  view.chosen = n;
  pin(laneOfLine[n]);
  showStep(n, lines);
  show(n);
  draw();
  if (view.tree) growTree();
  addressing.soon();
  dispatchEvent(new CustomEvent("chosen", { detail: n }));
}

function runFrom(n, by) {
  do n += by; while (n > 0 && n < count - 1 && verbOf(n) !== "run");
  return n;
}

// Returns the first line of the next turn or, going back, of this turn or the turn before.
function turnFrom(n, by) {
  if (by > 0) return firstOf(turn, (each) => each > turn[n]);
  const first = firstOf(turn, (each) => each >= turn[n]);
  return first < n || !n ? first : firstOf(turn, (each) => each >= turn[n - 1]);
}

// Turns increase, unless logs were joined.
const stepBy = {
  line: (by) => stepTo(view.chosen + by),
  run: (by) => stepTo(runFrom(view.chosen, by)),
  turn: (by) => stepTo(turnFrom(view.chosen, by)),
  cause: () => lineBehind(view.chosen) >= 0 && stepTo(lineBehind(view.chosen)),
};

function openPanel(n) {
  stepper.open = true;
  main.classList.add("stepping");
  document.body.classList.add("stepping");
  for (const it of [stepBox, climbBox, sourcesBox]) it.hidden = false;
  if (!document.getElementById("legend").hidden) toggleLegend();
  document.getElementById("panel").setAttribute("aria-pressed", true);
  view.chosen = n;
  measure();
  stepTo(n);
  addressing.soon(true);
}

function closePanel() {
  pause();
  stepper.open = false;
  main.classList.remove("stepping");
  document.body.classList.remove("stepping");
  for (const it of [stepBox, climbBox, sourcesBox]) it.hidden = true;
  document.getElementById("panel").setAttribute("aria-pressed", false);
  measure();
  choose(view.chosen, true);
}

function togglePanel() {
  if (stepper.open) closePanel();
  else if (count) openPanel(Math.max(0, view.chosen));
}

const speed = () => Number(document.getElementById("speed").value);

function play() {
  if (stepper.playing) return pause();
  if (view.chosen >= count - 1) stepTo(trace.begins);
  document.getElementById("play").textContent = "\u23f8 pause";
  const next = () => {
    if (view.chosen >= count - 1) return pause();
    stepBy.line(1);
    stepper.playing = setTimeout(next, 1000 / speed());
  };
  stepper.playing = setTimeout(next, 1000 / speed());
}

function pause() {
  clearTimeout(stepper.playing);
  stepper.playing = null;
  document.getElementById("play").textContent = "\u25b6 play";
}

const panelKeys = {
  ArrowLeft: () => stepBy.line(-1),
  ArrowRight: () => stepBy.line(1),
  "Shift+ArrowLeft": () => stepBy.run(-1),
  "Shift+ArrowRight": () => stepBy.run(1),
  PageUp: () => stepBy.turn(-1),
  PageDown: () => stepBy.turn(1),
  Enter: () => stepBy.cause(),
  " ": play,
  Escape: closePanel,
};

for (const button of document.querySelectorAll("#step [data-step]")) {
  const [kind, by] = button.dataset.step.split(" ");
  button.addEventListener("click", () => {
    pause();
    stepBy[kind](Number(by));
  });
}
document.getElementById("play").addEventListener("click", play);
document.getElementById("panel").addEventListener("click", togglePanel);
