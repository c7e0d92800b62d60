// Reports above the lanes the missing parts of the log, and the tasks in a deadlock.
{
  const list = document.getElementById("faults");
  // A line for each task of a circle, below the line that begins with "deadlock".
  const circles = trace.stuck.split(/\n(?=deadlock )/).filter(Boolean)
    .map((text) => text.trim().replace(/:\n */, ": ").replace(/\n */g, "; "));
  list.replaceChildren(...[...trace.faults, ...circles].map((text) =>
    Object.assign(document.createElement("li"), { textContent: text })));
  list.hidden = !list.children.length;
}
