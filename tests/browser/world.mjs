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
