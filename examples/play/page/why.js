// What the kernel says about a run: why an event happened, and the report of a run that is stuck.

function showHint() {
  element("sentence").textContent =
    "Each line of the log is a decision of the kernel. Click one to see why, and where in the program.";
  element("sentence").className = "hint";
  element("chain").replaceChildren();
}

// Shows the answer of `trace why`: a sentence, an empty line, and the chain of causes.
function showWhy(answer) {
  const [sentence, , ...chain] = answer.trimEnd().split("\n");
  const first = numberOf(0);
  element("sentence").textContent = sentence;
  element("sentence").className = "";
  element("chain").replaceChildren(...chain.map((line) => {
    const number = /#(\d+)/.exec(line)?.[1];
    if (number === undefined) return make("li", "", line.trim());
    const event = Number(number) - first, button = make("button", "", line.trim());
    log.causes.add(event);
    button.addEventListener("click", () => choose(event));
    return make("li", "", button);
  }));
  element("why").scrollTop = 0;
  drawRows();
}

// Of the report, the circle of tasks is what counts; the table of all tasks is folded.
function showReport(report) {
  const box = element("report");
  box.hidden = !report;
  if (!report) return;
  const [table, circle = table.split(":", 1)[0]] = report.split(/\n(?=deadlock of )/);
  const folded = make("details", "", make("summary", "", "The table of tasks"), make("pre", "", table));
  // The line that closes the circle or, without a circle, the last line before the kernel cleans up.
  const before = log.lines.slice(0, log.hang), warned = before.findLastIndex(isEvent("warn", "deadlock"));
  const event = (warned < 0 ? before.length - 1 : warned) - log.heads;
  const link = make("button", "", `In the log: ${words(log.lines[event + log.heads])[2]}`);
  link.addEventListener("click", () => choose(event));
  box.replaceChildren(make("pre", "", circle), link, folded);
  // Opened, it begins at the top of the box.
  folded.addEventListener("toggle", () => { box.scrollTop = folded.offsetTop - box.offsetTop; });
}
