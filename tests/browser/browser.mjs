// Drives one headless Chromium by the DevTools protocol. Its messages go through a pair of pipes:
// no port, no WebSocket, and nothing but what node has.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

const FLAGS = [
  "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
  "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
  // A tab that is not in front works as fast as the one that is.
  "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
];

// The longest that a page may take to load, or to do what it is asked.
const LIMIT_MS = 120_000;

// Waits for `done`, but not forever.
async function limited(what, done) {
  let timer;
  const late = new Promise((_, reject) => {
    const why = `${what}: not done in ${LIMIT_MS / 1000} s`;
    timer = setTimeout(() => reject(new Error(why)), LIMIT_MS);
  });
  try {
    return await Promise.race([done, late]);
  } finally {
    clearTimeout(timer);
  }
}

export class Browser {
  #process;
  #last = 0;
  #asked = new Map(); // number of a message: what settles it
  #tabs = new Map(); // session: tab
  #said = ""; // what it wrote to its standard error
  #ended = null; // why no more can be asked

  // Starts the program `path`, which keeps its files in the folder `profile`.
  constructor(path, profile) {
    const stdio = ["ignore", "ignore", "pipe", "pipe", "pipe"];
    this.#process = spawn(path, [...FLAGS, `--user-data-dir=${profile}`, "about:blank"], { stdio });
    this.#process.on("error", (error) => this.#end(`${path}: ${error.message}`));
    this.#process.on("exit", () => this.#end(`the browser has ended\n${this.#said.slice(-2000)}`));
    this.#process.stderr.on("data", (bytes) => this.#said += bytes);
    // Writing fails once the browser has ended, which `exit` reports.
    this.#process.stdio[3].on("error", () => {});
    // A message ends with a NUL.
    let parts = [];
    this.#process.stdio[4].on("data", (bytes) => {
      for (let from = 0; from < bytes.length;) {
        const end = bytes.indexOf(0, from);
        parts.push(bytes.subarray(from, end < 0 ? bytes.length : end));
        if (end < 0) return;
        this.#take(JSON.parse(Buffer.concat(parts).toString()));
        parts = [];
        from = end + 1;
      }
    });
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.#ended) return Promise.reject(new Error(this.#ended));
    return limited(method, new Promise((resolve, reject) => {
      const id = ++this.#last;
      this.#asked.set(id, { resolve, reject });
      this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    }));
  }

  #take({ id, error, result, method, params, sessionId }) {
    if (id === undefined) return this.#tabs.get(sessionId)?.take(method, params);
    const { resolve, reject } = this.#asked.get(id);
    this.#asked.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  #end(why) {
    this.#ended = why;
    for (const { reject } of this.#asked.values()) reject(new Error(why));
    for (const tab of this.#tabs.values()) tab.fail(why);
  }

  // A tab of its own session: nothing is shared with the other tabs.
  async tab() {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab((method, params) => this.send(method, params, sessionId));
    this.#tabs.set(sessionId, tab);
    tab.close = async () => {
      this.#tabs.delete(sessionId);
      await this.send("Target.disposeBrowserContext", { browserContextId });
    };
    for (const domain of ["Page", "Runtime", "Log"]) await tab.send(`${domain}.enable`);
    await tab.send("Page.setLifecycleEventsEnabled", { enabled: true });
    return tab;
  }

  // Ends it.
  async close() {
    if (this.#ended) return;
    const ended = once(this.#process, "exit");
    this.send("Browser.close").catch(() => this.kill());
    await Promise.race([ended, pause(5000, null, { ref: false }).then(() => this.kill())]);
  }

  kill() {
    this.#process.kill("SIGKILL");
  }
}

// A page. Whatever its console says, and an error that nothing catches, fails what is waited for, or
// else what is asked next.
class Tab {
  #send;
  #failed;
  #loaded = new Set(); // the loads that are complete
  #changed = () => {};
  #size;
  fail;

  constructor(send) {
    this.#send = send;
    this.#failed = new Promise((_, reject) => this.fail = (why) => reject(new Error(why)));
    // It is looked at with what is asked next.
    this.#failed.catch(() => {});
  }

  take(method, params) {
    switch (method) {
      case "Runtime.consoleAPICalled": {
        const said = params.args.map(({ value, description }) => value ?? description).join(" ");
        return this.fail(`the console says: ${said}`);
      }
      case "Runtime.exceptionThrown":
        return this.fail(`an error in the page: ${toText(params.exceptionDetails)}`);
      case "Log.entryAdded":
        return this.fail(`the console says: ${params.entry.text} ${params.entry.url ?? ""}`);
      case "Inspector.targetCrashed":
        return this.fail("the page has crashed");
      case "Page.lifecycleEvent":
        if (params.name !== "load") return;
        this.#loaded.add(params.loaderId);
        return this.#changed();
    }
  }

  send(method, params) {
    return Promise.race([this.#failed, this.#send(method, params)]);
  }

  // How large the page is in pixels: a window of the browser has a least width, and this has none.
  async size(width, height) {
    const size = `${width} ${height}`;
    if (size === this.#size) return;
    this.#size = size;
    await this.send("Emulation.setDeviceMetricsOverride",
      { width, height, deviceScaleFactor: 1, mobile: false });
  }

  // Whether the reader prefers `light` or `dark`.
  async prefer(value) {
    const features = [{ name: "prefers-color-scheme", value }];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  // Loads a page, and all that it needs.
  async open(url) {
    const { loaderId, errorText } = await this.send("Page.navigate", { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    const loaded = new Promise((resolve) => {
      this.#changed = () => this.#loaded.has(loaderId) && resolve();
      this.#changed();
    });
    await Promise.race([this.#failed, limited(`loading ${url}`, loaded)]);
  }

  // Runs the text of a script in the page.
  async run(script, contextId = undefined) {
    const { exceptionDetails, result } = await this.send("Runtime.evaluate",
      { expression: script, awaitPromise: true, returnByValue: true, contextId });
    if (exceptionDetails) throw new Error(`an error in the page: ${toText(exceptionDetails)}`);
    return result.value;
  }

  // Calls a function in the page. It has what the page has, `until`, and of here only the arguments.
  call(does, ...args) {
    return this.run(toScript(does, args));
  }

  // The same in the frame of the page whose address contains this, once it has loaded what it is to
  // show.
  async callInFrame(address, does, ...args) {
    let frame;
    const isLoaded = async () => {
      const { frameTree } = await this.send("Page.getFrameTree");
      const frames = frameTree.childFrames.map((child) => child.frame);
      frame = frames.find(({ url, urlFragment = "" }) => `${url}${urlFragment}`.includes(address));
      return frame && this.#loaded.has(frame.loaderId);
    };
    for (const from = Date.now(); !await isLoaded(); await pause(20)) {
      if (Date.now() - from > LIMIT_MS) throw new Error(`the frame ${address} does not load`);
    }
    const { executionContextId } = await this.send("Page.createIsolatedWorld", { frameId: frame.id });
    return this.run(toScript(does, args), executionContextId);
  }
}

function toScript(does, args) {
  return `{ ${until} (${does})(...${JSON.stringify(args)}); }`;
}

// In a page: waits until something holds, but not forever. Returns whether it does.
async function until(holds) {
  const late = performance.now() + 30_000;
  while (!holds() && performance.now() < late) await new Promise((resume) => setTimeout(resume, 10));
  return holds();
}

function toText({ text, exception }) {
  return exception?.description ?? `${text} ${exception?.value ?? ""}`;
}
