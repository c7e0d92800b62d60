// The present mode: the whole window shows three columns of cards, one sentence and a ribbon, in
// type that can be read from the back of a hall. `columns.js` decides which cards there are, and
// `playing.js` which line is shown.

const hall = (() => {
  const root = document.getElementById("present");
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const [say, code, clockBox, where, lineBox] = ["say", "code", "clock", "where", "line"].map(part);
  const lists = { running: part("running"), ready: part("ready"), waiting: part("waiting") };
  const isNarrow = () => innerWidth <= 700;
  // In a narrow window the columns are below each other, and each has at most this many cards.
  const MOST_NARROW = 8;
  // From this many tasks on, those of one kind have one card even if there is room.
  const MANY = 24;

  // Appends parts of a text: texts, and tasks by their numbers.
  function append(into, parts) {
    into.append(...[parts].flat().map((part) => (typeof part === "number" ? nameTag(part) : part)));
    return into;
  }

  function nameTag(id) {
    const tag = box("b", "named", cast.told(id));
    tag.style.setProperty("--c", cast.ink(id)[0]);
    return tag;
  }

  function cardOf({ key, ids, name, isHot, isRed, isRest, note, reason }, locks, isBig) {
    const isOne = ids.length === 1 && !isRest, many = ids.length.toLocaleString("en");
    // A name that has a number needs no other number beside it.
    const number = /\d/.test(name) ? "" : String(ids[0]);
    const badge = box("span", `badge${isOne && number ? "" : " plain"}`, isOne ? number : "");
    const marks = { many: !isOne, hot: isHot, red: isRed, rest: isRest, big: isBig };
    const node = box("div", ["it", ...Object.keys(marks).filter((mark) => marks[mark])].join(" "));
    const top = isRest ? box("div", "row", box("b", "name", `and ${many} more`))
      : box("div", "row", badge, box("b", "name", name), isOne ? null : box("span", "count", `\u00d7${many}`));
    const [back, front] = cast.ink(ids[0]);
    node.dataset.key = key;
    node.dataset.ids = ids.join(" ");
    node.style.setProperty("--c", back);
    node.style.setProperty("--t", front);
    if (note) top.append(box("span", "note", note));
    node.append(top);
    const reasons = (reason ?? []).filter((part) => part !== "");
    if (reasons.length) node.append(append(box("div", "for"), reasons));
    const has = isOne ? locks.get(ids[0]) ?? [] : [];
    if (has.length) {
      const chip = box("span", "has", has.length > 2 ? `has ${has.length} locks` : `has ${has.join(", ")}`);
      (isBig ? node : top).append(chip);
    }
    return node;
  }

  // Fills a column. Joins as few tasks as possible, so that all cards fit and none is cut.
  function fill(list, cards, size, locks) {
    const put = (level, most) => {
      const found = cards(level, most), nodes = [];
      found.forEach((card, nth) => {
        if (card.isNext && !found[nth - 1]?.isNext) nodes.push(box("h3", "", "next turn"));
        nodes.push(cardOf(card, locks, false));
      });
      list.replaceChildren(...nodes);
      return found;
    };
    const fits = () => list.scrollHeight <= list.clientHeight;
    if (isNarrow()) return put(size > MOST_NARROW ? 2 : 0, MOST_NARROW);
    let found = [];
    list.classList.remove("tight");
    for (const [level, isTight] of size > MANY ? [[1, false]] : [[0, false], [0, true], [1, false]]) {
      list.classList.toggle("tight", isTight);
      found = put(level, Infinity);
      if (fits()) return found;
    }
    const share = list.clientHeight / list.scrollHeight;
    for (let most = Math.max(3, Math.ceil(found.length * share)); most >= 3; most--) {
      found = put(2, most);
      if (fits()) break;
    }
    return found;
  }

  // Draws the wait that closes each circle: from its last card back to its first. Each of its tasks
  // must have a card.
  function closeCircles(list, cards) {
    const nodes = new Map([...list.children].map((node) => [node.dataset.key, node]));
    for (const circle of new Set(cards.map(({ circle }) => circle).filter(Boolean))) {
      const own = cards.filter((card) => card.circle === circle && card.ids.length === 1);
      if (own.length < circle.waits.length || own.length < 2 || isNarrow()) continue;
      list.append(backArrow(list, nodes.get(own.at(-1).key), nodes.get(own[0].key)));
    }
  }

  function backArrow(list, last, first) {
    const { top } = list.getBoundingClientRect(), arrow = box("div", "ring");
    const [low, high] = [last, first].map((card) => {
      const box = card.getBoundingClientRect();
      return (box.top + box.bottom) / 2 - top;
    });
    Object.assign(arrow.style, { top: `${high}px`, height: `${low - high}px` });
    return arrow;
  }

  // The key of the card that shows each task.
  let shownIn = new Map(), shown = -1;

  // Shows a line. `lines` is the number of lines of the step. `clock` is the time in microseconds,
  // if it is later than the line; `time` is how long the cards may move, in milliseconds.
  function render(n, { lines = 1, clock = at[n], time = 0 } = {}) {
    const places = new Map(), nodes = new Map(), wereIn = shownIn;
    for (const node of root.querySelectorAll("[data-key]:not(.ghost)")) {
      places.set(node.dataset.key, node.getBoundingClientRect());
      nodes.set(node.dataset.key, node);
    }
    sentence(n);
    tellClock(n, clock);
    const { running, locks, sizes, ready, waiting } = columnsAt(n, lines, clock);
    lists.running.replaceChildren(...(running.length ? running.map((card) => cardOf(card, locks, true)) : [idle(n)]));
    const cards = [...running, ...fill(lists.ready, ready, sizes.ready, locks),
      ...fill(lists.waiting, waiting, sizes.waiting, locks)];
    for (const name of ["ready", "waiting"]) {
      part(`${name}-size`).textContent = sizes[name] ? sizes[name].toLocaleString("en") : "";
      if (!lists[name].children.length) lists[name].replaceChildren(box("div", "nobody", "No task."));
    }
    closeCircles(lists.waiting, cards);
    shownIn = new Map(cards.flatMap(({ key, ids }) => ids.map((id) => [id, key])));
    root.querySelectorAll(".ghost").forEach((ghost) => ghost.remove());
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches || isNarrow() || n === shown;
    if (time && !isStill) fly(places, nodes, wereIn, time);
    shown = n;
  }

  function idle(n) {
    const isKernel = taskOf[n] === 0, [next] = timersNow().sort(byDue);
    const timer = isKernel && next ? box("small", "", `The next timer: ${seconds(next.due)}\u00a0s`) : null;
    const words = isKernel && verbOf(n) === "halt" ? "The kernel has ended." : isKernel ? "The kernel works." : "No task.";
    return box("div", "nobody", words, timer);
  }

  // The sizes of the sentence's type, each with the height that the sentence may have then, in em.
  // A sentence that is too long for two lines gets up to four, before its type becomes small.
  const SIZES = [[1.6, 4.05], [1.35, 4.05], [1.35, 6.3], [1.25, 6.3], [1.15, 6.3], [1, 6.3]];

  // The sentence, as large as its room allows, and the line of the program.
  function sentence(n) {
    const stuck = columnsAt.stuckSaid(n), site = siteOf(n)?.site ?? "";
    say.replaceChildren();
    append(say, [...prose.say(n), stuck]);
    say.classList.toggle("red", Boolean(stuck));
    const [, file, number] = /^(.*):(\d+)$/.exec(site) ?? [], text = trace.sources?.[file]?.split("\n")[number - 1];
    code.replaceChildren(...(text ? [box("small", "", `${file.split("/").pop()}:${number}`), text.trim()] : []));
    lineBox.textContent = line(n).trim().replace(/\s+/g, " ");
    const em = parseFloat(getComputedStyle(root).fontSize);
    for (const [size, high] of isNarrow() ? [[1.1, Infinity]] : SIZES) {
      say.style.fontSize = `${size}em`;
      if (say.offsetHeight <= high * em + 2) break;
    }
  }

  // If no time passes in a log, its clock is the turn.
  function tellClock(n, clock) {
    const text = seconds(Math.round(clock));
    const [number, last] = [n, count - 1].map((n) => lineNumber(n).toLocaleString("en"));
    const place = `line ${number} of ${last}`;
    const micros = box("small", "", text.slice(-3));
    clockBox.replaceChildren(...(timePasses ? [text.slice(0, -3), micros, " s"] : [`turn ${turn[n]}`]));
    where.textContent = `${timePasses ? `turn ${turn[n]}` : `${text} s`} \u00b7 ${place}`;
  }

  // Moves each card from the former place of its task to its place. The card of a task that has
  // joined a card of several flies there and fades; a new task comes from its parent.
  function fly(places, nodes, wereIn, time) {
    const easing = "cubic-bezier(.3,.7,.2,1)", now = new Map();
    for (const node of root.querySelectorAll("[data-key]")) now.set(node.dataset.key, node);
    const shift = (from, to) => `translate(${from.left - to.left}px, ${from.top - to.top}px)`;
    let late = 0;
    for (const [key, node] of now) {
      const id = key[0] === "t" ? Number(key.slice(1)) : null, to = node.getBoundingClientRect();
      const of = id === null ? undefined : places.get(wereIn.get(id)) ?? places.get(`t${parentOf(id)}`);
      const from = places.get(key) ?? of;
      if (!from) {
        node.animate([{ opacity: 0, transform: "scale(.92)" }, { opacity: 1, transform: "none" }],
          { duration: time * 0.6, easing });
        continue;
      }
      if (Math.abs(from.left - to.left) + Math.abs(from.top - to.top) < 3) continue;
      // A card from another column passes above the others, one after the other.
      const isFar = Math.abs(from.left - to.left) > 40;
      if (isFar) node.style.zIndex = 3;
      node.animate([{ transform: shift(from, to) }, { transform: "none" }],
        { duration: time, delay: isFar ? late : 0, easing, fill: "backwards" });
      if (isFar) late = Math.min(late + time / 12, time / 2);
    }
    for (const [key, old] of nodes) {
      if (now.has(key) || key[0] !== "t") continue;
      const target = now.get(shownIn.get(Number(key.slice(1)))), from = places.get(key);
      old.classList.add("ghost");
      old.classList.remove("hot");
      Object.assign(old.style, { left: `${from.left}px`, top: `${from.top}px`, width: `${from.width}px` });
      root.append(old);
      const end = target ? { transform: shift(target.getBoundingClientRect(), from), opacity: 0.2 }
        : { transform: "scale(.8)", opacity: 0 };
      old.animate([{ transform: "none", opacity: 1 }, end], { duration: time, easing }).finished
        .then(() => old.remove(), () => {});
    }
  }

  function parentOf(id) {
    const [first] = lanes[laneOf.get(id)]?.events ?? [];
    return first === undefined ? null : readLine(line(first)).number("parent");
  }

  function open() {
    root.hidden = false;
    document.body.classList.add("presenting");
    root.classList.toggle("coded", Object.keys(trace.sources ?? {}).length > 0);
    // If there are few tasks, there is room for larger type.
    root.style.setProperty("--k", lanes.length <= 4 ? 1.35 : lanes.length <= 6 ? 1.15 : 1);
    [shownIn, shown] = [new Map(), -1];
    // A page of slides keeps the focus.
    if (parent === window) root.focus();
  }

  function close() {
    root.hidden = true;
    document.body.classList.remove("presenting");
  }

  return { root, part, render, open, close };
})();
