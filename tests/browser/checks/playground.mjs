// Uses the page of the playground as a student does, from a file, in a light and a dark page of
// 1280 and 400 px. The log of each program that comes with it must be its golden.

import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { must, root, same, sameFacts } from "../world.mjs";

export const needs = ["playground"];

const LARGEST = 700_000;

const THOUSAND = "task all:\n  repeat 1000:\n    spawn one:\n      sleep 5\n  sleep 10";

export default async function playground(tab, { paths, scratch }) {
  const { size } = statSync(paths.playground);
  must(size <= LARGEST, `the page has ${size} bytes, expected at most ${LARGEST}`);
  const page = new Page(tab, pathToFileURL(path.resolve(paths.playground)).href);
  const first = await looks(page);
  const programs = await runsPrograms(page);
  const many = await page.runs(THOUSAND);
  sameFacts({ status: many.status }, { status: "Done after 10 ms of virtual time; 8,018 lines in the log" },
    "a thousand tasks");
  for (const check of [
    stopsAnEndlessProgram, saysWhatIsWrong, showsAProblem, marks, marksTheRightLine, showsTheHang, steps,
    setsTheSeed, keepsTheProgramInTheAddress, keepsTheOwnProgram, takesLinksAndFiles, refusesLinks,
    outlivesItsWorker, runsNoTextOfAProgram, obeysTheKeyboard, fitsInABook,
  ]) await check(page).catch((error) => { throw new Error(`${check.name}: ${error.message}`); });
  return `${programs} programs; ${size} bytes, ${first} ms to the first log, ` +
    `${many.log} and ${many.timeline} ms to the log and the timeline of 1,000 tasks`;
}

// The page in a tab. What a check calls in it has the names of its scripts, and `test`.
class Page {
  constructor(tab, address) {
    this.tab = tab;
    this.address = address;
  }

  async open(hash = "") {
    // Otherwise only the anchor would change, which loads nothing.
    await this.tab.open("about:blank");
    await this.tab.open(this.address + hash);
    await this.tab.call(helpers);
    await this.call(() => test.idle());
  }

  call(does, ...args) {
    return this.tab.call(does, ...args);
  }

  // Types a program in place of the one that is there. Returns what the page then shows.
  async runs(program) {
    return this.call(async (program) => {
      const began = performance.now();
      const shown = new Promise((resolve) => {
        new MutationObserver((_, observer) => {
          observer.disconnect();
          resolve(performance.now());
        }).observe(document.body, { attributeFilter: ["data-took"] });
      });
      test.write(program);
      run();
      const log = Math.round(await shown - began);
      await test.idle();
      return { ...test.shown(), log, timeline: Math.round(performance.now() - began) };
    }, program);
  }

  key(key, modifiers = 0) {
    const code = { Tab: 9, Escape: 27, Enter: 13, ArrowDown: 40, End: 35 }[key];
    const event = { key, code: key, windowsVirtualKeyCode: code, modifiers };
    return this.tab.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...event })
      .then(() => this.tab.send("Input.dispatchKeyEvent", { type: "keyUp", ...event }));
  }
}

