// Pointer, keys and buttons.

const tip = document.getElementById("tip");

// Returns the event of a row that is nearest to a place on the stage.
function nearest(a, b) {
  const r = rowAt(b - TOP + view.top);
  if (a < left || b < TOP || !rows[r]) return -1;
  const value = valueOf(a);
  let best = -1;
  for (const { events } of lanesOf(rows[r]).map((n) => lanes[n])) {
    const right = firstOf(events, (event) => x(event) >= value);
    for (const n of events.subarray(Math.max(0, right - 1), right + 1)) {
      if (best < 0 || Math.abs(x(n) - value) < Math.abs(x(best) - value)) best = n;
    }
  }
  return best;
}

// Returns the value of the axis at a horizontal place.
function valueOf(a) {
  return view.from + ((Math.max(a, left) - left) / (width - left)) * (view.to - view.from);
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// A click on the name of a group folds or unfolds the group, on that of a task it shows the task's
// life. Any other click chooses an event.
function click(a, b) {
  const row = b < TOP ? null : rows[rowAt(b - TOP + view.top)];
  if (a < left && row?.group) fold([row.group], !row.group.folded);
  else if (a < left && row?.lane > 0) openLife(lanes[row.lane].id);
  else if (b < TOP) select(null, null);
  else choose(nearest(a, b), false);
}

const pointers = new Map();
let moved = false, ranges = false;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, place(event));
  moved = false;
  // In the strip, or with Shift, choose a range.
  const [a, b] = place(event);
  ranges = a >= left && (b < TOP || event.shiftKey);
});
canvas.addEventListener("pointermove", (event) => {
  const [a, b] = place(event);
  const before = pointers.get(event.pointerId);
  if (!before) return hover(a, b);
  if (pointers.size === 2) {
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
    const [was, is] = [Math.abs(before[0] - other[0]), Math.abs(a - other[0])];
    if (was > 8 && is > 8) zoom(was / is);
    moved = true;
  } else if (moved || Math.hypot(a - before[0], b - before[1]) > 4) {
    moved = true;
    if (ranges) return drag(valueOf(before[0]), valueOf(a));
    pan(((before[0] - a) / (width - left)) * (view.to - view.from));
    scroll(before[1] - b);
  } else return;
  pointers.set(event.pointerId, [a, b]);
  tip.hidden = true;
});
canvas.addEventListener("pointerup", (event) => {
  pointers.delete(event.pointerId);
  if (!moved) click(...place(event));
  else if (ranges) select(...view.range);
});
canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
canvas.addEventListener("pointerleave", () => (tip.hidden = true));
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const span = view.to - view.from, across = width - left;
  if (event.ctrlKey || event.metaKey) {
    const around = view.from + ((place(event)[0] - left) / across) * span;
    return zoom(1.0015 ** event.deltaY, around);
  }
  const sideways = event.shiftKey ? event.deltaY : event.deltaX;
  if (sideways) pan((sideways / across) * span);
  else scroll(event.deltaY);
}, { passive: false });

function hover(a, b) {
  const n = nearest(a, b);
  tip.hidden = n < 0;
  if (n < 0) return;
  tip.textContent = line(n).trim();
  tip.style.left = `${Math.max(8, Math.min(a + 12, width - tip.offsetWidth - 8))}px`;
  const above = b + 18 + tip.offsetHeight > height;
  tip.style.top = `${above ? b - tip.offsetHeight - 8 : b + 16}px`;
}

function axis() {
  turnAxis();
  sayAxis();
  if (view.chosen >= 0) show(view.chosen);
  draw();
}

function sayAxis() {
  document.getElementById("axis").textContent = `Axis: ${view.axis}`;
}

function toggleArrows() {
  view.arrows = !view.arrows;
  document.getElementById("arrows").setAttribute("aria-pressed", view.arrows);
  draw();
}

function toggleLegend() {
  const legend = document.getElementById("legend");
  legend.hidden = !legend.hidden;
  document.getElementById("names").setAttribute("aria-pressed", !legend.hidden);
}

function showAll() {
  all();
  draw();
}

// Goes to the next event of the same task, or to the nearest event of another task.
function walk(by) {
  if (view.chosen < 0) return choose(0, true);
  const { events } = lanes[laneOfLine[view.chosen]];
  const next = events[firstOf(events, (n) => n >= view.chosen) + by];
  if (next !== undefined) choose(next, true, true);
}

// Goes to the first event of the next row that is not earlier, or to its last event.
function climb(by) {
  if (view.chosen < 0) return choose(0, true);
  let r = rowOf[laneOfLine[view.chosen]] + by;
  while (rows[r]?.group && !rows[r].group.folded) r += by;
  if (!rows[r]) return;
  const near = lanesOf(rows[r]).map((n) => lanes[n].events).filter((events) => events.length);
  const next = near.map((events) => events[firstOf(events, (n) => n >= view.chosen)] ?? -1);
  const later = next.filter((n) => n >= 0);
  if (later.length) choose(Math.min(...later), true, true);
  else if (near.length) choose(Math.max(...near.map((events) => events.at(-1))), true, true);
}

const keys = {
  ArrowLeft: () => walk(-1),
  ArrowRight: () => walk(1),
  ArrowUp: () => climb(-1),
  ArrowDown: () => climb(1),
  Enter: () => view.chosen >= 0 && lineBehind(view.chosen) >= 0 && choose(lineBehind(view.chosen), true),
  n: () => view.chosen >= 0 && effects(view.chosen).length && choose(effects(view.chosen)[0], true),
  "+": () => zoom(0.6, view.chosen >= 0 ? x(view.chosen) : undefined),
  "=": () => zoom(0.6, view.chosen >= 0 ? x(view.chosen) : undefined),
  "-": () => zoom(1 / 0.6, view.chosen >= 0 ? x(view.chosen) : undefined),
  0: showAll,
  t: axis,
  w: toggleArrows,
  g: toggleTree,
  s: togglePanel,
  p: () => presenting.open(),
  i: () => view.chosen >= 0 && taskOf[view.chosen] && openLife(taskOf[view.chosen]),
  f: foldChosen,
  b: () => selectEnd(0),
  e: () => selectEnd(1),
  z: zoomToRange,
  Escape: () => select(null, null),
  PageUp: () => scroll(TOP - height),
  PageDown: () => scroll(height - TOP),
  "?": toggleLegend,
  Home: () => count && choose(trace.begins, true),
  End: () => count && choose(count - 1, true),
};
document.addEventListener("keydown", (event) => {
  if (event.target === search || event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !presenting.now.open) {
    event.preventDefault();
    return search.focus();
  }
  // Leave Enter and a space to the button that has the focus.
  const isPage = [canvas, document.body, hall.root].includes(event.target);
  if (["Enter", " "].includes(event.key) && !isPage) return;
  const key = `${event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : ""}${event.key}`;
  if (presenting.key(key)) return event.preventDefault();
  if (presenting.now.open) return;
  const does = (stepper.open && panelKeys[key]) || keys[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
});
document.getElementById("axis").addEventListener("click", axis);
document.getElementById("in").addEventListener("click", keys["+"]);
document.getElementById("out").addEventListener("click", keys["-"]);
document.getElementById("all").addEventListener("click", showAll);
document.getElementById("arrows").addEventListener("click", toggleArrows);
document.getElementById("grow").addEventListener("click", toggleTree);
document.getElementById("names").addEventListener("click", toggleLegend);
document.getElementById("fold").addEventListener("click", foldChosen);
new ResizeObserver(measure).observe(stage);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", measure);
window.addEventListener("beforeprint", () => {
  showAll();
  paint();
});
