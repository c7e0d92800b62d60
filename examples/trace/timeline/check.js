// For the check of this page.

// The same text as `trace lanes`, made from what this page draws.
function laneText(page) {
  const turns = [...new Set(turn)];
  const column = new Map(turns.map((each, n) => [each, n]));
  const rows = lanes.slice(1).map(({ id, name, state, from, to, events, end }) => {
    const cells = new Array(turns.length).fill(" ");
    for (let p = 0; p < from.length; p++) {
      for (let n = column.get(turn[from[p]]); n <= column.get(turn[to[p]]); n++) {
        if (cells[n] !== "#" || state[p] === RUN) cells[n] = "#+."[state[p]];
      }
    }
    if (end >= 0) cells[column.get(turn[events[events.length - 1]])] = "x";
    return [`${String(id).padStart(3)} ${name}`, cells.join("")];
  });
  const names = Math.max(0, ...rows.map(([name]) => name.length));
  const columns = Math.max(10, page - names - 2);
  let text = "# runs  + ready  . blocked  x ended, a column a turn\n";
  for (let first = 0; first < turns.length; first += columns) {
    const shown = turns.slice(first, first + columns);
    let marks = "";
    for (let n = 0; n < shown.length; n += 10) marks += String(shown[n]).padEnd(10);
    text += `\n${"turn".padEnd(names)}  ${marks.trimEnd()}\n`;
    for (const [name, cells] of rows) {
      const part = cells.slice(first, first + columns);
      if (part.trim()) text += `${name.padEnd(names)}  ${part.trimEnd()}\n`;
    }
  }
  return text;
}

window.timeline = {
  view, count, line, behind, chain, choose, point, lanes, rows: () => rows, busy, prose, laneText,
  treeText, stateText, stepTo, stepBy, openPanel, closePanel, siteOf, isOpen: () => stepper.open,
  presenting, columnsAt,
};

// A wide page has room for the legend.
if (innerWidth >= 900 && innerHeight >= 700) toggleLegend();
sayAxis();
all();
measure();
addressing.read();
// Last: the start shows what the address names, and closes what a page around this one has opened.
dispatchEvent(new CustomEvent("timeline"));
