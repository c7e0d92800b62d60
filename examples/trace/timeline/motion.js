// Animates a step: each element with a `data-key` moves from its former place to its present place.
// A new element comes from the card that its `data-from` names.

const MOVE = 150, MOVED = 60;

function placesOf(root) {
  const places = new Map();
  for (const it of [...root.querySelectorAll("[data-key]")].slice(0, MOVED)) {
    const { left, top } = it.getBoundingClientRect();
    places.set(it.dataset.key, { left, top });
  }
  return places;
}

function move(root, places, within = MOVE) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const moves = [];
  for (const it of [...root.querySelectorAll("[data-key]")].slice(0, MOVED)) {
    const { key, from } = it.dataset, before = places.get(key) ?? places.get(from);
    if (!before) continue;
    const { left, top } = it.getBoundingClientRect();
    const [a, b] = [before.left - left, before.top - top];
    if (Math.abs(a) + Math.abs(b) > 2) moves.push([it, a, b]);
  }
  for (const [it, a, b] of moves) {
    it.animate([{ transform: `translate(${a}px, ${b}px)`, zIndex: 3 }, { transform: "none", zIndex: 3 }],
      { duration: Math.min(MOVE, within), easing: "ease-out" });
  }
}
