// Runs inside a timeline page: reports what it draws and says. `marks.sh` compares it with the log.
"use strict";
opened.then(() => {
  const { timeline } = window;
  const seq = (n) => `#${String(readLine(timeline.line(n)).seq).padStart(4, "0")}`;
  const report = [];

  // How often the page calls what draws a mark, in one paint of everything.
  const drawn = {};
  for (const name of ["bracket", "broken"]) {
    const draws = window[name];
    window[name] = (...args) => {
      drawn[name] = (drawn[name] ?? 0) + 1;
      draws(...args);
    };
  }
  paint();
  report.push(`scopes drawn: ${drawn.bracket ?? 0}`, `interrupted drawn: ${drawn.broken ?? 0}`);

  const scopes = timeline.lanes.flatMap((lane) => lane.scopes).sort((a, b) => a.from - b.from);
  for (const { from, to, left } of scopes) {
    report.push(`scope ${seq(from)} ${scopeName(from)} ${left === OPEN ? "open" : seq(to)}`);
  }

  // A narrow page has no room for it at first.
  if (document.getElementById("legend").hidden) toggleLegend();
  const legend = [...document.querySelectorAll("#legend [data-mark]")];
  const shown = legend.filter((item) => item.getClientRects().length);
  report.push(`legend: ${shown.map((item) => item.dataset.mark).join(" ")}`);

  // The tree, at the last line of the time of the line in the middle.
  let n = Math.floor((timeline.count + 1) / 2) - 1;
  while (n + 1 < timeline.count && readLine(timeline.line(n + 1)).at === readLine(timeline.line(n)).at) n++;
  timeline.choose(n, true);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "g", bubbles: true }));
  report.push(document.querySelector("#tree .sentence").textContent);
  for (const { childNodes: [branch, name, text] } of document.querySelectorAll("#tree li button")) {
    const gap = name.textContent.endsWith(":") ? " " : "  ";
    report.push(`${branch.textContent}${name.textContent}${gap}${text.textContent}`);
  }

  let runs = 0;
  for (let n = 0; n < timeline.count && runs < 20; n++) {
    if (readLine(timeline.line(n)).verb !== "run") continue;
    runs++;
    timeline.choose(n, true);
    report.push(`why ${seq(n)} ${document.querySelector("#why .sentence").textContent}`);
  }
  const found = document.createElement("pre");
  found.textContent = `MARKS\n${report.join("\n")}\nEND\n`;
  document.body.append(found);
});
