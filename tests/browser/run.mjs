// Runs the checks of the pages, two at a time, in one browser. See `run.sh`.

import { mkdtempSync, rmSync, existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { Browser } from "./browser.mjs";
import { World, root } from "./world.mjs";

// Those that take longest come first.
const CHECKS = ["book", "state", "present", "timeline", "live", "playground", "marks", "address", "why",
  "lectures", "movie"];
// Those that need more than what is built, and run if they are named.
const OTHERS = ["tls"];
const PROGRAMS = ["trace", "http", "course", "philosophers", "spin"];

const USAGE = `usage: tests/browser/run.sh [OPTION...] [CHECK...]

Checks: ${CHECKS.join(", ")}; all of these without a name
        tls: the page of an HTTPS server, at --https
Options:
  --examples DIR   the built examples: ${PROGRAMS.join(", ")} [target/release/examples]
  --NAME PATH      one of them, for example --course target/debug/examples/course
  --book DIR       the pages of the book [target/book/html]
  --playground FILE  its page [target/playground.html]
  --https URL      the page for tls`;

function options() {
  const target = process.env.CARGO_TARGET_DIR ?? path.join(root, "target");
  const names = ["examples", ...PROGRAMS, "book", "playground", "https"];
  const given = parseArgs({
    options: Object.fromEntries([...names.map((name) => [name, { type: "string" }]), ["help", { type: "boolean" }]]),
    allowPositionals: true,
  });
  const { examples = path.join(target, "release/examples"), help, ...paths } = given.values;
  for (const name of PROGRAMS) paths[name] ??= path.join(examples, name);
  paths.book ??= path.join(target, "book/html");
  paths.playground ??= path.join(target, "playground.html");
  const checks = given.positionals.length > 0 ? given.positionals : CHECKS;
  const unknown = checks.find((name) => ![...CHECKS, ...OTHERS].includes(name));
  if (unknown) throw new Error(`there is no check ${unknown}`);
  return { help, checks, paths };
}

// Runs one check in a tab of its own. Returns what it has to say.
async function run(check, browser, world) {
  const { needs, default: look } = await import(`./checks/${check}.mjs`);
  const missing = needs.find((name) => !world.paths[name] || (name !== "https" && !existsSync(world.paths[name])));
  if (missing) throw new Error(`there is no ${missing} at ${world.paths[missing]}`);
  const tab = await browser.tab();
  try {
    const said = await look(tab, world);
    // What the console has said last is there before this is.
    await tab.run("");
    return said;
  } finally {
    await tab.close();
  }
}

async function main({ checks, paths }) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), "browser-"));
  const browser = new Browser(process.env.CHROMIUM, path.join(scratch, "profile"));
  // The browser ends with this process, and may still write a file.
  const clean = () => rmSync(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      browser.kill();
      clean();
      process.exit(1);
    });
  }
  const world = new World(paths, scratch);
  const waiting = [...checks], failed = [];
  async function work() {
    for (let check; (check = waiting.shift());) {
      const began = performance.now();
      const seconds = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
      await run(check, browser, world).then(
        (said) => console.log(`${check}: ok, ${said} (${seconds()})`),
        (error) => {
          failed.push(check);
          console.log(`${check}: FAILED (${seconds()})\n${error.message.trimEnd()}`);
        });
    }
  }
  try {
    await Promise.all([work(), work()]);
  } finally {
    await browser.close();
    clean();
  }
  if (failed.length > 0) console.log(`failed: ${failed.join(", ")}`);
  return failed.length > 0 ? 1 : 0;
}

try {
  const given = options();
  if (given.help) console.log(USAGE);
  process.exitCode = given.help ? 0 : await main(given);
} catch (error) {
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
