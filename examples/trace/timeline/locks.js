// Locks: an arrow from a waiting task to the holder of the primitive, as long as the wait. Arrows
// of a circle are marked, and so is the moment when the run failed.

const MOST_LINKS = 200;
const links = trace.links.map(([wait, from, holder], n) => ({ wait, from, holder, to: trace.linkEnds[n][1] }));
links.sort((a, b) => a.from - b.from);
reach(links);
const inCircle = new Set(trace.circles.flat().map(([wait, holder]) => `${wait} ${holder}`));
const isStuck = ({ wait, holder }) => inCircle.has(`${wait} ${holder}`);

// Returns the line that began a wait with the holders of the primitive at a later line: a lock is
// given to another task, and the head of a dump does not say so. A primitive with a name has the
// holders of the state, none while it is handed over; another has those of the links.
const linksOfWait = new Map(links.map(({ wait }) => [wait, []]));
for (const link of links) linksOfWait.get(link.wait).push(link);
function waitLine(wait, now) {
  const text = line(wait), [key, named] = / held-by=([\d,.]+)/.exec(text) ?? ["", ""];
  if (wait >= now) return text;
  const held = holdersAt(now, readLine(text).op) ?? linkedAt(now, wait);
  if (held === null || named.replace(",..", "") === held.join(",")) return text;
  const present = held.length ? ` held-by=${held.slice(0, 4).join(",")}${held.length > 4 ? ",.." : ""}` : "";
  return key ? text.replace(key, present) : text.replace(/ k=/, `${present} k=`);
}

// A link that is open at the end of the log lasts to its last line.
function linkedAt(now, wait) {
  const isOpen = ({ from, to }) => from <= now && (now < to || to === count - 1);
  return linksOfWait.get(wait)?.filter(isOpen).map(({ holder }) => holder) ?? null;
}

// The holders of a primitive at a line, or null if no task of the log took it by its name.
let everTaken = null, lockHolders = { n: -1 };
function holdersAt(n, words) {
  everTaken ??= new Set(Array.from({ length: count }, (_, n) => n).filter((n) => verbOf(n) === "take")
    .map((n) => readLine(line(n)).op));
  if (!everTaken.has(words)) return null;
  if (lockHolders.n !== n) {
    states.go(n);
    lockHolders = { n, of: new Map() };
    for (const key of states.table("h").keys()) {
      const [task, words] = holderOf(key);
      lockHolders.of.set(words, [...lockHolders.of.get(words) ?? [], Number(task)].sort((a, b) => a - b));
    }
  }
  return lockHolders.of.get(words) ?? [];
}

// Draws as many locks as a reader can tell apart.
function locks() {
  const shown = [];
  for (const link of inView(links)) {
    if (laneOf.has(link.holder)) shown.push(link);
    if (shown.length > MOST_LINKS) return;
  }
  for (const link of shown) {
    const { wait, from, to, holder } = link, stuck = isStuck(link);
    const waiter = laneOf.get(taskOf[wait]), held = laneOf.get(holder);
    const [a, b] = [Math.max(px(x(from)), left) + 3, Math.min(px(x(to)), width)];
    const color = stuck ? colors.hit : colors.lock;
    const [y, z] = [middleOf(waiter), middleOf(held)];
    // Two arrows of one moment are side by side.
    const at = Math.min(a + (shown.indexOf(link) % 4) * 7, Math.max(b, a));
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineWidth = stuck ? 2 : 1.25;
    pen.setLineDash(stuck ? [] : [4, 3]);
    pen.beginPath();
    pen.moveTo(at, y);
    pen.lineTo(at, z);
    pen.stroke();
    pen.setLineDash([]);
    const down = z > y ? -7 : 7;
    pen.beginPath();
    pen.moveTo(at, z);
    pen.lineTo(at - 4, z + down);
    pen.lineTo(at + 4, z + down);
    pen.fill();
    pen.fillRect(at - 2, y - 2, 4, 4);
  }
}

const hangWords = () =>
  (trace.hung ? `deadlock of ${trace.hung} task${trace.hung === 1 ? "" : "s"}` : "nothing wakes a task");

const hangAt = () => (trace.hang === null ? -1 : Math.round(px(x(trace.hang))) + 0.5);

// Draws the moment when no task could continue, below all other marks.
function hang() {
  const a = hangAt();
  if (a < left || a > width) return;
  pen.strokeStyle = colors.hit;
  pen.lineWidth = 1.5;
  pen.setLineDash([6, 4]);
  pen.beginPath();
  pen.moveTo(a, TOP);
  pen.lineTo(a, height);
  pen.stroke();
  pen.setLineDash([]);
}

// Writes beside that moment what it is, above all other marks, and at the bottom, where few marks are.
function hangSaid() {
  const a = hangAt();
  if (a < left || a > width) return;
  pen.font = SMALL;
  const text = `hang: ${hangWords()}`;
  const wide = pen.measureText(text).width, from = Math.min(a + 5, width - wide - 8);
  pen.fillStyle = colors.paper;
  pen.fillRect(from - 3, height - 18, wide + 6, 14);
  pen.textAlign = "left";
  pen.fillStyle = colors.hit;
  pen.fillText(text, from, height - 11);
  pen.font = PLAIN;
}
