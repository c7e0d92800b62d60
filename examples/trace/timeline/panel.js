// What was chosen: its chain of causes, below the lanes.

const details = document.getElementById("details");

function choose(n, follow) {
  view.chosen = n;
  if (n >= 0) {
    const all = chain(n);
    const items = all.map((each, i) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.textContent = (i ? "because " : "") + line(each).trim();
      button.addEventListener("click", () => choose(each, true));
      item.append(button);
      return item;
    });
    const list = document.createElement("ol");
    list.append(...items);
    const head = document.createElement("h2");
    const steps = all.length - 1;
    head.textContent = steps ? `Why, in ${steps} ${steps > 1 ? "steps" : "step"}` : "From outside";
    details.replaceChildren(head, list);
    if (follow) show(n);
  }
  draw();
}

// Moves the view to where an event is.
function show(n) {
  const span = view.to - view.from, lane = laneOf.get(taskOf[n]);
  if (x(n) < view.from || x(n) > view.to) pan(x(n) - span / 2 - view.from);
  const room = height - RULER;
  if (tops[lane + 1] > view.top + room) view.top = tops[lane + 1] - room;
  if (tops[lane] < view.top) view.top = tops[lane];
}
