// The address names what is shown: `#0567` a line, `?state` the panel of the state. A click adds an
// entry to the history of the browser, and a step replaces the last entry.

const addressing = (() => {
  const FORM = /^#(\d+)(?:\?(.*))?$/;
  // Browsers limit the rate of new addresses.
  const PAUSE_MS = 300;
  const digits = (n) => String(seqOf[n]).padStart(4, "0");

  function now() {
    if (view.chosen < 0) return "";
    return `#${digits(view.chosen)}${stepper.open ? "?state" : ""}`;
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
    const address = now(), method = isJump && parent === window ? "pushState" : "replaceState";
    [timer, isJump] = [0, false];
    if (address !== location.hash) history[method](null, "", address || location.pathname + location.search);
    written = location.hash;
  }

  // Shows what the address names. The browser reports a change of it by two events.
  function read() {
    if (location.hash === written) return;
    written = location.hash;
    const [, seq, words] = FORM.exec(written) ?? [];
    if (seq === undefined) return written === "" ? clear() : missing(written);
    const n = placeOf(Number(seq));
    if (n < 0) return missing(`#${seq}`);
    document.getElementById("missing").hidden = true;
    open(n, new URLSearchParams(words));
    // The address in its own form, in place of the given one.
    isJump = false;
    soon();
  }

  function open(n, words) {
    focusOn(n);
    if (words.has("state")) return openPanel(n);
    if (stepper.open) closePanel();
    choose(n, true);
  }

  function clear() {
    document.getElementById("missing").hidden = true;
    if (stepper.open) closePanel();
    if (view.chosen >= 0) choose(-1, false);
    isJump = false;
  }

  function missing(name) {
    const has = count ? `this log has #${digits(0)} to #${digits(count - 1)}` : "this log is empty";
    document.getElementById("missing").textContent = `There is no line ${name}: ${has}.`;
    document.getElementById("missing").hidden = false;
  }

  // In a long log, the lines in view before and after the named line, and how many different times
  // they need so that the axis of time tells them apart.
  const BEFORE = 60, AFTER = 40, TIMES = 10;
  function focusOn(n) {
    pin(laneOfLine[n]);
    if (count > 4 * (BEFORE + AFTER)) {
      const [first, last] = [Math.max(0, n - BEFORE), Math.min(count - 1, n + AFTER)];
      if (view.axis === "time" && new Set(at.subarray(first, last)).size < TIMES) view.axis = "turns";
      sayAxis();
      const room = (x(last) - x(first)) * 0.04 || (view.axis === "time" ? 50 : 1);
      [view.from, view.to] = [x(first) - room, x(last) + room];
    }
    show(n);
    draw();
  }

  for (const name of ["hashchange", "popstate"]) addEventListener(name, read);
  return { soon, read };
})();
