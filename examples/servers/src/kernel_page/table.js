
// The table of tasks, flat or as a tree. Rows are kept and changed in place, so that the focus and
// the place of the page stay.

const view = { sort: "name", down: false, filter: "", fold: true, shape: "table", open: new Set(), why: null };

const columns = [
  ["name", "Task"], ["state", "State"], ["wait", "Waits for"], ["until", "Ends by"],
  ["cpu", "CPU, 10 s"], ["runs", "Runs"], ["site", "Source"],
];

const rank = { running: 0, ready: 1, parked: 2 };

// By what a column sorts: texts, or numbers. A time that is not there comes last.
const sorts = {
  name: (task) => task.id,
  state: (task) => rank[task.state] * 1e15 + task.since,
  wait: (task) => waitText(task),
  until: (task) => limitOf(task)?.until ?? Infinity,
  cpu: (task) => -shareOf(task),
  runs: (task) => -task.runs,
  site: (task) => siteOf(task),
};

function sorted(nodes) {
  const by = sorts[view.sort], sign = view.down ? -1 : 1;
  // A family stands where its first member would, and where its sum would.
  const sums = { cpu: (all) => -all.reduce((sum, task) => sum + shareOf(task), 0), runs: (all) => -all.reduce((sum, task) => sum + task.runs, 0) };
  const key = ({ task, members }) => {
    if (!members) return by(task);
    if (sums[view.sort]) return sums[view.sort](members);
    return members.map(by).reduce((a, b) => (b < a ? b : a));
  };
  const keyed = nodes.map((node) => [key(node), node]);
  keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
  return keyed.map(([, node]) => node);
}

