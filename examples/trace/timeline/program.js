// The line of the program that made a trap, with the lines around it if the page has the file.

const AROUND = 3;

// Returns the place of a log line in the program. The line itself has it, or the wait that it ends,
// or the wait that made the task run.
function siteOf(n) {
  for (let steps = 0; n >= 0 && steps < 4; n = behind[n], steps++) {
    const it = readLine(line(n));
    const from = it.key("at") === null && ["wake", "deliver"].includes(it.verb) ? begun(n) : n;
    const site = from < 0 ? null : readLine(line(from)).key("at");
    if (site) return { site, from };
  }
  return null;
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
