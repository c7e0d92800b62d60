// What the checks have in common: the programs, the logs, and how they say what is wrong.

import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");

// Runs a program, and returns what it prints.
export async function output(program, ...args) {
  const limits = { maxBuffer: 1 << 30, timeout: 120_000 };
  return (await promisify(execFile)(program, args, limits)).stdout;
}

export class World {
  #answers = new Map(); // of a question
  #logs = {}; // those that are made, by their names

  // `paths` has the programs by their names, and the folder `book`. Files go to `scratch`.
  constructor(paths, scratch) {
    this.paths = paths;
    this.scratch = scratch;
  }

  // The address of a new file. The checks run at the same time, and each has names of its own.
  page(name, text) {
    const file = path.join(this.scratch, name);
    writeFileSync(file, text);
    return pathToFileURL(file).href;
  }

  // What the trace tool prints.
  trace(...args) {
    return output(this.paths.trace, ...args);
  }

  // A log with the lengths of its runs.
  timed() {
    return this.#made("timed", this.paths.spin, "--timed");
  }

  // A log that ends in a deadlock, for which the program ends with an error.
  deadlock() {
    return this.#made("philosophers", this.paths.philosophers);
  }

  // A log on the real clock that is not timed: task 3 holds the CPU for 0.1 s in each of its runs,
  // and task 4 reads the clock after each of them. Task 3 has `longrun` lines, or none.
  burnt(check, hasLongRuns) {
    const lines = ["#trace v3 clock=real seed=0 tick=0.3s"], causes = { 3: 0, 4: 0 };
    const number = (seq) => `#${String(seq).padStart(4, "0")}`;
    const put = (at, turn, task, text) => {
      const who = `${task} ${task === 3 ? "busy" : "innocent"}`;
      const [verb, detail] = text.split(/ (.*)/s);
      const event = `${verb.padEnd(8)} ${detail}`;
      lines.push(`${at.toFixed(6)} ${turn} ${number(lines.length)} ${who} ${event}`);
      return lines.length - 1;
    };
    for (const task of [3, 4]) causes[task] = put(0, 0, task, `spawn parent=- at=a.rs:${task}`);
    for (let turn = 1; turn <= 3; turn++) {
      const [at, next, k] = [(turn - 1) / 10, turn / 10, 2 * turn];
      put(at, turn, 3, `run cause=${number(causes[3])}`);
      const yields = put(at, turn, 3, `block yield k=${k} at=a.rs:5`);
      if (hasLongRuns) put(at, turn, 3, "longrun ran=0.100000 from=yield@a.rs:5 to=yield@a.rs:5");
      causes[3] = put(at, turn, 3, `wake yield k=${k} cause=${number(yields)}`);
      put(at, turn, 4, `run cause=${number(causes[4])}`);
      const sleeps = put(next, turn, 4, `block sleep 0s until=${next.toFixed(6)} k=${k + 1} at=a.rs:9`);
      causes[4] = put(next, turn, 4, `wake sleep k=${k + 1} cause=${number(sleeps)}`);
    }
    const file = path.join(this.scratch, `${check}_burnt_${hasLongRuns}.trace`);
    writeFileSync(file, `${lines.join("\n")}\n`);
    return new Log(file);
  }

  async #made(name, program, ...args) {
    const file = path.join(this.scratch, `${name}.trace`);
    this.#logs[name] ??= output(program, ...args, "--trace", file).catch(() => {});
    await this.#logs[name];
    return new Log(file);
  }

  // Makes the timeline of a log, and returns its address.
  async timeline(check, log, ...options) {
    const file = path.join(this.scratch, `${check}_${log.name}.html`);
    await this.trace("timeline", ...options, "-o", file, log.file);
    return pathToFileURL(file).href;
  }

  // What a command of the trace tool says about each event of a log, by the number of the event.
  // The checks ask for some of it more than once.
  all(log, ...command) {
    const question = [...command, log.file].join(" ");
    if (!this.#answers.has(question)) this.#answers.set(question, this.#ask(log, command));
    return this.#answers.get(question);
  }

  async #ask(log, command) {
    const said = await this.trace(...command, "--all", log.file);
    const answers = said.split(/^#(\d+)\n/m).slice(1);
    same(answers.filter((_, n) => n % 2 === 0).join("\n"), log.seqs.join("\n"), `${log.name}: all events`);
    return new Map(log.seqs.map((seq, n) => [seq, answers[2 * n + 1]]));
  }
}

// A log: its text, and its lines that are events.
export class Log {
  constructor(file) {
    this.file = file;
    this.name = path.basename(file, ".trace");
    this.text = readFileSync(file, "utf8");
    this.lines = this.text.split("\n").filter((line) => line && !line.startsWith("#"));
    this.seqs = this.lines.map((line) => fields(line)[2].slice(1));
  }
}

export function golden(name) {
  return new Log(path.join(root, "tests/golden", `${name}.trace`));
}

// The words of a line: its time, turn, number, task, name, verb, and those of its detail.
export const fields = (line) => line.trim().split(/ +/);

// Fails unless a text is the one that is wanted, and shows from where on they differ.
export function same(found, wanted, what) {
  if (found === wanted) return;
  const [has, wants] = [found, wanted].map((text) => `${text}`.split("\n"));
  let at = 0;
  while (at < wants.length && has[at] === wants[at]) at++;
  const part = (lines, sign) => lines.slice(at, at + 8).map((line) => `  ${sign} ${line}\n`).join("");
  const before = at > 0 ? `  = ${wants[at - 1]}\n` : "";
  throw new Error(`${what}: from line ${at + 1} on, not what is wanted (<), but (>)\n`
    + before + part(wants, "<") + part(has, ">"));
}

// Compares facts, each by its name, and shows those that differ.
export function sameFacts(found, wanted, what) {
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(found)])];
  const wrong = names.filter((name) => `${found[name]}` !== `${wanted[name]}`);
  const lines = wrong.map((name) => `  ${name}: ${found[name]}, not ${wanted[name]}`);
  must(wrong.length === 0, `${what}:\n${lines.join("\n")}`);
}

export function must(holds, what) {
  if (!holds) throw new Error(what);
}
