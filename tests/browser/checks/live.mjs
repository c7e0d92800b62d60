// Uses the live page of the HTTP server as a reader would, at 1280 and 400 px, while twelve requests
// sleep and others are answered.

import { spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { sameFacts } from "../world.mjs";

export const needs = ["http"];

export default async function live(tab, world) {
  const server = spawn(path.resolve(world.paths.http), ["--addr", "127.0.0.1:0", "--kernel-page", "--flight", "64k"],
    { cwd: world.scratch, stdio: ["ignore", "pipe", "pipe"] });
  process.on("exit", () => server.kill("SIGKILL"));
  const sleepers = [];
  let goesOn = true;
  try {
    const [host, port] = await addressOf(server);
    for (let n = 0; n < 12; n++) {
      const sleeper = net.connect(port, host).on("error", () => {});
      sleeper.write("GET /sleep?ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n");
      sleepers.push(sleeper);
    }
    const address = `http://${host}:${port}`;
    const work = async () => {
      for (; goesOn; await pause(100)) await fetch(`${address}/plaintext`).then((it) => it.text());
    };
    // If the server ends, the page says so.
    work().catch(() => {});
    for (const [width, dump] of [[1280, "A dump is being written; standard error reports its file"],
      [400, "The last dump is less than a minute old"]]) {
      await tab.size(width, 800);
      await tab.open(`${address}/kernel`);
      sameFacts(await tab.call(inPage), { width, dump, ...FACTS }, `the live page at ${width} px`);
    }
  } finally {
    goesOn = false;
    for (const sleeper of sleepers) sleeper.destroy();
    server.kill("SIGKILL");
  }
  return "at 1280 and 400 px";
}

// Where a server listens, once it has said so.
async function addressOf(server) {
  let said = "", errors = "";
  const late = setTimeout(() => server.kill("SIGKILL"), 30_000);
  server.stderr.on("data", (bytes) => errors += bytes);
  for await (const bytes of server.stdout) {
    said += bytes;
    const found = /^listening on (.*):(\d+)$/m.exec(said);
    if (!found) continue;
    clearTimeout(late);
    return found.slice(1);
  }
  throw new Error(`the server does not listen\n${errors}`);
}

const FACTS = {
  headline: true,
  load: true,
  "counts on": true,
  "ends by": true,
  members: true,
  sideways: 0,
  "sorted by": "state ascending",
  "filter has focus": true,
  filtered: true,
  "why waits": true,
  "why ran": true,
  "sideways with why": 0,
  closed: true,
  tree: true,
  "sideways as tree": 0,
  trends: true,
  "trend of ready": "Ready, at most 7 most 7: Ready, at most in the last minute: now 7, most 7",
  lints: "a lock held over a sleep: t901 <b>held</b> it. 2.0 s ago 1.000000 take",
  "sideways with lints": 0,
  "no lints": true,
  "cards are a window": true,
  cards: "Has the CPU:; Ready, in order: 1: t901 has accounts; "
    + "Waiting: 3: t902 mutex accounts, held by t903, t904 mutex accounts, held by t901, t903 the end of t901",
  "cut cards": 0,
  "a moved card": "t903",
  "at a look": "t902,t901 has accounts,t904",
  "headline of a look": "4 tasks: 1 running, 2 ready, 1 parked: 1",
  "cards close": true,
  "focus is back": true,
  locks: "mutex accounts, held by t901: 2 wait, longest 2.0 s: t902, t904; "
    + "join 901 (t901): 1 waits, longest 2.0 s: t903",
};

async function inPage() {
  const root = document.documentElement;
  const facts = {};
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => all(selector).map((it) => it.textContent);
  const names = () => text("#tasks .name button");
  const row = (name) => all("#tasks tr").find((it) => it.querySelector(".name button")?.textContent === name);
  const key = (name) => (document.activeElement ?? document.body).dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  facts.width = root.clientWidth;

  // The server says every second what has changed, and a rate needs two of that.
  const headline = (part) => part.test(text("#headline")[0]);
  facts.headline = await until(() => headline(/^\d+ tasks.* parked.*: .*\d+ in io read or sleep \(handler\)/));
  facts.load = await until(() => headline(/CPU [\d.]+ % over [\d.]+ s\. [\d,]+ events?\/s\.$/));

  // Durations count on.
  const parked = () => Number(/parked ([\d.]+) s/.exec(row("wakeup").querySelector(".state").textContent)?.[1]);
  const before = parked();
  facts["counts on"] = await until(() => parked() > before);
  facts["ends by"] = /^first in [\d.]+ s$/.test(all("#tasks tr.group .until")[0]?.textContent);

  // A family is folded, its number is that of its members, and it unfolds.
  const group = names().find((name) => name.startsWith("▸"));
  const count = Number(/\((\d+)\)/.exec(group)[1]), folded = names().length;
  row(group).querySelector("button").click();
  facts.members = names().length - folded === count && count >= 12;
  facts.sideways = root.scrollWidth - root.clientWidth;

  // Sorted by a click on a head, and back.
  const heads = all("#heads button");
  heads.find((it) => it.textContent === "State").click();
  facts["sorted by"] = all("#heads [aria-sort]").map((it) => `${it.className} ${it.getAttribute("aria-sort")}`);
  all("#heads button")[0].click();

  // The filter, by key.
  key("/");
  const filter = document.getElementById("filter");
  facts["filter has focus"] = document.activeElement === filter;
  filter.value = "conn sleep";
  filter.dispatchEvent(new Event("input"));
  facts.filtered = names().length === 13 && names()[0].includes("(12)");

  // Why: of a task that parked long ago.
  key("Escape");
  key("ArrowDown");
  key("ArrowDown");
  document.activeElement.click();
  const why = (part) => part.test(text("tr.why").join());
  facts["why waits"] = await until(() => why(/Parked since [\d.]+ s .*the end of its sleep of 60s.* at examples\/servers\/http\.rs:\d+/));
  facts["why ran"] = await until(() => why(/Its last run: Task \d+ `conn-\d+` ran because .*/));
  facts["sideways with why"] = root.scrollWidth - root.clientWidth;
  key("Escape");
  facts.closed = all("tr.why").length === 0;

  // The tree.
  filter.value = "";
  filter.dispatchEvent(new Event("input"));
  key("t");
  const guides = all("#tasks tr").map((it) => it.querySelector(".guide").textContent + it.querySelector("button").textContent);
  const main = guides.indexOf("main");
  facts.tree = main >= 0 && guides.slice(main + 1).some((it) => /^[├└]─ ▾ conn-\* \(\d+\)/.test(it) || /^[├└]─ ▸ conn-\* \(\d+\)/.test(it));
  facts["sideways as tree"] = root.scrollWidth - root.clientWidth;

  // The button for a dump.
  const state = document.getElementById("state"), was = state.textContent;
  document.getElementById("dump").click();
  await until(() => state.textContent !== was);
  facts.dump = state.textContent;

  // Locks and lints, of which this server has none: as the feed would tell of them.
  const line = (seq, task, op) => ` 1.000000       1  #${String(seq).padStart(4, "0")} ${task} t block    ${op} k=${seq} at=a.rs:1`;
  const told = (id, state, waits) => ({ id, name: `t${id}`, parent: null, state, since: 1e6, runs: 1, ran: 0, waits, limit: null });
  pause();
  const rows = () => [
    { ...told(901, "ready", []), locks: ["mutex accounts"] }, told(902, "parked", [line(21, 902, "mutex accounts held-by=903")]),
    told(903, "parked", [line(23, 903, "join 901")]), told(904, "parked", [line(22, 904, "mutex accounts held-by=901")]),
  ];
  facts.trends = await until(() => all(".trend path").length === 3 && all(".trend path").every((it) => /L.*L/.test(it.getAttribute("d"))));
  known.trend.length = 0;
  const update = ({ lints = [], look = [], ...more } = {}) => learn({
    at: 3e6, count: 1, live: 4, common: { waiting: 3, most_ready: 7, lints, look }, cpu: { thread: 0, tasks: 0, page: 0 }, ids: [901, 902, 903, 904], rows: rows(), ...more,
  });
  const lints = [{ kind: "a lock held over a sleep", at: 1e6, text: "t901 <b>held</b> it", lines: ["1.000000 take"] }];
  update({ lints });
  show();
  facts["trend of ready"] = `${[...all(".trend")[1].querySelectorAll("figcaption *")].map((it) => it.textContent).join(" ")}: ${all(".trend svg")[1].ariaLabel}`;
  facts.lints = all("#lints li").map((it) => [...it.children].map((part) => part.textContent).join("").replace("ago", "ago ")).join();
  facts["sideways with lints"] = root.scrollWidth - root.clientWidth;
  update();
  show();
  facts["no lints"] = !document.getElementById("lints").checkVisibility();

  // The cards: the columns of the present mode.
  const present = document.getElementById("present");
  key("c");
  facts["cards are a window"] = present.checkVisibility() && document.activeElement === present && present.clientWidth === root.clientWidth;
  const cardsIn = (column) => [...column.querySelectorAll("[data-key]")].map((it) => [".name", ".for", ".has"].map((part) => it.querySelector(part)?.textContent ?? "").filter(Boolean).join(" "));
  facts.cards = all("#present .column").map((it) => `${it.querySelector("h2").textContent}:${cardsIn(it).length ? ` ${cardsIn(it).join(", ")}` : ""}`)
    .join("; ").replace(/(order|Waiting) (\d)/g, "$1: $2");
  facts["cut cards"] = all("#present [data-key]").filter((it) => it.scrollHeight > it.clientHeight + 1 || it.getBoundingClientRect().right > innerWidth).length;
  update({ rows: [told(903, "ready", [])] });
  showCards();
  facts["a moved card"] = text("#present .hot .name");
  // What the last look saw counts.
  update({ look: [{ id: 902, state: "running", for: 0, woken: 31 }, { id: 904, state: "ready", for: 2e6, woken: 30 }] });
  showCards();
  facts["at a look"] = all("#present .column").slice(0, 2).map(cardsIn).join();
  show();
  facts["headline of a look"] = text("#headline")[0].slice(0, 40);
  key("Escape");
  facts["cards close"] = !present.checkVisibility();
  facts["focus is back"] = document.activeElement === document.getElementById("cards");
  update();
  show();
  facts.locks = text("#locks li").join("; ");
  return facts;
}
