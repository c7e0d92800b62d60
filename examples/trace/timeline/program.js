// The line of the program that made a trap, with the lines around it if the page has the file.

const AROUND = 3;

// Returns the place of a log line in the program. The line itself has it, or the wait that it ends. A
// task that is spawned, and a deadlock, have theirs in a line that follows. A wait for a waker has that
// of the spawn of its task, as in the kernel's table of tasks; a long run has the place where it began.
// Other lines have none: the statement before them is not what they are about.
function siteOf(n) {
  const it = readLine(line(n));
  let from = n;
  if (it.verb === "warn" && it.word(0) === "deadlock") from = nextOf(it.task, "block", n);
  else if (it.verb === "trap" && it.word(0) === "spawn") from = nextOf(Number(it.outcome), "spawn", n);
  else if (it.verb === "block" && it.word(0) === "waker") from = nextOf(it.task, "spawn", -1);
  else if (it.verb === "longrun") {
    const [, site] = /^[^@]*@(.+)$/.exec(it.key("from")) ?? [];
    return site ? { site, from: n } : null;
  }
  else if (it.key("at") === null) {
    if (["run", "fire"].includes(it.verb)) from = placeOf(it.cause ?? -1);
    if (from >= 0 && ["wake", "deliver"].includes(verbOf(from))) from = begun(from);
  }
  const site = from < 0 ? null : readLine(line(from)).key("at");
  return site && { site, from };
}

// Returns the next line of a task with that verb, or -1.
function nextOf(task, verb, n) {
  const { events } = lanes[laneOf.get(task)] ?? { events: [] };
  for (let e = firstOf(events, (each) => each > n); e < events.length; e++) {
    if (verbOf(events[e]) === verb) return events[e];
  }
  return -1;
}

function programBox(n) {
  const found = siteOf(n);
  if (!found) return null;
  const [, file, number] = /^(.*):(\d+)$/.exec(found.site) ?? [null, found.site, "0"];
  const text = trace.sources?.[file];
  const from = found.from === n ? "" : `, by #${String(seqOf[found.from]).padStart(4, "0")}`;
  if (text === undefined) return titled("program", "Program", box("code", "", found.site), from);
  const lines = text.split("\n"), at = Number(number);
  const first = Math.max(1, at - AROUND), last = Math.min(lines.length, at + AROUND);
  const list = box("ol", "code");
  for (let nth = first; nth <= last; nth++) {
    const it = box("li", nth === at ? "here" : "", lines[nth - 1] || " ");
    it.value = nth;
    list.append(it);
  }
  return titled("program", `Program: ${found.site}${from}`, list);
}
