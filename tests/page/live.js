// Runs inside the live page, as somebody who looks at it, and reports what it found. `live.sh`
// appends it to the page.
{
  const report = [];
  const say = (what, value) => report.push(`${what}: ${value}`);
  const rows = () => [...document.querySelectorAll("#tasks tr")].map((row) => row.innerText);
  const key = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  async function check() {
    while (!history.length || tasks.size < 12) await wait(50);
    draw();
    say("headline", at("headline").textContent);
    say("width", innerWidth);
    say("sideways", document.documentElement.scrollWidth - document.documentElement.clientWidth);
    const families = rows().filter((row) => row.includes("conn-*"));
    say("folded", `${rows().length} ${families.length}`);
    say("family", families[0].match(/conn-\* \((\d+)\)/)[1] === String([...tasks.values()]
      .filter((task) => task.name.startsWith("conn-")).length));
    say("duration", /\d(\.\d)? (ms|s)/.test(families[0]));
    key("f");
    say("unfolded", rows().length - tasks.size);
    key("t");
    say("tree", rows().filter((row) => /[├└]─ \d+ conn-/.test(row)).length
      === [...tasks.values()].filter((task) => task.name.startsWith("conn-")).length);
    key("t");
    at("filter").value = "main";
    at("filter").dispatchEvent(new Event("input"));
    say("filtered", rows().length);
    document.querySelector("#tasks button.task").click();
    for (let n = 0; n < 40 && !at("why").textContent.includes("ran because"); n++) await wait(50);
    say("why", /waits for a connection at l1 at \S+:\d+\..*Task 2 `main` ran because/s.test(at("why").innerText));
    at("filter").value = "";
    sortBy("for");
    const longest = [...tasks.values()].reduce((a, b) => (b.since < a.since ? b : a));
    say("sorted", rows()[0].includes(`${longest.id} ${longest.name}`));
    // A lock, as the log says it.
    receive(JSON.stringify({ at: now.at, live: 2, count: now.count, counts: {}, first: true, gone: [], events: [],
      tasks: [[3, 2, "a", "parked", 0, 1, 0, null, []], [4, 2, "b", "parked", 0, 1, 0, null,
        [" 0.000000       1  #0007   4 b        block    mutex fork held-by=3 k=1 at=here:1"]]] }));
    draw();
    say("lock", /mutex fork\s+3 a\s+1: 4 b/.test(at("held").innerText));
  }

  // To the page around this one.
  check().catch((error) => say("error", error.stack)).then(() => window.parent.postMessage(report.join("\n"), "*"));
}
