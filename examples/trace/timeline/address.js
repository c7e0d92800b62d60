// The address names what is shown: `#0567` a line, `?state` the panel of the state, `?task=3` the
// life of a task, `?present` the present mode, with `&by=run` how it plays, and `&of=0018-0046` a part
// of the log. A reader may leave the line out: `#present`. A click adds an entry to the history of the
// browser, and a step replaces the last entry.

const addressing = (() => {
  const FORM = /^#(?:(\d+)(?:\?(.*))?|\??((?:state|present|task=).*))$/;
  // Browsers limit the rate of new addresses.
  const PAUSE_MS = 300;
  const digits = (n) => String(seqOf[n]).padStart(4, "0");

  function now() {
    const { open, now, from, to, unit } = presenting.now;
    if (open) {
      const by = unit === "move" ? "" : `&by=${unit}`;
      const part = from > trace.begins || to < count - 1 ? `&of=${digits(from)}-${digits(to)}` : "";
      return `#${digits(now)}?present${by}${part}`;
    }
    const task = view.task && !stepper.open ? `?task=${view.task}` : "";
    if (view.chosen < 0) return task && `#${digits(0)}${task}`;
    return `#${digits(view.chosen)}${stepper.open ? "?state" : task}`;
  }

  let timer = 0, isJump = false, written = null;
  function soon(jumps = false) {
    // A page in a page has no address of its own.
    if (location.protocol === "about:") return;
    isJump ||= jumps;
    if (timer && !jumps) return;
    clearTimeout(timer);
    timer = setTimeout(write, jumps ? 0 : PAUSE_MS);
  }

  // In a frame, the history is that of the page around it.
  function write() {
    const method = isJump && parent === window ? "pushState" : "replaceState";
    [timer, isJump] = [0, false];
    // The reader has given another address, and the browser is about to report it to `read`.
    if (location.hash !== written) return;
    document.getElementById("missing").hidden = true;
    const address = now();
    if (address !== written) history[method](null, "", address || location.href.split("#")[0]);
    written = location.hash;
  }

  // Shows what the address names; without one, the line that a dump is about. The browser reports a change of it by two events.
  function read() {
    if (location.hash === written) return;
    written = location.hash;
    // What was shown before is not written over the new address.
    clearTimeout(timer);
    [timer, isJump] = [0, false];
    const about = trace.about ?? -1, parts = FORM.exec(written || (about < 0 ? "" : `#${digits(about)}`));
    if (!parts || !count) return written === "" ? clear() : missing(written);
    // Without a number, it is the line that a dump is about, or else the first line.
    const [, seq = digits(about < 0 ? trace.begins : about), afterLine, alone] = parts, words = afterLine ?? alone;
    const n = placeOf(Number(seq));
    const wanted = new URLSearchParams(words), ends = (wanted.get("of") ?? "").split("-").filter(Boolean);
    for (const each of [seq, ...ends]) if (placeOf(Number(each)) < 0) return missing(`#${each}`);
    document.getElementById("missing").hidden = true;
    open(n, wanted, ends.map((each) => placeOf(Number(each))));
    // The address in its own form, in place of the given one.
    isJump = false;
    soon();
  }

  function open(n, words, [from, to = count - 1]) {
    if (words.has("present")) return presenting.open({ n, from, to, unit: words.get("by") });
    if (presenting.now.open) presenting.close();
    focusOn(n);
    if (words.has("state")) return openPanel(n);
    if (stepper.open) closePanel();
    choose(n, true);
    const task = Number(words.get("task"));
    if (task > 0 && laneOf.has(task)) openLife(task);
  }

  function clear() {
    document.getElementById("missing").hidden = true;
    if (presenting.now.open) presenting.close();
    if (stepper.open) closePanel();
    if (view.chosen >= 0 || view.task) choose(-1, false);
    isJump = false;
  }

  function missing(name) {
    const from = trace.begins, range = `#${digits(from)} to #${digits(count - 1)}`;
    const isWhole = seqOf[count - 1] - seqOf[from] + 1 === count - from;
    const has = !count ? "this log is empty"
      : from ? `this dump has ${range}, and ${from} lines of those before`
      : `this log has ${isWhole ? "" : `${count} lines of `}${range}`;
    document.getElementById("missing").textContent = `There is no line ${name}: ${has}.`;
    document.getElementById("missing").hidden = false;
  }

  // In a long log, the lines in view before and after the named line. If more than `SAME` of the lines
  // around it have one time, the axis of time does not tell them apart.
  const BEFORE = 60, AFTER = 40, SAME = 8;
  function focusOn(n) {
    pin(laneOfLine[n]);
    const [first, last] = [Math.max(0, n - BEFORE), Math.min(count - 1, n + AFTER)];
    const times = new Set(at.subarray(first, last + 1)).size;
    if (view.axis === "time" && times * SAME < last - first) {
      view.axis = "turns";
      all();
      sayAxis();
    }
    if (count > 4 * (BEFORE + AFTER)) {
      const room = (x(last) - x(first)) * 0.04 || (view.axis === "time" ? 50 : 1);
      [view.from, view.to] = [x(first) - room, x(last) + room];
    }
    show(n);
    draw();
  }

  for (const name of ["hashchange", "popstate"]) addEventListener(name, read);
  return { soon, read };
})();
