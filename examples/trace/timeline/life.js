// The life of a task: its runs, the times for which it was ready, and each kind of wait, with
// percentiles and a histogram. The longest of each leads to its line.

// A histogram has a column for zero, and then columns each of which is for twice the length of the
// one before. The second column also has all that is shorter.
const BINS = 14;
// With fewer values, a high percentile says no more than the maximum.
const LEAST_VALUES = 10;
const lifeBox = document.getElementById("life");

function openLife(id) {
  view.task = id;
  const lane = lanes[laneOf.get(id)], kinds = new Map();
  for (let p = 0; p < lane.from.length; p++) {
    const [rank, name, color] = pieceKind(lane, p);
    if (!kinds.has(name)) kinds.set(name, { rank, name, color, lengths: [] });
    kinds.get(name).lengths.push({ length: lifeLength(lane, p), n: lane.from[p] });
  }
  const rows = [...kinds.values()].sort((a, b) => a.rank - b.rank || sumOf(b) - sumOf(a));
  const heads = ["", "times", "in all", "half up to", "90 % up to", "99 % up to", "longest",
    "how long; each column twice the one before"];
  const table = box("table", "", box("thead", "", box("tr", "", ...heads.map((text) => box("th", "", text)))));
  table.append(box("tbody", "", ...rows.map(lifeRow)));
  const hasUnknown = rows.some(({ lengths }) => lengths.some(({ length }) => length === null));
  lifeBox.replaceChildren(box("p", "sentence", `Task ${id} ${lane.name}`), box("p", "hint", lifeFacts(lane)), table,
    box("p", "hint", hasUnknown ? "?: This log does not say how long runs took. Record it with --timed." : ""));
  lifeBox.hidden = false;
  whyBox.hidden = true;
  pin(laneOf.get(id));
  draw();
  addressing.soon(true);
}

function closeLife() {
  view.task = 0;
  lifeBox.hidden = true;
  whyBox.hidden = false;
}

function pieceKind({ state, from }, p) {
  if (state[p] === RUN) return [0, "had the CPU", colors.run];
  if (state[p] === READY) return [1, "was ready", colors.ready];
  return [2, `waited for ${waitKind(from[p])}`, colors.blocked];
}

// `bytes on c1` and `bytes on c2` are of one kind, and so are sleeps of all lengths.
function waitKind(n) {
  if (verbOf(n) !== "block") return "an event";
  const kind = readLine(line(n)).word(0);
  if (kind === "sleep") return "the end of a sleep";
  if (kind === "parked") return "one of several events";
  const name = (part) => (typeof part === "number" ? cast.kind(part) : part);
  const words = prose.waitInShort(line(n)).map(name).join("");
  return kindOfName(words.replace(/, (held by|which) .*/, ""));
}

// In microseconds or, if no time passes in the log, in turns. Null if the log does not say how long
// the run was: between its lines the clock stands still.
function lifeLength(lane, p) {
  if (!timePasses) return byTurn[lane.to[p]] - byTurn[lane.from[p]];
  const isKnown = lane.state[p] !== RUN || trace.timed || trace.clock === "virtual";
  return isKnown ? pieceLength(lane, p) : longRuns.get(lane.from[p]) ?? null;
}

const sumOf = ({ lengths }) => lengths.reduce((sum, { length }) => sum + length, 0);

function lifeText(length) {
  if (timePasses) return columnsAt.lasting(length);
  const turns = Number(length.toFixed(1));
  return `${turns} turn${turns === 1 ? "" : "s"}`;
}

function lifeFacts({ events, end }) {
  const [first] = events, born = readLine(line(first)), parent = born.number("parent"), site = born.key("at");
  const by = parent === null ? "Started from outside" : `Spawned by ${who(parent)}`;
  const over = end < 0 ? "not ended" : `ended at ${seconds(at[end])} s (${readLine(line(end)).word(0)})`;
  return `${by} at ${seconds(at[first])} s${site ? `, ${site}` : ""}; ${over}; ${events.length} lines.`;
}

function lifeRow({ name, color, lengths }) {
  const known = lengths.map(({ length }) => length).filter((length) => length !== null).sort((a, b) => a - b);
  const times = String(lengths.length), most = known.at(-1);
  const row = (cells) => box("tr", "", ...cells.map((cell) => box("td", "", cell)));
  if (!known.length) return row([name, times, "?", "?", "?", "?", "?", ""]);
  const upTo = (share) => {
    // The known lengths are those of long runs only, and say nothing about most of them.
    if (known.length < lengths.length) return "?";
    const isTooFew = share > 0.5 && known.length < LEAST_VALUES;
    return isTooFew ? "" : lifeText(known[Math.ceil(share * known.length) - 1]);
  };
  const lead = make("button", "lead", lifeText(most));
  lead.addEventListener("click", () => choose(lengths.find(({ length }) => length === most).n, true));
  // Of some runs the length is known, by their `longrun` lines.
  const sum = `${known.length < lengths.length ? "> " : ""}${lifeText(sumOf({ lengths }))}`;
  return row([name, times, sum, upTo(0.5), upTo(0.9), upTo(0.99), lead, histogram(known, color)]);
}

// `sorted` has the lengths, from the shortest to the longest.
function histogram(sorted, color) {
  const shortest = sorted.find((length) => length > 0) ?? 1, longest = Math.max(sorted.at(-1), shortest);
  // The second column begins at this power of two.
  const first = Math.max(Math.floor(Math.log2(shortest)), Math.floor(Math.log2(longest)) - BINS + 1);
  const bins = new Array(BINS + 1).fill(0);
  for (const length of sorted) {
    const nth = Math.floor(Math.log2(length)) - first + 1;
    bins[length > 0 ? Math.max(1, nth) : 0]++;
  }
  const highest = Math.max(...bins), bars = bins.map((many, nth) => {
    const from = lifeText(2 ** (first + nth - 1)), to = lifeText(2 ** (first + nth)), bar = box("span", "");
    bar.title = `${many}: ${["no time", `up to ${to}`][nth] ?? `${from} to ${to}`}`;
    bar.style.height = many ? `max(2px, ${(100 * many) / highest}%)` : "0";
    bar.style.background = color;
    return bar;
  });
  return box("div", "bins", ...bars);
}
