// The lines that have what is searched for.

const search = document.getElementById("search");

function find(next) {
  const wanted = search.value.trim().toLowerCase();
  view.found = [];
  for (let n = 0; wanted && n < count; n++) {
    if (line(n).toLowerCase().includes(wanted)) view.found.push(n);
  }
  const shown = document.getElementById("found");
  shown.textContent = wanted ? `${view.found.length} found` : "";
  if (next && view.found.length) {
    choose(view.found.find((n) => n > view.chosen) ?? view.found[0], true);
  }
  draw();
}

function found() {
  pen.fillStyle = colors.outside;
  let last = -9;
  for (const n of view.found) {
    const [a, b] = point(n);
    if (a < left || a > width || b < RULER || (a < last + 2 && lanes.length < 2)) continue;
    last = a;
    pen.fillRect(a - 1, b + bar / 2 - 5, 3, 4);
  }
}

search.addEventListener("input", () => find(false));
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") find(true);
  if (event.key === "Escape") {
    search.value = "";
    find(false);
    canvas.focus();
  }
});
