"use strict";

// The answer of `trace why` in a page: the chain of causes of a line, in sentences. The same words
// as `tool/chain.rs`; the check of the pages compares them. The timeline and the live page use it.

// Tasks, and things, whose names differ only in numbers are of one kind.
const kindOfName = (name) => name.replace(/\d+/g, "*");

const { readLine, Causes, Why, notifiedWords } = (() => {
  const OP_ENDS =
    [" = ", " held-by=", " from=", " woke=", " k=", " reg=", " in=", " cause=", " at=", " ran="];

  // Splits a line of the log into its parts.
  function readLine(text) {
    const parts = /^ *(\S+) +(\d+) +#(\d+) +(\d+) +(\S+) +(\S+) +(.*)$/.exec(text);
    if (!parts) return null;
    const [, at, turn, seq, task, name, verb, detail] = parts;
    const words = detail.split(" ").map((word) => word.replace(/,+$/, ""));
    const free = ["warn", "panic", "refuse", "cap", "note", "boot"].includes(verb);
    const cut = (from, ends) => {
      const at = ends.map((end) => from.indexOf(end)).filter((at) => at >= 0);
      return from.slice(0, Math.min(from.length, ...at));
    };
    const key = (name) => {
      const word = free ? undefined : words.find((word) => word.startsWith(`${name}=`));
      return word === undefined ? null : word.slice(name.length + 1);
    };
    const number = (name) => {
      const value = key(name);
      return value !== null && /^#?\d+$/.test(value) ? Number(value.replace("#", "")) : null;
    };
    const equals = free ? -1 : detail.indexOf(" = ");
    return {
      at, turn: Number(turn), seq: Number(seq), task: Number(task), name, verb, detail, key, number,
      cause: number("cause"),
      word: (nth) => words[nth] ?? "",
      // The operation of a `trap`, `block` or `wake` line.
      op: cut(detail, OP_ENDS),
      outcome: equals < 0 ? "" : cut(detail.slice(equals + 3), [", ", " cause=", " at="]),
    };
  }

  // Finds the cause of each line of a log, from the first to the last: the number of an event,
  // "outside", or null if the log does not have it.
  function Causes() {
    const runs = new Map();
    let phase = null;
    return (line) => {
      const { verb, task, cause, seq } = line;
      const parent = line.number("parent");
      let behind;
      if (verb === "fire" || verb === "arrive") behind = "outside";
      else if (verb === "spawn" && parent !== null) behind = runs.get(parent) ?? null;
      else if (cause !== null) behind = cause;
      else if (verb === "spawn") behind = "outside";
      else if (verb === "phase") behind = phase ?? "outside";
      else behind = task === 0 ? "outside" : runs.get(task) ?? null;
      if (verb === "run" || verb === "spawn") runs.set(task, seq);
      if (verb === "phase") phase = seq;
      return behind;
    };
  }

  // In the words of this file, an *aside* is a part that a short sentence leaves out: a place in the
  // program, the number of an event, a time. A *stand-in* is only in the short one. Both, and the names
  // of tasks, are between signs that no log contains; `inFull` and `inShort` take the signs away.
  const aside = (text) => `\x01${text}\x02`;
  const named = (task, text = `task ${task}`) => `\x03${task}\x04${text}\x05`;
  const standIn = (text) => `\x06${text}\x07`;
  const eitherWay = (full, short) => aside(full) + standIn(short);
  const inFull = (text) => text.replace(/\x06[^\x07]*\x07|\x03\d+\x04|[\x01\x02\x05]/g, "");

  // Returns a sentence without its asides in parts: texts, and the numbers of tasks.
  function inShort(text) {
    for (let before = ""; before !== text;) {
      before = text;
      text = before.replace(/\x01[^\x01\x02]*\x02/g, "");
    }
    const parts = text.replace(/[\x06\x07]/g, "").split(/\x03(\d+)\x04[^\x05]*\x05/);
    return parts.map((part, nth) => (nth % 2 ? Number(part) : part)).filter((part) => part !== "");
  }

  const capital = (text) => text.replace(/^(?:\x03\d+\x04|\x01)*./,
    (head) => head.slice(0, -1) + head.at(-1).toUpperCase());

  // The prose of a log. `line(place)` is the text of a line, or nothing after the last line,
  // `behind(place)` the place of its cause or -1, and `find(seq)` the place of an event or -1.
  // `begun(place)`, optional, is the place of the line that began the wait that a line ends, or -1;
  // without it, the lines before are searched.
  // `notifies()`, optional, lists the places of all `notify` lines, in order. `name(id)` is the name
  // of a task, or null. `whole` states that no line is missing, so that it is known who had the CPU.
  // `begins` is the place behind the head of a dump, which has only the lines that were in force.
  function Why({ line, behind, find, begun, notifies, name = () => null, whole = true, begins = 0 }) {
    const read = (place) => readLine(line(place));

    // Describes the operation of a line's wait, and, which takes a search, the place where the holder
    // took the primitive. With a place `now`, `wait` names the holder at that place, or none.
    function waitInWords(wait, hasSite = true, now = -1) {
      const take = hasSite && now < 0 && wait.key("held-by") === null ? takenDuring(wait) : null;
      const words = waitWords(wait, name) + (take ? `, held by ${tasksInWords(`${take.task}`, name)}` : "");
      const holder = wait.number("held-by");
      const site = take ? take.key("at") : holder === null || !hasSite ? null : takenAt(wait, holder, now < 0 ? find(wait.seq) : now);
      if (site !== null) return words + aside(`, who took it at ${site}`);
      const lost = notifiedBefore(wait);
      return lost?.key("woke") === "0" ? `${words}, ${lastNotified(lost.seq, lost.task, 0)}` : words;
    }

    // Returns the first `take` of a wait's lock during the wait, if its line names no holder: the
    // lock was handed over then.
    function takenDuring(wait) {
      const start = find(wait.seq);
      if (start < 0 || UNTAKEN.test(wait.op)) return null;
      for (let place = start + 1, text; (text = line(place)); place++) {
        if (!/ (take|wake|deliver|withdraw|exit) /.test(text)) continue;
        const it = readLine(text);
        if (it.verb === "take" && it.op === wait.op) return it;
        if (it.verb === "exit" && it.task === wait.task) return null;
        if (["wake", "deliver", "withdraw"].includes(it.verb) && it.number("k") === wait.number("k")) return null;
      }
      return null;
    }

    // Returns the last notification of a wait's primitive before the line that begins the wait.
    function notifiedBefore(wait) {
      const before = find(wait.seq), list = notifies?.();
      const of = (place) => {
        const text = list || line(place).includes(" notify ") ? line(place) : "";
        const it = text && readLine(text);
        return it && it.verb === "notify" && it.op === wait.op ? it : null;
      };
      let nth = list ? list.length : before;
      while (--nth >= 0) {
        const place = list ? list[nth] : nth, found = place < before ? of(place) : null;
        if (found) return found;
      }
      return null;
    }

    function takenAt(wait, holder, end) {
      for (let place = end; place >= 0; place--) {
        if (!line(place).includes(" take ")) continue;
        const it = readLine(line(place));
        if (it.verb === "take" && it.task === holder && it.op === wait.op) return it.key("at");
      }
      return null;
    }

    // Returns the line that began the wait that a line ends: that of its ticket. A wait of the
    // kernel's own task has no ticket, and began with its last `block`.
    function waitOf(end) {
      const it = read(end), ticket = it.number("k");
      const is = (place) => {
        const text = line(place);
        if (!text.includes(ticket === null ? " block " : ` k=${ticket}`)) return false;
        const { verb, task, number } = readLine(text);
        if (task !== it.task) return false;
        return ticket === null ? verb === "block"
          : ["block", "await"].includes(verb) && number("k") === ticket;
      };
      let place = end - 1;
      if (begun) place = begun(end);
      else while (place >= 0 && !is(place)) place--;
      const found = place < 0 ? null : read(place);
      return ticket !== null || found?.op === it.op ? found : null;
    }

    // Describes how long a task had waited for the CPU before a run, and which tasks had the CPU,
    // as far as the log has the lengths of runs. Empty if the task had not waited.
    function waited(run) {
      const it = read(run), ready = behind(run);
      if (ready < 0) return "";
      const wait = it.key("waited");
      // In a log that is not timed, a line can be older than the end of its task's long run.
      const since = Math.max(micros(read(ready).at), wait === null ? ownEnd(ready) : 0);
      const span = wait === null ? spanInWords(Math.max(0, micros(it.at) - since)) : wait;
      // The head of a dump has neither runs nor their lengths.
      const isHead = ready < begins;
      if (span === "0s" || (isHead && wait === null)) return "";
      const said = capital(`${who(it)} had been ready for ${span}`);
      const runs = whole && !isHead ? runsBetween(ready, run) : [];
      const most = micros(it.at) - since;
      const length = ([from, to]) => {
        if (wait !== null) return micros(to.at) - Math.max(micros(from.at), since);
        const ran = longRun(from, to, run);
        return ran === null ? null : Math.min(ran, most);
      };
      const isKnown = runs.every((run) => length(run) !== null), long = (run) => length(run) ?? 0;
      let longest = null;
      for (const each of runs) if (!longest || long(each) > long(longest)) longest = each;
      if (longest && !long(longest)) longest = null;
      const why = [], others = new Set(runs.map(([{ task }]) => task));
      if (longest) {
        others.delete(longest[0].task);
        const [from] = longest, by = spanInWords(long(longest));
        why.push(`${who(from)} ran for ${by} of that${resumedAt(find(from.seq))}`);
      }
      const s = others.size === 1 ? "" : "s", other = longest ? " other" : "";
      if (others.size) why.push(`${others.size}${other} task${s} ran ${longest ? "too" : "first"}`);
      if (!longest && !isKnown) why.push("the log is not timed and does not say for how long");
      return why.length ? `${said}: ${why.join(", and ")}.` : `${said}.`;
    }

    // Returns the time at which the task's last run before a line ended, by a `longrun` line; or 0.
    function ownEnd(end) {
      const { task } = read(end);
      for (let place = end; place >= 0; place--) {
        const text = line(place);
        if (!/ (run|longrun) /.test(text)) continue;
        const it = readLine(text);
        if (it.task !== task || !["run", "longrun"].includes(it.verb)) continue;
        if (it.verb === "run") return 0;
        while (place >= 0 && !(read(place).verb === "run" && read(place).task === task)) place--;
        return place < 0 ? 0 : micros(read(place).at) + micros(it.key("ran"));
      }
      return 0;
    }

    // Returns the `longrun` line of a run: it is after the `block` line, or before the `exit`.
    function longRun(from, to, end) {
      const run = find(from.seq);
      const by = to.verb === "exit" ? -1 : 1;
      for (let place = find(to.seq) + by; place > run && place < end; place += by) {
        const text = line(place);
        if (!/ (run|longrun) /.test(text)) continue;
        const it = readLine(text);
        if (it.verb === "run") return null;
        if (it.verb === "longrun") return it.task === from.task ? micros(it.key("ran")) : null;
      }
      return null;
    }

    // Returns the runs between a line that made a task ready and the run of that task, each from
    // its first line to its last. The first run may have begun before.
    function runsBetween(ready, run) {
      const edge = (place) => {
        const text = line(place);
        if (!/ (run|block|exit) /.test(text)) return null;
        const it = readLine(text);
        return ["run", "block"].includes(it.verb) ||
          it.verb === "exit" && it.word(0) !== "dropped" ? it : null;
      };
      let place = ready - 1, open = null;
      while (place >= 0 && !(open = edge(place))) place--;
      if (open?.verb !== "run") open = null;
      const runs = [];
      for (place = ready; place < run; place++) {
        const it = edge(place);
        if (it?.verb === "run") open = it;
        else if (it && open) {
          runs.push([open, it]);
          open = null;
        }
      }
      return runs;
    }

    // Returns the place in the source where a run began.
    function resumedAt(run) {
      const cause = behind(run), it = cause < 0 ? null : read(cause);
      const from = it?.verb === "spawn" ? it : it && waitOf(cause);
      const at = from?.key("at") ?? null;
      return at === null ? "" : aside(`, from ${at}`);
    }

    // Describes a line in a clause.
    function tell(place) {
      const it = read(place), by = who(it);
      switch (it.verb) {
        case "run": {
          const span = it.key("parked");
          if (span !== null) return `${by} ran, ${span} after it had left the CPU`;
          const first = behind(place) >= 0 && read(behind(place)).verb === "spawn";
          // The kernel's own task has no such field.
          return `${by} ran${first ? " for the first time" : ""}`;
        }
        case "wake": {
          const wait = waitOf(place);
          // A dump has the line that begins a wait only as long as the wait lasts.
          const what = wait ? waitInWords(wait) : it.number("k") === null ? "a waker" : `\`${it.op}\``;
          const since = wait ? sinceWords(wait) : "";
          const over = `the wait of ${by} for ${what}${since} was over`;
          return it.word(0) === "yield" ? eitherWay(over, `${by} yielded and became ready again`) : over;
        }
        case "deliver":
          return `${by} was interrupted: ${interrupted(it)}`;
        case "withdraw": {
          const wait = waitOf(place);
          const what = wait === null ? "" : ` for ${waitInWords(wait)}${sinceWords(wait)}`;
          return `the wait of ${by}${what} was withdrawn: its future was dropped`;
        }
        case "spawn": {
          const parent = it.number("parent");
          if (parent !== null) return `${named(parent)} spawned ${by}${site(it)}`;
          if (it.cause !== null) return `another thread spawned ${by}${site(it)}`;
          return `${by} was started with the kernel${aside(" (from outside)")}`;
        }
        case "arrive":
          return arrived(it) + aside(" (from outside)");
        case "fire": {
          const set = it.cause === null ? -1 : find(it.cause);
          const where = set < 0 ? "" : site(read(set));
          const owner = set < 0 ? "" : standIn(` of ${who(read(set))}`);
          const deadline = it.key("deadline") ?? it.at, unit = standIn(" s");
          const due = deadline === it.at ? "was due" : `had been due since ${deadline}${unit}`;
          return `it was ${it.at}${unit}: ${timerInWords(it)}${owner} ${due}` +
            aside(`, set by ${number(it.cause ?? 0)}${where} (from outside: time)`);
        }
        default:
          return did(it, by, waitInWords, name);
      }
    }

    // Describes in one clause why a task became ready.
    function reason(place, causePlace) {
      const it = read(place);
      const wait = ["wake", "deliver"].includes(it.verb) ? waitOf(place) : null;
      if (it.verb === "spawn") return eitherWay(tell(place), spawned(it));
      if (!wait) return tell(place);
      const cause = causePlace === undefined ? null : read(causePlace);
      const waited = `waiting${site(wait)}${aside(` since ${wait.at} s`)} for ${waitInWords(wait)}`;
      if (it.verb === "deliver") return `${interrupted(it)} while it was ${waited}`;
      if (cause?.verb === "arrive") {
        return arrived(cause) + aside(`, which it had been waiting for since ${wait.at} s${site(wait)}`);
      }
      if (it.word(0) === "sleep" && wait.word(0) === "sleep") {
        return `its sleep of ${wait.word(1)}${aside(`, begun at ${wait.at} s${site(wait)},`)} was over`;
      }
      if (it.word(0) === "yield") return `it had yielded${aside(site(wait))} until the next turn`;
      if (!cause) return tell(place);
      const full = `${who(cause)} (${number(cause.seq)}) ended its wait for \`${it.op}\`, and it had been ${waited}`;
      if (it.word(0) === "yield") return eitherWay(full, "it had yielded");
      if (it.word(0) === "join") return eitherWay(full, `${who(cause)} ended`);
      const awaited = waitWords(wait, name).replace(/, held by .*/, "");
      return eitherWay(full, `${who(cause)} ended its wait for ${awaited}`);
    }

    function spawned(spawn) {
      const parent = spawn.number("parent");
      if (parent !== null) return `${named(parent)} spawned it`;
      return spawn.cause === null ? "it was started with the kernel" : "another thread spawned it";
    }

    // Returns the whole chain in one sentence: the event, and the reason why its task ran.
    function sentence(chain) {
      const isRun = (nth) => nth < chain.length && read(chain[nth]).verb === "run";
      // For a `run`, the question is why the task became ready.
      const why = (nth) => (nth < chain.length ? reason(chain[nth], chain[nth + 1]) : null);
      let text = tell(chain[0]);
      if (isRun(0)) {
        const because = why(1);
        if (because) text = `${who(read(chain[0]))} ran because ${because}`;
      } else if (isRun(1)) {
        const because = why(2);
        if (because) text = `${text}, in a run that began because ${because}`;
      } else if (chain.length > 1) text = `${text} because ${tell(chain[1])}`;
      return `${capital(text)}.`;
    }

    // The answer for the line at a place: a sentence, and the chain from that line on, `most` steps
    // of it; `more` is how many are left out. `open` if the log does not say what is behind the
    // last step.
    function why(place, most = Infinity) {
      const chain = [];
      for (let n = place; n >= 0; n = behind(n)) chain.push(n);
      const steps = chain.slice(0, most).map((at, nth) => {
        const { seq, at: time } = read(at);
        return { place: at, seq, at: time, text: (nth ? "because " : "") + inFull(tell(at)) };
      });
      const open = !fromOutside(read(chain.at(-1)));
      // The run that contains this event.
      const run = chain.slice(0, 2).find((at) => read(at).verb === "run");
      const ready = run === undefined ? "" : waited(run);
      const said = inFull(`${sentence(chain)} ${ready}`).trimEnd();
      return { sentence: said, steps, more: chain.length - steps.length, open };
    }

    // Says how the tasks ended before the kernel did, in a sentence. Empty if the log does not have all.
    function ends(halt) {
      if (begins) return "";
      const sizes = new Map();
      for (let place = 0; place < halt; place++) {
        const it = line(place).includes(" exit ") ? read(place) : null;
        if (it?.verb === "exit") sizes.set(it.word(0), (sizes.get(it.word(0)) ?? 0) + 1);
      }
      const said = ["panic", "cancelled", "dropped"].filter((how) => sizes.has(how)).map((how) => {
        const size = sizes.get(how), did = how === "panic" ? "panicked" : `${size === 1 ? "was" : "were"} ${how}`;
        return `${numbered(size, "task")} ${did}`;
      });
      if (said.length) return `${said.join(", ")}.`;
      return whole ? "Each task had returned." : "";
    }

    // The event at a place in a short sentence, in parts. The cause is said only of a run, and of a wake
    // if it is more than that the awaited event came.
    function say(place) {
      const { verb } = read(place), cause = behind(place), by = cause < 0 ? null : read(cause);
      if (verb === "halt") return [`${inShort(sentence([place])).join("")} ${ends(place)}`.trimEnd()];
      if (verb === "run" && by) {
        const chain = [place, cause, behind(cause)].filter((each) => each >= 0);
        return inShort(`${sentence(chain)} ${waited(place)}`.trimEnd());
      }
      const hasReason = by && verb === "wake" && !["block", "fire", "arrive"].includes(by.verb);
      return inShort(sentence(hasReason ? [place, cause] : [place]));
    }

    // The awaited event of a line: as a text, and in parts without asides.
    const wait = (text, now) => inFull(waitInWords(readLine(text), true, now));
    const waitInShort = (text) => inShort(waitInWords(readLine(text), false));
    return { why, say, wait, waitInShort };
  }

  const micros = (at) => Math.round(Number(at) * 1e6);

  // Returns a duration in the words of the log: `1s`, `12.5ms`, `64us`.
  function spanInWords(micros) {
    const number = (of, digits) => of.toFixed(digits).replace(/\.?0+$/, "");
    if (!micros) return "0s";
    if (micros >= 100000) return `${number(micros / 1e6, 6)}s`;
    return micros >= 1000 ? `${number(micros / 1e3, 3)}ms` : `${micros}us`;
  }

  const numbered = (count, noun) => `${count} ${noun}${Number(count) === 1 ? "" : "s"}`;
  const number = (seq) => `#${String(seq).padStart(4, "0")}`;

  const who = ({ task, name }) => (task === 0 ? "the kernel" : named(task, `task ${task} \`${name}\``));

  // ` at FILE:LINE`, if a line says so.
  const site = (line) => (line.key("at") === null ? "" : aside(` at ${line.key("at")}`));

  const sinceWords = (wait) => aside(` (${number(wait.seq)}, since ${wait.at}${site(wait)})`);

  // Returns whether a line comes from outside, and so needs no cause.
  function fromOutside({ verb, task, cause }) {
    return ["fire", "arrive"].includes(verb) ||
      (cause === null && (["spawn", "phase"].includes(verb) || task === 0));
  }

  // Describes the interrupt of a `deliver` line in a clause.
  function interrupted(line) {
    const kind = line.outcome.split(" ")[0], scope = line.key("scope"), by = line.number("by");
    const set = line.key("set-at") === null ? "" : aside(`, set at ${line.key("set-at")},`);
    switch (kind) {
      case "!cancelled":
        if (by !== null) return `${named(by)} cancelled it`;
        return line.key("reason") !== "shutdown" ? "it was cancelled from outside"
          : eitherWay("it was cancelled from outside", "the shutdown cancelled it");
      case "!timeout": case "!timeout-cancellation": case "!uncaught-timeout":
        return scope === null ? `its connection deadline${set} passed`
          : `the deadline of scope ${scope}${set} passed`;
      default:
        return `it was told \`${line.outcome}\``;
    }
  }

  // Describes an `arrive` line in a clause.
  function arrived(line) {
    const [alias, way] = [line.word(0), line.word(1)];
    if (!way) return `the process got ${alias}`;
    if (alias.startsWith("l")) return `a client connected to ${alias}`;
    if (alias.startsWith("e")) return "another thread sent the kernel a message";
    return way === "read" ? `bytes arrived on ${alias}` : `${alias} had room for more bytes`;
  }

  // Describes the timer of a `fire` line.
  function timerInWords(fire) {
    const timer = fire.word(0), name = aside(` ${timer}`);
    if (timer.startsWith("k")) return `the sleep${name}`;
    if (timer.startsWith("s")) return `the timeout${name}`;
    if (["grace", "drain"].includes(timer)) return `the \`${timer}\` of the shutdown`;
    return `the connection deadline${name}`;
  }

  // Describes the act of a task or of the kernel. Each verb has a sentence, here or in `tell`.
  function did(line, by, waitInWords, name) {
    const [first, second, { outcome }] = [line.word(0), line.word(1), line];
    const key = (name) => line.key(name) ?? "";
    const opt = (name, text) => (line.key(name) === null ? "" : text(line.key(name)));
    switch (line.verb) {
      case "block": {
        const full = `${by} left the CPU${site(line)} to wait for ${waitInWords(line)}`;
        return first === "yield" ? eitherWay(full, `${by} yielded`) : full;
      }
      case "await":
        return `${by} began${site(line)} to wait for ${waitInWords(line)} and ran on`;
      case "io":
        if (second !== "read") return `${by} wrote ${outcome} bytes on ${first}`;
        return outcome === "0" ? `${by} read the end of ${first}`
          : `${by} read ${outcome} bytes on ${first}`;
      case "accept":
        return `${by} accepted ${line.word(2)} at ${first}`;
      case "trap":
        return `${by} got \`${outcome}\` for its trap \`${line.op}\``;
      case "exit":
        return `${by} ended (${first})`;
      case "cancel": {
        const task = line.number("by");
        return `${task === null ? "the kernel" : named(task)} asked ${by} to end`;
      }
      case "phase": {
        const cause = key("reason").startsWith("SIG") ? ` because the process got ${key("reason")}` : "";
        const left = numbered(key("tasks"), "task");
        return first === "close"
          ? `the shutdown began${aside(` (${key("reason")})`)}${standIn(`${cause}; ${left} had not ended`)}`
          : `the shutdown reached its phase ${first}`;
      }
      case "move":
        return `the ${first.startsWith("s") ? "scope" : "wait"} ${first} of ${by} moved into ` +
          `${scopeWords(key("in"))}: its future was polled there`;
      case "take":
        return `${by} took ${first} ${second}${site(line)}`;
      case "give":
        return `${by} gave back ${first} ${second}${opt("from", (task) => ` of ${named(task)}`)}`;
      case "notify": {
        // The operation of the waits in a queue.
        const woke = key("woke"), isQueue = ["wait", "queue_get", "queue_put"].includes(first);
        const what = isQueue ? `queue ${second}` : line.op;
        if (woke === "0") return `${by} notified ${what}, and no task waited there`;
        return `${by} notified ${what}, and woke ${woke} task${woke === "1" ? "" : "s"}`;
      }
      case "drop":
        return /^o\d+$/.test(first) ? `job ${first} of ${by} was dropped before it ran`
          : `the future of ${by} was dropped before its end (${first.replaceAll("_", " ")})`;
      case "join":
        return `${by} took the output of ${tasksInWords(first, name)}`;
      case "yielded":
        return `${by} yielded after ${key("budget")} reads and writes that it did not wait for`;
      case "longrun": {
        const time = (value) => spanInWords(micros(value));
        const ran = opt("ran", (ran) => ` for ${time(ran)}`);
        const cpu = opt("cpu", (cpu) => `, ${time(cpu)} of that on a CPU`);
        return `${by} had run${ran}${cpu}, from ${stopWords(key("from"))} to ${stopWords(key("to"))}`;
      }
      case "late":
        return `scope ${first} of ${by} closed with a value, ${key("over")} after its deadline ` +
          key("deadline");
      case "race": {
        const of = (name) => (key(name) === "cancel" ? "a cancellation" : `a ${key(name)}`);
        const scope = line.word(2) ? ` (scope ${line.word(2)})` : "";
        return `${by} had got ${of("winner")} when ${of("loser")} came too${scope}`;
      }
      case "warn": {
        // The circle of a deadlock is long.
        const [, head, rest] = /^(deadlock [^:]*|.*)(.*)$/.exec(line.detail);
        return `the kernel warned about ${by}: \`${head}${aside(rest)}\``;
      }
      case "panic": return `${by} panicked: \`${line.detail}\``;
      case "note": return `${by} noted: \`${line.detail}\``;
      case "enter": return `${by} entered the span ${first}`;
      case "leave": return `${by} left the span ${first}`;
      case "register":
        return key("why") === "first"
          ? `the poller began to watch ${first}, for the first wait of ${by}`
          : `the poller began to watch ${first} again, for a wait of ${by}`;
      case "unregister":
        return `the poller stopped watching ${first}, because ` +
          (UNREGISTERED[key("why")] ?? "its handle was closed");
      case "remember":
        return `the descriptor ${first} became ready to ${second}, and no task waited for that`;
      case "close":
        return `the handle of ${first} was closed, which the poller did not watch`;
      case "refuse":
        return `the poller refused ${first}: \`${line.detail.slice(first.length).trimStart()}\``;
      case "arm": {
        const phase = opt("phase", (phase) => ` for ${phase}`);
        return `${by} set ${timerInWords(line)}${phase} to ${key("until")}${site(line)}`;
      }
      case "disarm": return `${by} cancelled ${timerInWords(line)}`;
      case "tick":
        return `the kernel scanned its connection deadlines: ${key("fired")} fired, ` +
          `${key("armed")} are armed`;
      case "offload":
        if (second === "starts") return `job ${first} of ${by} got a token, and starts`;
        return `${by} asked for job ${first} on a thread${opt("limiter", (it) => ` under ${it}`)} ` +
          `(jobs: ${key("running")} with a token, ${key("queued")} in the queue)`;
      case "done": return `job ${first} ended`;
      case "abandon": return `${by} stopped waiting for job ${first}, whose thread continues`;
      case "orphan": return `job ${first} ended without a task that takes its result`;
      case "cleanup": {
        const place = opt("in", (it) => ` at branch ${it}`);
        return `the interrupt of ${scopeWords(first)} of ${by} is pending${place}: ` +
          interrupted(line);
      }
      case "cap": return `a limit was hit: ${line.detail}`;
      case "boot": return `the kernel started with ${line.detail}`;
      case "halt": {
        const names = ["tasks", "tickets", "timers", "handles", "threads"];
        const left = names.filter((name) => !["", "0"].includes(key(name)));
        const text = left.map((name) => `${name}=${key(name)}`).join(" ");
        return `the kernel ended${text ? `, and ${text} was left` : aside(", and nothing was left")}`;
      }
      default:
        return `${by}: ${line.verb.padEnd(8)} ${line.detail}`;
    }
  }

  // Describes the last notification of the primitive that a task waits for.
  function lastNotified(seq, by, woke) {
    const who = by ? named(by) : "the kernel";
    const full = `last notified at ${number(seq)} by ${who}, which woke ${woke ? numbered(woke, "task") : "no task"}`;
    return woke ? full : eitherWay(full, `which ${who} had notified when no task waited there`);
  }

  const notifiedWords = (seq, by, woke) => inFull(lastNotified(seq, by, woke));

  // The reasons why the poller no longer watches a descriptor.
  const UNREGISTERED = {
    wake: "a wait for it was over",
    suspend: "its task left the CPU for something else",
    other: "its task waits for another descriptor or direction",
    exit: "its task ended",
    interrupt: "a wait for it was interrupted or withdrawn",
  };

  const scopeWords = (scope) => (scope === "root" ? "the root scope" : `scope ${scope}`);

  // The trap between two runs: its `sleep` at FILE:LINE.
  function stopWords(stop) {
    const [, trap, , site] = /^([^@]*)(@(.*))?$/.exec(stop);
    const at = site ? aside(` at ${site}`) : "";
    if (trap === "spawn") return "its spawn";
    if (trap === "exit") return "its end";
    return trap === "waker" ? `a waker${at}` : `its \`${trap}\`${at}`;
  }

  // The operations of waits for which no log has a `take` line: of no lock, or of one without a name.
  const UNTAKEN = new RegExp("^(io|sleep|join|wait|offload|signal|yield|waker|foreign|outside|parked|condition|event|" +
    "barrier|once_cell|queue_[gp][eu]t|event_wait)( |$)| q\\d+$");

  // Returns the awaited event of a `block` line in words: `bytes on c1`.
  function waitWords(line, name) {
    const [first, second, third] = [line.word(0), line.word(1), line.word(2)];
    switch (first) {
      case "io":
        if (third !== "read") return `room to write on ${second}`;
        if (second.startsWith("l")) return `a connection at ${second}`;
        return second.startsWith("e") ? "a message of another thread" : `bytes on ${second}`;
      case "sleep":
        return `the end of its sleep of ${second}${aside(` (until ${line.key("until") ?? ""})`)}`;
      case "join": return `the end of ${named(second)}`;
      case "wait": return `a wake in queue ${second}`;
      case "offload": return `job ${second}`;
      case "signal": return "a signal";
      case "yield": return "its next turn";
      case "waker": case "foreign": return "a waker";
      case "outside": return `\`${second}\` from outside`;
      case "queue_get": return `an item of queue ${second}`;
      case "queue_put": return `room in queue ${second}`;
      case "parked": return `any of ${line.key("n") ?? ""} waits`;
      default: {
        const holders = line.key("held-by");
        return holders === null ? `${first} ${second}`
          : `${first} ${second}, held by ${tasksInWords(holders, name)}`;
      }
    }
  }

  // Returns numbers of tasks, as the log has them, in words: "tasks 3 `a`, 4 `b` and others".
  function tasksInWords(numbers, name) {
    const words = (id) => (name(Number(id)) === null ? id : `${id} \`${name(Number(id))}\``);
    const one = (id) => named(id, words(id)), all = numbers.split(","), last = all.pop();
    if (!all.length) return named(last, `task ${words(last)}`);
    return `${aside("tasks ")}${all.map(one).join(", ")} and ${last === ".." ? "others" : one(last)}`;
  }

  return { readLine, Causes, Why, notifiedWords };
})();
