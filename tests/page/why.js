// Writes what `trace why` would write for each event of the traces in this page. See `why.sh`.
"use strict";
{
  let said = "";
  for (const { dataset, textContent } of document.querySelectorAll("[data-name]")) {
    const texts = textContent.split("\n").filter((text) => text && !text.startsWith("#"));
    const lines = texts.map(readLine);
    const places = new Map(lines.map(({ seq }, place) => [seq, place]));
    const find = (seq) => places.get(seq) ?? -1;
    const cause = Causes();
    const behind = lines.map((line) => find(cause(line)));
    const names = new Map();
    for (const { task, name } of lines) if (!names.has(task)) names.set(task, name);
    const name = (id) => names.get(id) ?? null;
    const prose = Why({ line: (n) => texts[n], behind: (n) => behind[n], find, name });
    for (const [place, { seq }] of lines.entries()) {
      const { sentence, steps, open } = prose.why(place);
      said += `== ${dataset.name} ${String(seq).padStart(4, "0")}\n${sentence}\n\n`;
      for (const step of steps) {
        said += `  #${String(step.seq).padStart(4, "0")}  ${step.at}  ${step.text}\n`;
      }
      if (open) said += "  (the trace does not say what is behind that)\n";
    }
  }
  const report = document.createElement("pre");
  report.textContent = `SAID\n${said}END\n`;
  document.body.append(report);
}
