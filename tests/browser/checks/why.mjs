// Compares the prose of the pages (`examples/trace/why.js`) with that of `trace why`: the whole
// answer for each event of each golden log, of a log with the lengths of its runs, of logs on the real
// clock without them, of a log with each verb, and of a lock that is handed over.

import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { Log, golden, root, same } from "../world.mjs";

export const needs = ["trace", "spin"];

export default async function why(tab, world) {
  const files = readdirSync(path.join(root, "tests/golden")).filter((file) => file.endsWith(".trace"));
  const logs = [...files.sort().map((file) => golden(path.basename(file, ".trace"))), await world.timed()];
  for (const name of ["verbs", "handed"]) logs.push(new Log(path.join(root, `examples/trace/tests/${name}.trace`)));
  for (const hasLongRuns of [true, false]) logs.push(world.burnt("why", hasLongRuns));
  await tab.run(readFileSync(path.join(root, "examples/trace/why.js"), "utf8"));
  let events = 0;
  for (const log of logs) {
    const found = await tab.call(inPage, log.lines);
    const wanted = await world.all(log, "why");
    log.seqs.forEach((seq, n) => same(found[n], wanted.get(seq), `${log.name}: why ${seq}`));
    events += log.seqs.length;
  }
  return `${events} events of ${logs.length} logs`;
}

// What `trace why` would write for each event of a log.
function inPage(texts) {
  const lines = texts.map(readLine);
  const places = new Map(lines.map(({ seq }, place) => [seq, place]));
  const find = (seq) => places.get(seq) ?? -1;
  const cause = Causes();
  const behind = lines.map((line) => find(cause(line)));
  const names = new Map();
  for (const { task, name } of lines) if (!names.has(task)) names.set(task, name);
  const name = (id) => names.get(id) ?? null;
  const prose = Why({ line: (n) => texts[n], behind: (n) => behind[n], find, name });
  return lines.map((_, place) => {
    const { sentence, steps, open } = prose.why(place);
    const shown = steps.map((step) => `  #${String(step.seq).padStart(4, "0")}  ${step.at}  ${step.text}\n`);
    if (open) shown.push("  (the trace does not say what is behind that)\n");
    return `${sentence}\n\n${shown.join("")}`;
  });
}
