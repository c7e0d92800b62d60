// Rows: each is a lane, or a group of lanes folded into one. Tasks of one kind are a group.

const MANY = 20, FEW = 4;
const groups = new Map();
for (let n = 1; n < lanes.length; n++) {
  const name = kindOfName(lanes[n].name);
  if (!groups.has(name)) groups.set(name, { name, lanes: [], folded: false, flow: null });
  groups.get(name).lanes.push(n);
}
for (const [name, group] of groups) {
  if (group.lanes.length < FEW) groups.delete(name);
  group.folded = group.lanes.length > MANY;
}
const groupOf = new Array(lanes.length).fill(null);
for (const group of groups.values()) for (const n of group.lanes) groupOf[n] = group;

// A row has a `group` if it is the head of a group; otherwise it has the number of its `lane`.
let rows = [];
const rowOf = new Int32Array(lanes.length);

// The lane of the chosen line has a row of its own even if its group is folded. 0 if there is none.
let pinned = 0;

function layRows() {
  rows = [];
  for (let n = 0; n < lanes.length; n++) {
    const group = groupOf[n];
    if (!group) add(n);
    else if (group.lanes[0] === n) {
      rows.push({ lane: -1, group });
      for (const each of group.lanes) {
        if (group.folded) rowOf[each] = rows.length - 1;
        else add(each);
      }
      if (group.folded && groupOf[pinned] === group) add(pinned);
    }
  }
  function add(n) {
    rowOf[n] = rows.length;
    rows.push({ lane: n, group: null });
  }
}

function pin(n) {
  const [before, after] = [pinned, n].map((each) => groupOf[each]?.folded);
  if (n === pinned) return;
  pinned = n;
  if (!before && !after) return;
  layRows();
  measure();
}

function fold(them, folded) {
  for (const group of them) group.folded = folded;
  layRows();
  measure();
  scroll(0);
}

// The group of the chosen line; without one, all of them.
function foldChosen() {
  const group = view.chosen < 0 ? null : groupOf[laneOfLine[view.chosen]];
  const them = group ? [group] : [...groups.values()];
  fold(them, them.some((each) => !each.folded));
  if (group) show(view.chosen);
}

function rowName({ lane, group }) {
  if (group) return `${group.folded ? "▸" : "▾"} ${group.name} (${group.lanes.length})`;
  return lane ? `${lanes[lane].id} ${lanes[lane].name}` : "kernel";
}

// Returns the lanes of a row.
function lanesOf({ lane, group }) {
  return group ? group.lanes : [lane];
}

layRows();
