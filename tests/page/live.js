// Uses the live page in each frame as a reader would, and writes what it found. See `live.sh`.
"use strict";
{
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  async function use(frame) {
    const page = frame.contentDocument, root = page.documentElement;
    const report = [];
    const say = (what, value) => report.push(`${what}: ${value}`);
    const all = (selector) => [...page.querySelectorAll(selector)];
    const text = (selector) => all(selector).map((it) => it.textContent);
    const names = () => text("#tasks .name button");
    const row = (name) => all("#tasks tr").find((it) => it.querySelector(".name button")?.textContent === name);
    const key = (name) => (page.activeElement ?? page.body).dispatchEvent(
      new frame.contentWindow.KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
    const width = root.clientWidth;
    say("width", width);

    const headline = text("#headline")[0];
    say("headline", /^\d+ tasks.* parked.*: .*\d+ in io read or sleep \(handler\)/.test(headline));
    say("load", /CPU [\d.]+ % over [\d.]+ s\. [\d,]+ events?\/s\.$/.test(headline));

    // Durations count on.
    const parked = () => Number(/parked ([\d.]+) s/.exec(row("wakeup").querySelector(".state").textContent)?.[1]);
    const before = parked();
    await wait(700);
    say("counts on", parked() > before);
    say("ends by", /^first in [\d.]+ s$/.test(all("#tasks tr.group .until")[0]?.textContent));

    // A family is folded, its number is that of its members, and it unfolds.
    const group = names().find((name) => name.startsWith("▸"));
    const count = Number(/\((\d+)\)/.exec(group)[1]), folded = names().length;
    row(group).querySelector("button").click();
    say("members", names().length - folded === count && count >= 12);
    say("sideways", root.scrollWidth - root.clientWidth);

    // Sorted by a click on a head, and back.
    const heads = all("#heads button");
    heads.find((it) => it.textContent === "State").click();
    say("sorted by", all("#heads [aria-sort]").map((it) => `${it.className} ${it.getAttribute("aria-sort")}`));
    all("#heads button")[0].click();

    // The filter, by key.
    key("/");
    const filter = page.getElementById("filter");
    say("filter has focus", page.activeElement === filter);
    filter.value = "conn sleep";
    filter.dispatchEvent(new Event("input"));
    say("filtered", names().length === 13 && names()[0].includes("(12)"));

    // Why: of a task that parked long ago.
    key("Escape");
    key("ArrowDown");
    key("ArrowDown");
    page.activeElement.click();
    await wait(1500);
    const why = text("tr.why").join();
    say("why waits", /Parked since [\d.]+ s .*the end of its sleep of 60s.* at examples\/servers\/http\.rs:\d+/.test(why));
    say("why ran", /Its last run: Task \d+ `conn-\d+` ran because .*/.test(why));
    say("sideways with why", root.scrollWidth - root.clientWidth);
    key("Escape");
    say("closed", all("tr.why").length === 0);

    // The tree.
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
    key("t");
    const guides = all("#tasks tr").map((it) => it.querySelector(".guide").textContent + it.querySelector("button").textContent);
    const main = guides.indexOf("main");
    say("tree", main >= 0 && guides.slice(main + 1).some((it) => /^[├└]─ ▾ conn-\* \(\d+\)/.test(it) || /^[├└]─ ▸ conn-\* \(\d+\)/.test(it)));
    say("sideways as tree", root.scrollWidth - root.clientWidth);

    // Locks, of which this server has none: as the feed would tell of them.
    const { contentWindow } = frame;
    const line = (seq, task, op) => ` 1.000000       1  #${String(seq).padStart(4, "0")} ${task} t block    ${op} k=${seq} at=a.rs:1`;
    const told = (id, state, waits) => ({ id, name: `t${id}`, parent: null, state, since: 1e6, runs: 1, ran: 0, waits, limit: null });
    contentWindow.pause();
    const rows = [
      told(901, "ready", []), told(902, "parked", [line(21, 902, "mutex accounts held-by=903")]),
      told(903, "parked", [line(23, 903, "join 901")]), told(904, "parked", [line(22, 904, "mutex accounts held-by=901")]),
    ];
    contentWindow.learn({ at: 3e6, count: 1, live: 4, cpu: { thread: 0, tasks: 0, page: 0 }, ids: rows.map(({ id }) => id), rows });
    contentWindow.show();
    say("locks", text("#locks li").join("; "));
    return report.join("\n");
  }

  async function run() {
    const hold = document.body.appendChild(document.createElement("iframe"));
    hold.contentDocument.open();
    // The server has work meanwhile.
    for (let n = 0; n < 30; n++) await fetch("/plaintext").then(() => wait(100));
    const reports = [];
    for (const frame of document.querySelectorAll("iframe[src]")) reports.push(await use(frame).catch((error) => `failed: ${error.stack}`));
    const report = document.createElement("pre");
    report.textContent = `REPORT\n${reports.join("\n\n")}\nEND\n`;
    document.body.append(report);
    hold.contentDocument.close();
  }
  run();
}
