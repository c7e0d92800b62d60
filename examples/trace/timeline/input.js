// Pointer, keys and buttons.

const tip = document.getElementById("tip");

// The event of a lane that is nearest to a place on the stage.
function nearest(a, b) {
  const n = laneAt(b - RULER + view.top);
  if (a < left || b < RULER || !lanes[n] || !lanes[n].events.length) return -1;
  const value = view.from + ((a - left) / (width - left)) * (view.to - view.from);
  const { events } = lanes[n];
  const right = firstOf(events, (event) => x(event) >= value);
  const near = [events[right - 1], events[right]].filter((event) => event !== undefined);
  return near.sort((p, q) => Math.abs(x(p) - value) - Math.abs(x(q) - value))[0];
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

const pointers = new Map();
let moved = false;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, place(event));
  moved = false;
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
    pan(((before[0] - a) / (width - left)) * (view.to - view.from));
    scroll(before[1] - b);
  } else return;
  pointers.set(event.pointerId, [a, b]);
  tip.hidden = true;
});
canvas.addEventListener("pointerup", (event) => {
  pointers.delete(event.pointerId);
  if (!moved) choose(nearest(...place(event)), false);
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
  const names = Object.keys(axes);
  const middle = view.chosen >= 0 ? view.chosen : -1;
  view.axis = names[(names.indexOf(view.axis) + 1) % names.length];
  document.getElementById("axis").textContent = `Axis: ${view.axis}`;
  all();
  if (middle >= 0) show(middle);
  draw();
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

// The next event of the same task, or the nearest of another one.
function walk(by) {
  if (view.chosen < 0) return choose(0, true);
  const { events } = lanes[laneOf.get(taskOf[view.chosen])];
  const next = events[events.indexOf(view.chosen) + by];
  if (next !== undefined) choose(next, true);
}

function climb(by) {
  if (view.chosen < 0) return choose(0, true);
  const other = lanes[laneOf.get(taskOf[view.chosen]) + by];
  if (!other || !other.events.length) return;
  const n = firstOf(other.events, (event) => event >= view.chosen);
  choose(other.events[Math.min(n, other.events.length - 1)], true);
}

const keys = {
  ArrowLeft: () => walk(-1),
  ArrowRight: () => walk(1),
  ArrowUp: () => climb(-1),
  ArrowDown: () => climb(1),
  Enter: () => view.chosen >= 0 && behind[view.chosen] >= 0 && choose(behind[view.chosen], true),
  "+": () => zoom(0.6, view.chosen >= 0 ? x(view.chosen) : undefined),
  "=": () => zoom(0.6, view.chosen >= 0 ? x(view.chosen) : undefined),
  "-": () => zoom(1 / 0.6, view.chosen >= 0 ? x(view.chosen) : undefined),
  0: showAll,
  t: axis,
  w: toggleArrows,
  g: toggleTree,
  "?": toggleLegend,
  Home: () => count && choose(0, true),
  End: () => count && choose(count - 1, true),
};
document.addEventListener("keydown", (event) => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    return search.focus();
  }
  // Enter on a button is that button's.
  if (event.key === "Enter" && event.target !== canvas && event.target !== document.body) return;
  const does = keys[event.key];
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
new ResizeObserver(measure).observe(stage);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", measure);
window.addEventListener("beforeprint", () => {
  showAll();
  paint();
});
