// Runs a program with the worker of the playground's page, without a browser, and prints its log.
//
// node tests/browser/play.mjs WASM PROGRAM

import { readFileSync } from "node:fs";
import vm from "node:vm";

const [wasm, program] = process.argv.slice(2);

globalThis.postMessage = ({ log, problems, panic }) => {
  if (panic) throw new Error(panic);
  if (problems?.length > 0) throw new Error(problems.map(([line, text]) => `line ${line}: ${text}`).join("\n"));
  if (log) process.stdout.write(log);
};
// The script of a worker sets it.
globalThis.onmessage = null;
vm.runInThisContext(readFileSync(new URL("../../examples/play/page/worker.js", import.meta.url), "utf8"));
onmessage({ data: { module: new WebAssembly.Module(readFileSync(wasm)) } });
onmessage({ data: { program: readFileSync(program, "utf8") } });
