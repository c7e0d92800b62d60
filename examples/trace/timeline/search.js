// The lines that match a search.

const search = document.getElementById("search");

// The number of lines between two checks of the reader's input.
const SLICE = 20_000;
let searching = 0;

async function find(next) {
  const wanted = search.value.trim().toLowerCase(), mine = ++searching;
  const shown = document.getElementById("found");
  view.found = [];
  for (let n = 0; wanted && n < count; n++) {
    if (line(n).toLowerCase().includes(wanted)) view.found.push(n);
    if (n % SLICE || !n) continue;
    shown.textContent = `${view.found.length} found, searching`;
    await new Promise((then) => setTimeout(then));
    if (mine !== searching) return;
  }
  shown.textContent = wanted ? `${view.found.length} found` : "";
  if (next && view.found.length) {
    choose(view.found.find((n) => n > view.chosen) ?? view.found[0], true);
  }
  draw();
}

// Draws one mark for each pixel of each row.
function found() {
  pen.fillStyle = colors.outside;
  const last = new Float64Array(rows.length).fill(-9);
  const first = firstOf(view.found, (n) => x(n) >= view.from);
  for (let f = first; f < view.found.length && x(view.found[f]) <= view.to; f++) {
    const n = view.found[f], r = rowOf[laneOfLine[n]], a = px(x(n));
    if (a < last[r] + 2) continue;
    last[r] = a;
    pen.fillRect(a - 1, rowTop(r) + tops[r + 1] - tops[r] - 5, 3, 4);
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
