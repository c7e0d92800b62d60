// Playing in the present mode: by lines, by moves of cards, by runs, by turns or by the kernel's
// time, forward and back; the keys and the controls; a frame that a page of slides steps.

const presenting = (() => {
  const { root, part } = hall;
  // If no time passes in a log, its clock is the turn.
  const UNITS = ["line", "move", "run", "turn", ...(timePasses ? ["time"] : [])];
  // Steps a second. By time, the whole takes 40 s at the speed 1.
  const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16], WHOLE_S = 40;
  // How long the cards move, at most; how long a pause in which no task runs takes, at most; how long
  // a loop rests at its end. All in milliseconds.
  const FLIGHT = 480, PAUSE = 1500, REST = 1800;
  // The largest number of lines whose changes a step marks.
  const MARKED = 1000;
  const it = {
    open: false, now: 0, clock: 0, from: 0, to: count - 1, unit: "move", way: 1, loop: false, timer: null, speed: 3,
  };

  const limited = (n) => Math.min(it.to, Math.max(it.from, n));
  const next = (n, by, is) => {
    do n += by; while (n > it.from && n < it.to && !is(n));
    return limited(n);
  };
  // Verbs of lines at which a card moves, or at which it gets or loses a chip.
  const MOVES = new Set(["run", "block", "wake", "deliver", "spawn", "exit", "take", "give"]);
  // Lines that move no card, but say why the cards after them move or stay.
  const TOLD = new Set(["warn", "panic", "longrun"]);
  const isTold = (n) => {
    const verb = verbOf(n);
    if (TOLD.has(verb)) return true;
    if (!["notify", "drop", "phase"].includes(verb)) return false;
    const it = readLine(line(n)), word = it.word(0);
    // A lost notification, the drop of a task, the start of a shutdown.
    return verb === "notify" ? it.key("woke") === "0" : verb === "drop" ? !/^o\d/.test(word) : word === "close";
  };
  // A yield blocks and wakes at once, and is one move.
  const isYield = (n) => n + 1 < count && verbOf(n) === "block" && verbOf(n + 1) === "wake" &&
    taskOf[n] === taskOf[n + 1];
  // The kernel's own task has a card only while it runs.
  const hasCard = (n) => ["run", "block"].includes(verbOf(n)) || !isOwn(lanes[laneOfLine[n]]);
  const target = {
    line: (n, by) => limited(n + by),
    move: (n, by) => next(n, by, (m) => (MOVES.has(verbOf(m)) && !isYield(m) && hasCard(m)) || isTold(m)),
    run: (n, by) => next(n, by, (m) => verbOf(m) === "run"),
    turn: (n, by) => limited(turnFrom(n, by)),
    time: (n, by) => limited(n + by),
  };

  function show(n, clock = at[n], time = 0) {
    const lines = n > it.now ? Math.min(n - it.now, MARKED) : 1;
    hall.render(n, { lines, clock, time });
    const isNew = n !== it.now;
    [it.now, it.clock] = [n, clock];
    ribbon.paint();
    if (!isNew) return;
    view.chosen = n;
    addressing.soon();
    tellFrame();
    dispatchEvent(new CustomEvent("chosen", { detail: n }));
  }

  // Steps forward or back. Returns whether there was a line left.
  function step(by, unit = it.unit) {
    const n = target[unit](it.now, by), second = 1000 / SPEEDS[it.speed];
    if (n === it.now) return false;
    show(n, at[n], it.timer ? Math.min(FLIGHT, 0.7 * second) : FLIGHT);
    return true;
  }

  const goTo = (n) => show(limited(n));

  function toggle(way) {
    const stops = it.timer && way === it.way;
    stop();
    if (stops) return;
    it.way = way;
    if (way > 0 && it.now >= it.to) goTo(it.from);
    if (way < 0 && it.now <= it.from) goTo(it.to);
    start();
  }

  function start() {
    clearTimeout(it.timer);
    it.timer = setTimeout(it.unit === "time" ? pass : tick, 300, performance.now());
    tellControls();
  }

  function stop() {
    clearTimeout(it.timer);
    it.timer = null;
    tellControls();
  }

  // At an end: from the other end again, or no further. Returns whether it plays on.
  function turnsBack() {
    if (!it.loop) stop();
    else goTo(it.way > 0 ? it.from : it.to);
    return it.loop;
  }

  function tick() {
    const more = step(it.way);
    if (more || turnsBack()) it.timer = setTimeout(tick, more ? 1000 / SPEEDS[it.speed] : REST);
  }

  // Plays by the kernel's time: `before` is when it was shown last.
  function pass(before) {
    const now = performance.now(), speed = ((at[it.to] - at[it.from]) * SPEEDS[it.speed]) / (WHOLE_S * 1000);
    const later = Math.min(it.now + 1, count - 1), gap = at[later] - at[it.way > 0 ? it.now : Math.max(0, it.now - 1)];
    states.go(it.now);
    const isIdle = states.table("c").size === 0, rate = isIdle ? Math.max(speed, gap / PAUSE) : speed;
    const clock = Math.min(at[it.to], Math.max(at[it.from], it.clock + it.way * (now - before) * rate));
    const n = limited(firstOf(at, (each) => each > clock) - 1), isEnd = clock === at[it.way > 0 ? it.to : it.from];
    // The cards say how long they wait, so they change between lines too.
    show(n, clock, 90);
    if (!isEnd) it.timer = setTimeout(pass, 90, now);
    else if (turnsBack()) it.timer = setTimeout(pass, REST, performance.now() + REST);
  }

  function tellControls() {
    const plays = (way) => it.timer !== null && it.way === way;
    part("play").textContent = plays(1) ? "Pause" : "Play";
    part("back").textContent = plays(-1) ? "Pause" : "Play back";
    part("unit").value = it.unit;
    const speed = SPEEDS[it.speed];
    part("speed").textContent = it.unit === "time" ? `${Math.round(WHOLE_S / speed)} s for all` : `${speed} a second`;
    part("loop").setAttribute("aria-pressed", it.loop);
  }

  const known = (unit) => (UNITS.includes(unit) ? unit : unit === "time" ? "turn" : it.unit);

  function setUnit(unit) {
    it.unit = known(unit);
    if (it.timer) start();
    tellControls();
    tell(`A step: ${part("unit").selectedOptions[0].textContent}`);
    addressing.soon();
  }

  // Shows a few words for two seconds.
  let telling = 0;
  function tell(words) {
    const it = part("told");
    it.textContent = words;
    it.hidden = false;
    clearTimeout(telling);
    telling = setTimeout(() => it.hidden = true, 2000);
  }

  function setSpeed(by) {
    it.speed = Math.min(SPEEDS.length - 1, Math.max(0, it.speed + by));
    tellControls();
  }

  // Opens the mode at a line, for the part of the log between two lines.
  function open({ n = view.chosen, from = trace.begins, to = count - 1, unit = it.unit } = {}) {
    if (!count) return;
    Object.assign(it, { open: true, from: Math.min(from, to), to: Math.max(from, to), now: -1, unit: known(unit) });
    hall.open();
    measure();
    ribbon.forget();
    show(limited(n));
    tellControls();
    addressing.soon(true);
  }

  function close() {
    stop();
    it.open = false;
    hall.close();
    if (document.fullscreenElement) document.exitFullscreen();
    measure();
    document.getElementById("lanes").focus();
    if (stepper.open) stepTo(it.now);
    else choose(it.now, true);
  }

  function blank(color) {
    const sheet = part("blank");
    sheet.hidden = !sheet.hidden;
    sheet.style.background = color;
    if (!sheet.hidden) stop();
  }

  // Goes to the cause of the line, or says why it has none here.
  function toCause() {
    const cause = lineBehind(it.now);
    if (cause >= it.from) return goTo(cause);
    const isHere = cause < 0 || it.from === trace.begins;
    const words = prose.why(it.now, 0).open ? behindIs() : "No line of the log is its cause.";
    tell(isHere ? words : "Its cause is before this part of the log.");
  }

  // A step by hand ends the playing.
  const hand = (does) => () => {
    if (it.timer) stop();
    does();
  };
  // In a slide, a step beyond the end turns the slide.
  const past = (by) => parent !== window && parent.postMessage({ trapline: "past", by }, "*");
  const [forward, back] = [1, -1].map((by) => hand(() => step(by) || past(by)));
  const keys = {
    " ": () => toggle(1), Backspace: () => toggle(-1), r: () => toggle(-1),
    ArrowRight: forward, PageDown: forward, ArrowDown: forward, n: forward,
    ArrowLeft: back, PageUp: back, ArrowUp: back,
    "Shift+ArrowRight": hand(() => step(1, "run")), "Shift+ArrowLeft": hand(() => step(-1, "run")),
    "Shift+ArrowDown": hand(() => step(1, "turn")), "Shift+ArrowUp": hand(() => step(-1, "turn")),
    Home: hand(() => goTo(it.from)), End: hand(() => goTo(it.to)),
    Enter: hand(toCause),
    "+": () => setSpeed(1), "=": () => setSpeed(1), "-": () => setSpeed(-1),
    u: () => setUnit(UNITS[(UNITS.indexOf(it.unit) + 1) % UNITS.length]),
    l: () => {
      it.loop = !it.loop;
      tellControls();
    },
    b: () => blank("#000"), ".": () => blank("#000"), w: () => blank("#fff"), ",": () => blank("#fff"),
    f: () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen?.()),
    "?": () => part("keys").hidden = !part("keys").hidden,
    p: close, Escape: close,
  };

  // Handles a key if the mode is open. Any key ends a blank screen.
  function key(name) {
    if (!it.open) return false;
    if (!part("blank").hidden) blank("");
    else keys[name]?.();
    return name in keys;
  }

  // The ribbon shows time if runs take some, and the log says how much.
  const axis = takesTime && (trace.timed || trace.clock === "virtual") ? "time" : "turns", { of } = axes[axis];
  const ribbon = Ribbon(part("ribbon"), {
    axis: () => axis,
    playhead: () => (axis === "time" ? it.clock : of[it.now]),
    go: (value) => hand(() => goTo(firstOf(of, (each) => each > value) - 1))(),
  });

  // A page of slides has the focus. It passes keys to the frame, and learns whether more steps are left.
  function tellFrame() {
    if (parent === window) return;
    parent.postMessage({ trapline: "at", first: it.now <= it.from, last: it.now >= it.to }, "*");
  }
  addEventListener("message", ({ data, source }) => {
    if (source !== parent || source === window || !it.open) return;
    if (data?.trapline === "key") key(data.key);
  });

  const buttons = {
    play: keys[" "], back: keys.r, left: back, right: forward, slower: keys["-"], faster: keys["+"],
    loop: keys.l, leave: close,
  };
  for (const [name, does] of Object.entries(buttons)) part(name).addEventListener("click", does);
  part("unit").addEventListener("change", (event) => {
    setUnit(event.target.value);
    // The keys are those of the mode again.
    event.target.blur();
    root.focus();
  });
  part("unit").querySelector('[value="time"]').disabled = !timePasses;
  // A slide is no place for the lanes.
  part("leave").hidden = parent !== window;
  document.getElementById("show").addEventListener("click", () => open());
  new ResizeObserver(() => {
    if (!it.open) return;
    ribbon.forget();
    show(it.now, it.clock);
  }).observe(root);
  // The controls appear with the pointer.
  let quiet = 0;
  root.addEventListener("pointermove", () => {
    root.classList.add("busy");
    clearTimeout(quiet);
    quiet = setTimeout(() => root.classList.remove("busy"), 2500);
  });
  return { open, close, key, goTo, step, now: it };
})();