function helpers() {
  const sleep = () => new Promise((resolve) => setTimeout(resolve, 10));
  // A check has a limit of its own, and the machine may be slow.
  kernel.longest = 60_000;
  window.test = {
    // Waits for what a script of this page returns.
    async until(what, holds) {
      const began = performance.now();
      while (!holds()) {
        if (performance.now() - began > 30_000) throw new Error(`expected within 30 s: ${what}`);
        await sleep();
      }
    },
    // The last run has ended, and the timeline is that of the log.
    async idle() {
      await sleep();
      await test.until("a log, and its timeline", () => document.body.dataset.shown && !kernel.watch
        && (!isTimelineShown() || document.body.classList.contains("stale") || timelineInside()));
      await sleep();
    },
    write(program) {
      text.value = program;
      edited();
    },
    shown: () => ({
      status: element("status").textContent,
      problems: [...element("problems").children].map((each) => each.textContent),
      report: element("report").hidden ? "" : element("report").textContent,
      isStale: document.body.classList.contains("stale"),
      program: text.value,
      lines: log.lines.join("\n"),
      notice: element("notice").hidden ? "" : element("said").textContent,
    }),
    async choose(event) {
      choose(event);
      await test.until("the causes of a line", () => element("chain").children.length > 0);
    },
    // The number of the marked line of the program; 0 without one.
    marked: () => [...painted.children].findIndex((line) => line.classList.contains("chosen")) + 1,
    // Texts that are hard to read: their contrast is below 4.5.
    faint() {
      const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const rgb = (color) => {
        pen.fillStyle = color;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      const light = (color) => rgb(color).map((each) => each / 255)
        .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
        .reduce((sum, each, n) => sum + each * [0.2126, 0.7152, 0.0722][n], 0);
      const ground = (it) => {
        const color = getComputedStyle(it).backgroundColor;
        return color !== "rgba(0, 0, 0, 0)" || !it.parentElement ? color : ground(it.parentElement);
      };
      const found = [];
      for (const it of document.body.querySelectorAll("*")) {
        const isText = [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!isText || it.offsetParent === null || it.id === "text") continue;
        const [a, b] = [light(getComputedStyle(it).color), light(ground(it))].sort((a, b) => b - a);
        if ((a + 0.05) / (b + 0.05) < 4.5) found.push(it.textContent.slice(0, 40));
      }
      return found;
    },
  };
}

// Every view of the page, light and dark, wide and narrow. Returns how long the first log took.
async function looks(page) {
  let first = 0;
  for (const [width, scheme] of [[1280, "light"], [400, "dark"], [1280, "dark"], [400, "light"]]) {
    await page.tab.size(width, 860);
    await page.tab.prefer(scheme);
    await page.open("#deadlock");
    first ||= await page.call(() => document.body.dataset.shown);
    const faults = await page.call(async () => {
      const faults = [];
      const look = (view) => {
        const wide = document.documentElement.scrollWidth - innerWidth;
        if (wide > 0) faults.push(`${view}: wider than the window by ${wide} px`);
        faults.push(...test.faint().map((text) => `${view}: too faint: ${text}`));
      };
      look("the first view");
      await test.choose(14);
      look("a chosen line");
      goTo(8);
      drawRows();
      look("the lines of the caret");
      toggleLanguage();
      await copyLink();
      look("language and link");
      toggleLanguage();
      step(1);
      timelineInside().openPanel(log.chosen);
      await test.idle();
      look("the state");
      test.write("task ann:\n  slep 5\n  lock a_lock_that_has_a_name_without_an_end_and_without_a_space_in_it 7");
      run();
      await test.idle();
      look("problems");
      return faults;
    });
    must(faults.length === 0, `${width} px, ${scheme}:\n  ${faults.join("\n  ")}`);
  }
  await page.tab.size(1280, 860);
  await page.tab.prefer("light");
  return first;
}

// The remarks of a golden explain the log and are not compared.
const withoutRemarks = (log) => log.split("\n").filter((line) => !line.startsWith("# ")).join("\n").trimEnd();

async function runsPrograms(page) {
  const names = await page.call(() => programs.map(({ name }) => name));
  must(names.length >= 8, `expected at least 8 programs, not ${names.length}`);
  for (const name of names) {
    await page.open(`#${name}`);
    const { lines, problems, notice, program } = await page.call(() => test.shown());
    sameFacts({ problems, notice }, { problems: "", notice: "" }, name);
    const golden = readFileSync(path.join(root, "tests/golden/play", `${name}.trace`), "utf8");
    same(withoutRemarks(lines), withoutRemarks(golden), `${name}: the log`);
    // The timeline has the same events, timed.
    const drawn = await page.call(() => {
      const { count, line } = timelineInside();
      return Array.from({ length: count }, (_, n) => line(n)).join("\n");
    });
    const untimed = (log) => log.replace(/ (ran|waited|late)=\S+/g, "");
    same(untimed(drawn), untimed(lines.replace(/^#.*\n/gm, "")), `${name}: the timeline`);
    must(program.startsWith("# "), `${name}: expected a comment at the top of the program`);
  }
  return names.length;
}

async function stopsAnEndlessProgram(page) {
  const { problems, isStale } = await page.runs("task a:\n  repeat:\n    spin 1");
  must(problems.length === 1 && /^Line [123]: .*10,?000 statements/.test(problems[0]) && !isStale,
    `an endless program: expected a problem with its line and a log, not ${problems}`);
}

async function saysWhatIsWrong(page) {
  await page.open("#deadlock");
  const before = await page.call(() => log.lines.join("\n"));
  const { status, problems, isStale, lines } = await page.runs(
    "task ann:\n  slep 5\n  unlock fork\n  within 5\n    sleep 1\n  join bob\n  note {x}");
  sameFacts(
    { status, isStale, lines: problems.map((each) => /^Line (\d+): /.exec(each)?.[1]) },
    { status: "Not run: see line 2; the log is still that of the program before", isStale: true, lines: "2,3,4,6,7" },
    "a program with mistakes");
  must(problems[0].includes("`sleep`"), `\`slep\`: expected that \`sleep\` is proposed, not: ${problems[0]}`);
  same(lines, before, "the log after a program with mistakes");
  const line = await page.call(async () => {
    // The log of before can still be asked.
    await test.choose(5);
    element("problems").querySelectorAll("button")[3].click();
    return caretLine();
  });
  must(line === 6, `a click on the problem of line 6: the caret is in line ${line}`);
  const { report, status: stuck } = await page.runs("task a:\n  lock x\n  wait never");
  must(stuck.startsWith("Stuck at 0 ms") && report.includes("never"),
    `a task that waits forever: expected a report, not: ${stuck} ${report}`);
  const table = await page.call(async () => {
    const box = element("report"), folded = box.querySelector("details"), isFolded = !folded.open;
    folded.open = true;
    await new Promise((resolve) => folded.addEventListener("toggle", resolve, { once: true }));
    box.scrollTop = box.scrollHeight;
    // The last line of the table, and the log below the box.
    const bottom = folded.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
    return { isFolded, isReadable: bottom <= 1, log: element("log").clientHeight > 60 };
  });
  sameFacts(table, { isFolded: true, isReadable: true, log: true }, "the table of the report");
}

// A choice in the log, the program or the timeline shows in the other two.
async function marks(page) {
  await page.open("#deadlock");
  const facts = await page.call(async () => {
    const blocked = log.lines.findIndex((line) => line.includes("block    mutex knife")) - log.heads;
    const line = log.sites[blocked + log.heads];
    element("log").focus();
    const heights = () => `${element("log").clientHeight} ${element("why").clientHeight}`, before = heights();
    await test.choose(blocked);
    const inLog = element("rows").querySelector(".chosen").textContent;
    const facts = {
      line: /^ +lock knife/.test(text.value.split("\n")[line - 1]),
      log: inLog === log.lines[blocked + log.heads],
      program: test.marked() === line,
      timeline: timelineInside().view.chosen === blocked,
      sentence: element("sentence").textContent.includes("ann"),
      still: heights() === before,
      active: document.getElementById(element("log").getAttribute("aria-activedescendant")).textContent === inLog,
    };
    const cause = element("chain").querySelectorAll("button")[1];
    const seq = Number(cause.textContent.slice(1, 5));
    cause.click();
    facts.cause = numberOf(log.chosen) === seq;
    timelineInside().choose(blocked, true);
    facts.fromTimeline = log.chosen === blocked && test.marked() === line;
    goTo(line);
    document.dispatchEvent(new Event("selectionchange"));
    facts.fromProgram = [...element("rows").querySelectorAll(".of-caret")]
      .some((row) => row.textContent === inLog);
    return facts;
  });
  must(Object.values(facts).every(Boolean), `marks: expected that each is true: ${JSON.stringify(facts)}`);
}

// A line with a problem is scrolled into view, once, and the caret stays.
async function showsAProblem(page) {
  await page.open("#race");
  const facts = await page.call(async () => {
    const isSeen = () => {
      const line = painted.querySelector(".bad").getBoundingClientRect(), box = text.getBoundingClientRect();
      return line.top >= box.top && line.bottom <= box.bottom;
    };
    const lines = ["task ann:", ...new Array(80).fill("  yield"), "  slep 5"];
    text.focus();
    text.value = lines.join("\n");
    text.setSelectionRange(4, 4);
    text.scrollTop = 0;
    run();
    await test.idle();
    const facts = { scrolled: text.scrollTop > 0, isSeen: isSeen(), caret: text.selectionStart };
    text.scrollTop = 0;
    run();
    await test.idle();
    return { ...facts, again: text.scrollTop };
  });
  sameFacts(facts, { scrolled: true, isSeen: true, caret: 4, again: 0 }, "a problem far below the caret");
}

// Each line of the log, and the line of the program that it marks.
async function marksTheRightLine(page) {
  for (const [name, wanted] of [
    ["deadlock", {
      "#0001": 0, "#0002": 0, "#0005": 0, "#0006": 7, "#0007": 7, "#0008": 13, "#0010": 7, "#0011": 0, "#0012": 8,
      "#0013": 9, "#0017": 9, "#0018": 9, "#0021": 9, "#0024": 16, "#0025": 16, "#0026": 0, "#0033": 16, "#0037": 16,
      "#0038": 0, "#0039": 0, "#0043": 0,
    }],
    ["timeout", { "#0012": 8, "#0014": 11, "#0022": 8, "#0023": 12, "#0024": 12, "#0025": 0, "#0027": 15, "#0031": 0 }],
    ["lost-wake-up", { "#0015": 18, "#0016": 19, "#0017": 0, "#0018": 12, "#0019": 13 }],
  ]) {
    await page.open(`#${name}`);
    const marked = await page.call(() => Object.fromEntries(log.lines.slice(log.heads)
      .map((line, event) => {
        choose(event);
        return [words(line)[2], test.marked()];
      })));
    const seqs = Object.keys(wanted);
    sameFacts(Object.fromEntries(seqs.map((seq) => [seq, marked[seq]])), wanted, `${name}: the lines of the program`);
    // The panel of the state shows the same lines, except those of notes.
    const differ = await page.call(() => log.lines.slice(log.heads).filter((line, event) => {
      if (/ spawn +parent=-| run +cause=#\d+$| (note|notify) /.test(line)) return false;
      const site = timelineInside().siteOf(event)?.site ?? "program:0";
      return site !== `program:${log.sites[event + log.heads]}`;
    }));
    same(differ.join("\n"), "", `${name}: the lines whose places differ in the timeline`);
  }
}

// After a hang, the log shows where the program ends and the kernel cleans up.
async function showsTheHang(page) {
  for (const [name, link, first] of [["deadlock", "#0024", "#0026"], ["lost-wake-up", "#0019", "#0020"]]) {
    await page.open(`#${name}`);
    const facts = await page.call(() => {
      const rows = [...element("rows").children], at = rows.findIndex((row) => row.className === "rule");
      const seqOf = (row) => words(row.textContent)[2], box = log.box.getBoundingClientRect();
      const { top, bottom } = rows[at].getBoundingClientRect();
      const isAfter = (row) => row.classList.contains("after");
      const facts = {
        first: seqOf(rows[at + 1]), isSeen: top >= box.top && bottom <= box.bottom,
        isFaint: rows.every((row, n) => n === at || isAfter(row) === n > at),
      };
      const link = element("report").querySelector("button");
      link.click();
      facts.link = link.textContent.endsWith(seqOf(element("rows").querySelector(".chosen")));
      facts.seq = words(log.lines[log.chosen + log.heads])[2];
      // The rows are where the clicks expect them, also those below the rule.
      choose(eventCount() - 1);
      const last = element("rows").lastChild.getBoundingClientRect();
      facts.isAtTheEnd = Math.abs(last.bottom - element("all").getBoundingClientRect().bottom) < 1;
      return facts;
    });
    sameFacts(facts, { first, isSeen: true, isFaint: true, link: true, seq: link, isAtTheEnd: true }, name);
  }
  // A note can have the text of the warning, and of the line from which on the kernel cleans up.
  await page.runs("task ann:\n  note drop its_run_failed\n  note warn deadlock of\n  wait dinner");
  const verbs = await page.call(() => {
    element("report").querySelector("button").click();
    return [log.chosen + log.heads, log.hang].map((n) => words(log.lines[n])[5]).join();
  });
  same(verbs, "block,drop", "the line before the hang, and that of the hang");
}

async function steps(page) {
  await page.open("#deadlock");
  const facts = await page.call(async () => {
    const inside = timelineInside(), topOf = (id) => element(id).getBoundingClientRect().top;
    const before = [topOf("step"), topOf("timeline")];
    for (let n = 0; n < 11; n++) element("step").click();
    const facts = { isOpened: inside.isOpen(), isStill: `${before}` === `${[topOf("step"), topOf("timeline")]}` };
    timeline.frame.contentDocument.getElementById("panel").click();
    element("step").click();
    element("back").click();
    scrollTo(0, document.body.scrollHeight);
    facts.isInSight = scrollY > 0 && topOf("step") >= 0 && topOf("step") < 100;
    Object.assign(facts, {
      chosen: log.chosen, panel: inside.isOpen(), timeline: inside.view.chosen,
      where: timeline.frame.contentDocument.getElementById("where").textContent.split(" \u00b7 ")[0],
    });
    // After the next run the panel is still open.
    run();
    await test.idle();
    facts.again = timelineInside().isOpen();
    timelineInside().closePanel();
    facts.stepping = document.body.classList.contains("stepping");
    return facts;
  });
  sameFacts(facts, {
    isOpened: false, isStill: true, isInSight: true,
    chosen: 10, panel: true, timeline: 10, where: "line 11 of 43", again: true, stepping: false,
  }, "11 steps forward, the state, one step more and one back");
}

async function setsTheSeed(page) {
  await page.open("#deadlock");
  const facts = await page.call(async () => {
    const set = async (name, value) => {
      const { hash } = location;
      element(name).value = value;
      element(name).dispatchEvent(new Event("input"));
      // The address changes when the program is run.
      await test.until("the run of this program", () => location.hash !== hash);
      await test.idle();
    };
    const before = text.value, facts = {};
    await set("seed", 7);
    facts.seed = log.lines[1].startsWith("# explored seed=7 ");
    await set("late", 3);
    facts.late = log.lines.some((line) => line.includes("0.005000")) && /^seed 7$/m.test(text.value);
    await set("seed", 0);
    await set("late", 0);
    facts.back = text.value === before;
    return facts;
  });
  sameFacts(facts, { seed: true, late: true, back: true }, "seed 7 and late 3, and back to 0");
  // The reader takes a program that is indented as a whole.
  const indented = (setting) => `  # a\u2028b\n${setting}  task ann:\n    yield`;
  await page.runs(indented(""));
  const texts = await page.call(() => [7, 8, 0].map((seed) => {
    set("seed", seed);
    return text.value;
  }));
  const expected = ["  seed 7\n", "  seed 8\n", ""].map(indented);
  same(JSON.stringify(texts), JSON.stringify(expected), "the seed of a program that is indented");
}

async function keepsTheProgramInTheAddress(page) {
  await page.open("#race");
  const program = "# Grüße\ntask zoe:\n  sleep 7\n  note hallo";
  const { lines } = await page.runs(program);
  const address = await page.call(async () => {
    await test.until("the address of the program", () => location.hash.startsWith("#p="));
    const steps = history.length;
    for (let n = 0; n < 3; n++) {
      run();
      await test.idle();
    }
    const frames = document.querySelectorAll("iframe").length;
    return { hash: location.hash, more: history.length - steps, frames };
  });
  sameFacts({ ...address, hash: "" }, { hash: "", more: 0, frames: 1 },
    "after three runs: more steps in the history, and frames");
  await page.open(address.hash);
  const opened = await page.call(() => test.shown());
  same(opened.program, program, "a link in a new window: the program");
  same(opened.lines, lines, "a link in a new window: the log");
  const back = await page.call(async () => {
    const own = text.value;
    element("pages").value = "deadlock";
    element("pages").dispatchEvent(new Event("change"));
    await test.until("the deadlock", () => location.hash === "#deadlock" && text.value.includes("knife"));
    history.back();
    await test.until("the program before", () => text.value === own);
    return element("pages").selectedOptions[0].textContent;
  });
  must(back === "Your own program", `after Back: expected that the list says "Your own program", not ${back}`);
}

// The list leads back to what its reader has written.
async function keepsTheOwnProgram(page) {
  await page.open("#race");
  const facts = await page.call(async () => {
    const choose = async (name, holds) => {
      element("pages").value = name;
      element("pages").dispatchEvent(new Event("change"));
      await test.until(name || "the own program", holds);
      await test.idle();
    };
    const list = element("pages").options, facts = { before: list[list.length - 1].disabled };
    const own = text.value.replace("sleep 2", "sleep 4");
    // The list is used before the edit has run.
    test.write(own);
    await choose("lost-wake-up", () => text.value.includes("dinner"));
    await choose("", () => text.value === own);
    facts.list = element("pages").selectedOptions[0].textContent;
    facts.log = log.lines.some((line) => line.includes("sleep 4ms"));
    facts.address = await programOf(location.hash) === own;
    return facts;
  });
  sameFacts(facts, { before: true, list: "Your own program", log: true, address: true },
    "an edit, a page of the list, and back");
}

async function takesLinksAndFiles(page) {
  await page.open();
  const facts = await page.call(async () => {
    const facts = {};
    const transfer = (type, data) => {
      const transfer = new DataTransfer();
      if (data instanceof File) transfer.items.add(data);
      else transfer.setData(type, data);
      return transfer;
    };
    const opens = async (program, act) => {
      act();
      await test.until(program, () => text.value === program);
      await test.idle();
      return log.lines.some((line) => line.includes(`note     ${program.split("note ")[1]}`));
    };
    const paste = (data) => new ClipboardEvent("paste",
      { clipboardData: transfer("text/plain", data), bubbles: true, cancelable: true });
    const drop = (data) => new DragEvent("drop",
      { dataTransfer: transfer("text/plain", data), bubbles: true, cancelable: true });
    const program = (note) => `task a:\n  note ${note}`;
    const file = (note) => new File([`${program(note)}\n`.replace("\n", "\r\n")], "mine.play", { type: "text/plain" });
    const pasted = `file:///home/ann/My%20Docs/playground.html${await linkOf(program("pasted"))}\n`;
    facts.pasted = await opens(program("pasted"), () => text.dispatchEvent(paste(pasted)));
    const dropped = await linkOf(program("dropped"));
    facts.dropped = await opens(program("dropped"), () => document.body.dispatchEvent(drop(dropped)));
    facts.file = await opens(program("file"), () => element("log").dispatchEvent(drop(file("file"))));
    facts.opened = await opens(program("opened"), () => {
      element("file").files = transfer("", file("opened")).files;
      element("file").dispatchEvent(new Event("change"));
    });
    // Any other text is pasted as text.
    facts.text = text.dispatchEvent(paste("sleep 5 # not a link"));
    await copyLink();
    const link = element("notice").querySelector("input").value;
    facts.copied = link.startsWith("file:") && await programOf(linkIn(link)) === text.value;
    facts.local = element("said").textContent.includes("this computer only");
    return facts;
  });
  must(Object.values(facts).every(Boolean), `links and files: expected that each is true: ${JSON.stringify(facts)}`);
}

async function refusesLinks(page) {
  const whole = await page.call(() => linkOf("task a:\n  note it is whole, and has some letters"));
  const large = await page.call(() => linkOf("task a:\n".padEnd(1e7)));
  for (const [link, expected] of [
    [whole.slice(0, -9), "The link has lost a part"],
    ["#p=a", "The link has lost a part"],
    [large, "The program of the link is too long"],
    ["#no-such-page", "No program has the name no-such-page"],
  ]) {
    await page.open(link);
    const { notice, lines, program } = await page.call(() => test.shown());
    must(notice.startsWith(expected), `${link.slice(0, 40)}: expected "${expected}", not "${notice}"`);
    must(program && lines, `${link.slice(0, 40)}: expected the first program, and its log`);
  }
}

// The worker is replaced by one that hangs or panics, for one run.
async function outlivesItsWorker(page) {
  await page.open("#race");
  const facts = await page.call(async () => {
    const facts = {}, { longest } = kernel, good = element("worker").textContent;
    const begin = (more) => {
      element("worker").textContent = good + more;
      renew();
      element("worker").textContent = good;
      run();
    };
    const runs = async (more) => {
      begin(more);
      kernel.longest = longest;
      await test.until("what became of the run", () => document.body.classList.contains("stale"));
      const said = element("status").textContent;
      run();
      await test.until("the next run", () => !document.body.classList.contains("stale"));
      await test.idle();
      return said;
    };
    const loop = "run = () => { for (;;); };";
    kernel.longest = 300;
    facts.loop = await runs(loop);
    // An argument that is no Unicode.
    const panic = "encoder.encode = () => Uint8Array.of(255, 0); answer([0], program);";
    facts.panic = await runs(`run = (program) => { ${panic} };`);
    // A new run does not wait for the one before.
    begin(loop);
    run();
    await test.idle();
    await test.choose(5);
    return facts;
  });
  must(facts.loop.startsWith("Stopped: the run has not ended within"), `a worker that loops: ${facts.loop}`);
  must(/^The kernel has panicked: thread 'main' .*called `Result::unwrap\(\)`/s.test(facts.panic), `a panic: ${facts.panic}`);
}

async function runsNoTextOfAProgram(page) {
  const evil = "</script><img src=x onerror='top.hit = 1'><!--";
  const program = `# ${evil} {{kernel}}\ntask a:\n  note ${evil}\n  sleep 1`;
  await page.open(await page.call((program) => linkOf(program), program));
  const facts = await page.call(async () => {
    const note = log.lines.findIndex((line) => line.includes("note ")) - log.heads;
    await test.choose(note);
    timelineInside().openPanel(note);
    await test.idle();
    const images = (of) => of.querySelectorAll("img").length;
    return { noted: note > 0, images: images(document) + images(timeline.frame.contentDocument), hit: window.hit };
  });
  sameFacts(facts, { noted: true, images: 0, hit: undefined }, "a program with the text of a page");
  const { problems } = await page.runs(`task a:\n  ${evil}`);
  must(problems.length > 0 && problems[0].includes("<"), `expected a problem that shows the text, not ${problems}`);
}

// Tab reaches everything, and the editor can be left.
async function obeysTheKeyboard(page) {
  await page.open("#deadlock");
  await page.call(() => test.choose(12));
  const wanted = await page.call(() => {
    const all = [...document.querySelectorAll("button, input, select, textarea, summary, #log, iframe")];
    return all.filter((it) => it.offsetParent !== null).map((it) => it.id || it.textContent || it.title);
  });
  const reached = new Set();
  for (let n = 0; n < wanted.length + 2; n++) {
    await page.key("Tab");
    const [name, isSeen] = await page.call(() => {
      const it = document.activeElement, { outlineStyle } = getComputedStyle(it);
      return [it.id || it.textContent || it.title, outlineStyle !== "none" || it.localName === "iframe"];
    });
    must(isSeen, `expected that the focus can be seen at ${name}`);
    reached.add(name);
    if (name === "text") await page.key("Escape");
  }
  const missing = wanted.filter((name) => !reached.has(name));
  must(missing.length === 0, `expected that Tab reaches also ${missing.join(", ")}`);
  await page.call(() => element("log").focus());
  for (const key of ["End", "ArrowDown"]) await page.key(key);
  const last = await page.call(() => log.chosen === eventCount() - 1);
  must(last, "End in the log: expected that the last line is chosen");
  await page.call(() => {
    test.write("task a:");
    goTo(1);
  });
  for (const key of ["Enter", "Tab"]) await page.key(key);
  const typed = await page.call(() => text.value);
  must(typed === "task a:\n    ", `Enter and Tab after \`task a:\`: expected four spaces, not ${JSON.stringify(typed)}`);
}

// In a frame, as in a page of the book: it tells its height, and has the timeline on demand.
async function fitsInABook(page) {
  await page.tab.size(750, 860);
  await page.open("?small#deadlock");
  const facts = await page.call(async () => {
    const heights = [];
    addEventListener("message", ({ data }) => data.height && heights.push(data.height));
    const isHidden = (id) => element(id).offsetParent === null;
    const facts = { title: isHidden("pages"), seed: isHidden("seed"), timeline: isHidden("timeline") };
    const before = document.documentElement.offsetHeight;
    element("more").click();
    await test.idle();
    await test.until("a larger height", () => heights.at(-1) > before + 300);
    facts.opened = timelineInside().count > 0;
    element("more").click();
    await test.until("the height of before", () => heights.at(-1) === before);
    element("whole").focus();
    facts.whole = element("whole").href === location.href.replace("?small", "");
    return facts;
  });
  must(Object.values(facts).every(Boolean), `in a book: expected that each is true: ${JSON.stringify(facts)}`);
}
