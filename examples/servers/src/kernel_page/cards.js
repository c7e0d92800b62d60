// The cards: the newest update in the columns of the timeline's present mode. The scripts of that
// mode follow in the same function. They read a log, and what they read of it is made here from the
// update: the lines are those of the waits, and the rows of the state are tasks and waits.

const cards = { isOpen: false, before: new Map() };

function openCards(isOpen) {
  cards.isOpen = isOpen;
  cards.before.clear();
  const present = at("present");
  present.hidden = !isOpen;
  document.body.classList.toggle("presenting", isOpen);
  if (isOpen) present.focus();
  else at("cards").focus();
  showCards();
}

// Shows the newest update. Cards move for `time` milliseconds.
function showCards(time = 0) {
  if (!cards.isOpen || !known.history.length) return;
  const tasks = [...known.tasks.values()];
  const waits = tasks.flatMap(({ id, waits }) => waits.map((wait) => ({ id, ...wait })));
  const count = waits.length, line = (n) => waits[n]?.text ?? "", waitLine = line;
  const at = waits.map(({ text }) => Number(readLine(text).at) * 1e6);
  const lanes = [{ id: 0, name: "kernel" }, ...tasks].map(({ id, name }) => ({ id, name, events: [], waits: [] }));
  const laneOf = new Map(lanes.map(({ id }, lane) => [id, lane]));
  const trace = { circles: [], timed: false, clock: "real", sources: {} };
  const [taskOf, turn, timePasses] = [[], [], true];
  const why = Why({ line, behind: () => -1, find: () => -1, name: (id) => known.tasks.get(id)?.name ?? null, whole: false });
  const prose = { ...why, say: () => [headline()] };
  const tables = {
    k: new Map(waits.map((_, n) => [n, n])),
    h: new Map(tasks.flatMap(({ id, locks = [] }) => locks.map((name) => [[id, name], null]))),
  };
  const states = {
    go() {}, table: (kind) => tables[kind], get: (key) => known.tasks.get(Number(key.slice(1))),
    changed: () => new Map([...cards.before].map(([id, state]) => [`t${id}`, { state }])),
    number: (row) => (typeof row === "number" ? waits[row].id : row.since),
    start: (row) => (waits[row].target ? "!" : ""), text: (task) => `since=${task.since / 1e6}`,
  };
  const [rowText, openedAt, holderOf, doingOf] = [(row) => row, (row) => row, (key) => key, ({ state }) => state];
  const tasksNow = () => {
    const of = (state) => tasks.filter((task) => task.state === state).map((value) => ({ id: value.id, value }));
    return { cpu: of("running")[0]?.id ?? null, ready: of("ready"), next: [], parked: of("parked") };
  };
  const byId = (a, b) => a.id - b.id, byPlace = (a, b) => a.value.since - b.value.since || a.value.woken - b.value.woken;
  const [timersNow, byDue, siteOf, lineNumber] = [() => [], () => 0, () => null, () => 0];
  const [isOnWaker, hangWords] = [() => true, () => ""];
  const seconds = (micros) => (micros / 1e6).toFixed(6);
  const box = (tag, className, ...parts) => make(tag, { className }, ...parts.filter((part) => part !== null && part !== ""));