function wanted(task) {
  const text = `${task.name} ${task.id} ${task.state} ${waitText(task)} ${kindOf(task)}`.toLowerCase();
  return view.filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

// Tasks, with large families as one node.
function families(tasks, parent) {
  const found = Map.groupBy(tasks, (task) => task.family);
  return [...found].flatMap(([family, members]) => (view.fold && members.length > FEW
    ? [{ key: `${parent}/${family}`, family, members }] : members.map((task) => ({ key: String(task.id), task }))));
}

// The nodes to show, in their order, each with what stands before its name.
function listed() {
  const tasks = [...known.tasks.values()];
  const match = tasks.filter(wanted);
  return view.shape === "table" ? flat(families(match, "")) : grown(match);
}

function flat(nodes) {
  return sorted(nodes).flatMap((node) => {
    const isOpen = node.members && view.open.has(node.key);
    const inside = isOpen ? sorted(node.members.map((task) => ({ key: String(task.id), task }))) : [];
    return [node, ...inside.map((it) => ({ ...it, guide: "   " }))];
  });
}

function grown(match) {
  // With all that is above what is wanted.
  const shown = new Map();
  for (let task of match) {
    for (; task && !shown.has(task.id); task = known.tasks.get(task.parent)) shown.set(task.id, task);
  }
  const below = Map.groupBy(shown.values(), ({ parent }) => (shown.has(parent) ? parent : null));
  const hits = new Set(match);
  const list = [];
  const grow = (nodes, before, isRoot) => sorted(nodes).forEach((node, nth, all) => {
    const isLast = nth === all.length - 1;
    const guide = isRoot ? "" : before + (isLast ? "└─ " : "├─ ");
    const next = isRoot ? "" : before + (isLast ? "   " : "│  ");
    list.push({ ...node, guide, aside: Boolean(node.task) && !hits.has(node.task) });
    if (node.task) grow(families(below.get(node.task.id) ?? [], node.task.id), next, false);
    else if (view.open.has(node.key)) grow(node.members.map((task) => ({ key: String(task.id), task })), next, false);
  });
  grow(families(below.get(null) ?? [], ""), "", true);
  return list;
}

const signs = { running: "●", ready: "◐", parked: "○" };

// The texts of the cells.
function cells({ task, members }) {
  if (task) {
    const end = limitOf(task);
    return {
      state: `${signs[task.state]} ${task.state} ${span(clock() - task.since)}`,
      wait: task.state === "parked" ? waitText(task) || "waker" : "",
      until: end && task.state === "parked" ? `${until(end)} (${end.what})` : "",
      cpu: percent(shareOf(task)), share: shareOf(task), runs: grouped(task.runs), site: siteOf(task),
    };
  }
  const share = members.reduce((sum, it) => sum + shareOf(it), 0);
  const parked = members.filter(({ state }) => state === "parked");
  const ends = members.filter(({ state }) => state === "parked").map(limitOf).filter(Boolean);
  const first = ends.reduce((a, b) => (a && a.until <= b.until ? a : b), null);
  const since = Math.min(...parked.map((it) => it.since));
  return {
    state: tally(members.map(({ state }) => `${state}`), 3),
    wait: parked.length ? `${tally(parked.map(kindOf), 3)}; longest ${span(clock() - since)}` : "",
    until: first ? `first ${until(first)}` : "", cpu: percent(share), share,
    runs: grouped(members.reduce((sum, it) => sum + it.runs, 0)), site: "",
  };
}

const set = (cell, text) => { if (cell.textContent !== text) cell.textContent = text; };

function make(tag, props = {}, ...children) {
  const made = Object.assign(document.createElement(tag), props);
  made.append(...children);
  return made;
}

function rowOf(node) {
  const row = make("tr");
  row.dataset.key = node.key;
  const button = make("button", { type: "button" });
  const name = make("td", { className: "name" }, make("span", { className: "guide", ariaHidden: "true" }), button, make("small"));
  row.append(name, ...columns.slice(1).map(([className]) => make("td", { className })));
  row.querySelector(".cpu").append(make("span"), make("i"));
  button.addEventListener("click", () => choose(row.node));
  return row;
}

function fill(row, node) {
  const { task, members } = node, isOpen = task ? view.why === task.id : view.open.has(node.key);
  row.node = node;
  row.className = `${task ? task.state : "group"}${node.aside ? " aside" : ""}`;
  const [guide, button, small] = row.firstChild.children;
  set(guide, node.guide ?? "");
  set(button, task ? task.name : `${isOpen ? "▾" : "▸"} ${node.family} (${grouped(members.length)})`);
  set(small, task ? ` ${task.id}` : "");
  button.ariaExpanded = String(isOpen);
  const texts = cells(node);
  for (const [name] of columns.slice(1)) {
    const cell = row.querySelector(`.${name}`);
    set(name === "cpu" ? cell.firstChild : cell, texts[name]);
  }
  row.querySelector(".cpu i").style.width = texts.share < 0.01 ? "0" : `${Math.min(100, texts.share * 100)}%`;
}

const rows = new Map();

function showTasks() {
  const nodes = listed(), body = document.getElementById("tasks");
  const keys = new Set(nodes.map(({ key }) => key));
  for (const [key, row] of rows) if (!keys.has(key)) { row.remove(); rows.delete(key); }
  let place = body.firstChild;
  const put = (row) => { if (row === place) place = place.nextSibling; else body.insertBefore(row, place); };
  // A task that has ended, or is not shown, keeps its answer, on top.
  if (view.why !== null && !nodes.some(({ task }) => task?.id === view.why)) put(whyRow);
  for (const node of nodes) {
    const row = rows.get(node.key) ?? rowOf(node);
    rows.set(node.key, row);
    fill(row, node);
    put(row);
    if (node.task && node.task.id === view.why) put(whyRow);
  }
  if (view.why === null) whyRow.remove();
  const none = document.getElementById("none");
  none.hidden = nodes.length > 0;
  set(none, view.filter ? `No task matches "${view.filter}".` : "No tasks.");
}

function showHeads() {
  const heads = document.getElementById("heads");
  if (!heads.children.length) {
    heads.append(...columns.map(([name, text]) => {
      const button = make("button", { type: "button", textContent: text });
      button.addEventListener("click", () => {
        view.down = view.sort === name && !view.down;
        view.sort = name;
        show();
      });
      return make("th", { className: name, scope: "col" }, button);
    }));
  }
  for (const [nth, [name, text]] of columns.entries()) {
    const head = heads.children[nth], isBy = view.sort === name;
    if (isBy) head.ariaSort = view.down ? "descending" : "ascending";
    else head.removeAttribute("aria-sort");
    set(head.firstChild, isBy ? `${text} ${view.down ? "▾" : "▴"}` : text);
  }
}
