// The tree of tasks at the chosen line, as `trace tree` prints it.

const ALIKE = 20, LOOK = 50, DEEPEST = 24;
const treeBox = document.getElementById("tree");

// Returns the state of a task at a line, and the line since which it lasts.
function doing(lane, n) {
  const p = firstOf(lane.from, (from) => from > n) - 1;
  if (p < 0) return { state: RUN, since: n, text: "unknown" };
  const [state, since] = [lane.state[p], lane.from[p]];
  const long = span(at[n] - at[since]);
  if (state === RUN) return { state, since, text: `runs since ${(at[since] / 1e6).toFixed(6)}` };
  if (state === READY) return { state, since, text: `ready for ${long}` };
  const open = openWaits(lane, n);
  if (!open.length) open.push(since);
  const words = open.slice(0, 3).map((block) => prose.wait(waitLine(block, n), n));
  if (open.length > 3) words.push(`any of ${open.length - 3} other waits`);
  const sites = open.map((block) => readLine(line(block)).key("at")).filter(Boolean);
  const where = sites.filter((site, nth) => site !== sites[nth - 1]).slice(0, 3).join(", ");
  const site = where && ` at ${where}`, phase = phaseOf(lane, n);
  return { state, since, text: `${phase}waits ${long}${site} for ${words.join(" or ")}` };
}

// Returns the phase of the connection that a task serves: the phase of its own deadline, if armed.
// A server makes the deadline when it begins, and arms it in each of its waits.
function phaseOf({ events }, n) {
  const last = firstOf(events, (event) => event > n) - 1;
  const first = Array.from(events.slice(0, LOOK), (event) => readLine(line(event)));
  const its = first.find(({ op }) => op === "connection_deadline")?.outcome;
  for (let e = last; its && e >= 0 && e > last - LOOK; e--) {
    const { verb, word, key } = readLine(line(events[e]));
    if (word(0) !== its) continue;
    if (verb === "disarm") return "";
    if (verb !== "arm") continue;
    const fired = firesOf(its).some((fire) => fire > events[e] && fire <= n);
    return key("phase") && !fired ? `${key("phase")}: ` : "";
  }
  return "";
}

// The lines at which deadlines fired. They belong to the kernel.
let fires = null;
function firesOf(deadline) {
  fires ??= Map.groupBy(lanes[0].events.filter((n) => verbOf(n) === "fire"),
    (n) => readLine(line(n)).word(0));
  return fires.get(deadline) ?? [];
}

// Returns the name of a task, with the peer of its connection. A task that accepts a connection
// spawns the task for it immediately after that.
function nameAndPeer({ name, events }, n) {
  const spawn = events[0], parent = readLine(line(spawn)).number("parent");
  const around = laneOf.has(parent) ? lanes[laneOf.get(parent)].events : [];
  const before = firstOf(around, (event) => event > spawn) - 1;
  for (let e = before; e >= 0 && e > before - 4; e--) {
    const it = readLine(line(around[e]));
    if (it.verb !== "accept") continue;
    const uses = events.slice(0, LOOK).some((event) => event <= n && serves(event, it.word(2)));
    return uses && it.key("peer") ? `${name} ${it.key("peer")}` : name;
  }
  return name;
}

function serves(n, alias) {
  const { verb, word } = readLine(line(n));
  return (verb === "io" && word(0) === alias) ||
    (["block", "await"].includes(verb) && word(0) === "io" && word(1) === alias);
}

// Returns the tasks that live at a line, by their parent, or by 0 if the parent has ended.
function families(n) {
  const alive = lanes.slice(1).filter(({ events, end }) => events[0] <= n && (end < 0 || end > n));
  const ids = new Set(alive.map(({ id }) => id));
  const children = new Map();
  for (const lane of alive) {
    const parent = readLine(line(lane.events[0])).number("parent");
    const at = ids.has(parent) ? parent : 0;
    if (!children.has(at)) children.set(at, []);
    children.get(at).push({ lane, gone: parent !== null && at !== parent ? parent : null });
  }
  return { children, count: alive.length };
}

// The rows of the tree: of tasks of one parent with names that differ in numbers alone, the first
// `ALIKE` have a row each.
function treeAt(n) {
  const { children, count } = families(n);
  const rows = [], branchOf = ({ guides, depth }, branch) =>
    guides + branch + (depth > DEEPEST ? `(depth ${depth}) ` : "");
  // The nodes to draw, the next one last. A tree may be deeper than the stack of calls.
  const nodes = nodesOf(0, { guides: "", depth: 0 });
  while (nodes.length) {
    const { lane, gone, family, states, before, branch } = nodes.pop();
    if (!lane) {
      rows.push([branchOf(before, branch), family, states, n]);
      continue;
    }
    const { since, text } = doing(lane, n);
    const left = gone === null ? "" : ` (task ${gone}, its parent, has ended)`;
    rows.push([branchOf(before, branch), `${lane.id} ${nameAndPeer(lane, n)}`, text + left, since]);
    const depth = before.depth + 1;
    const more = depth > DEEPEST ? "" : branch === "├─ " ? "│  " : "   ";
    for (const node of nodesOf(lane.id, { guides: before.guides + more, depth })) nodes.push(node);
  }
  // Returns the nodes below a task, the last first.
  function nodesOf(id, before) {
    const folded = new Map(), seen = new Map(), found = [];
    for (const child of children.get(id) ?? []) {
      const family = kindOfName(child.lane.name), nth = (seen.get(family) ?? 0) + 1;
      seen.set(family, nth);
      if (nth <= ALIKE) found.push(child);
      else {
        if (!folded.has(family)) folded.set(family, [0, 0, 0]);
        folded.get(family)[doing(child.lane, n).state]++;
      }
    }
    for (const [family, [run, ready, blocked]] of folded) {
      const states = `${run} running, ${ready} ready, ${blocked} waiting`;
      found.push({ family: `and ${run + ready + blocked} more ${family}:`, states });
    }
    const last = found.length - 1;
    return found.map((node, nth) => ({ ...node, before, branch: nth === last ? "└─ " : "├─ " })).reverse();
  }
  return { head: `${count} task${count === 1 ? "" : "s"} at ${(at[n] / 1e6).toFixed(6)} s`, rows };
}

function growTree() {
  const n = view.chosen < 0 ? count - 1 : view.chosen;
  if (n < 0) return;
  const { head, rows } = treeAt(n);
  const list = document.createElement("ol");
  list.append(...rows.map(([branch, name, text, since]) =>
    leadTo(since, make("span", "branch", branch), make("b", "", name), make("span", "", text))));
  treeBox.replaceChildren(make("p", "sentence", head), list);
  for (const branch of list.querySelectorAll(".branch")) {
    branch.parentElement.style.setProperty("--deep", branch.textContent.length);
  }
}

function toggleTree() {
  view.tree = !view.tree;
  treeBox.hidden = !view.tree;
  document.getElementById("grow").setAttribute("aria-pressed", view.tree);
  if (view.tree) growTree();
}

// Returns the tree as text.
function treeText(n) {
  const { head, rows } = treeAt(n);
  return [head, ...rows.map(([branch, name, text]) => `${branch}${name} ${text}`)].join("\n");
}
