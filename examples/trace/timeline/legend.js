// The legend has only the marks of this log, and the marks that a reader makes.

// The marks of this log.
function marksHere() {
  const marks = new Set();
  const add = (mark, is) => is && marks.add(mark);
  for (const [n, { state, end, notes, spans, waits, scopes, events }] of lanes.entries()) {
    if (!n) {
      const comes = (e) => ["arrive", "fire"].includes(verbOf(e));
      add("outside", events.some(comes));
      add("kernel", events.some((e) => !comes(e)));
      add("many", kernelIsDense());
      continue;
    }
    add("run", state.includes(RUN));
    add("unsure", state.some((_, p) => pieceLength(lanes[n], p) === null));
    add("ready", state.includes(READY));
    add("blocked", state.includes(BLOCKED));
    add("ended", end >= 0);
    add("note", notes.length);
    add("span", spans.length);
    add("many", isDense(n));
    for (const { ended, row } of waits) {
      add("interrupted", ended === TIMEOUT || ended === CANCELLED);
      add("several", ended === WELL && row >= 0);
      add("withdrawn", ended === WITHDRAWN);
      add("endless", ended === UNENDED && row >= 0);
    }
    for (const { from, left: how } of scopes) {
      const kind = scopeName(from).split(" ")[0];
      add(["shield", "branch"].includes(kind) ? kind : "scope", true);
      add("endless", how === OPEN);
      add("due", how === DEADLINE);
      add("hit", how === INTERRUPT);
    }
  }
  add("lock", links.some((link) => !isStuck(link)));
  add("circle", links.some(isStuck));
  add("hang", trace.hang !== null);
  add("late", lates.size);
  add("folded", groups.size);
  add("woke", trace.tasks.length > 1);
  return marks;
}

{
  const marks = marksHere();
  for (const item of document.querySelectorAll("#legend [data-mark]")) {
    item.hidden = !marks.has(item.dataset.mark);
  }
}
