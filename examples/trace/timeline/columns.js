// The three columns of the present mode, as lists of cards: the task that has the CPU, the ready
// tasks in order, the waiting tasks. A card stands for one task or, if there is no room for all, for
// several tasks of one kind.
//
// Neighbours of one kind in the ready queue become one card. The first task stays alone, because it
// runs next, and so do the subject of the sentence, each task that the step has moved, and each
// holder of a lock. Waiting tasks of one kind become one card if they wait for the same sort of event.

const columnsAt = (() => {
  // The sorts of awaited events, in the order of their cards.
  const SORTS = ["lock", "join", "time", "bytes", "client", "room", "job", "other"];
  // If more tasks than this have moved or have locks, they need no cards of their own.
  const MOST_ALONE = 6;

  // Reads a row of a wait: its sort; the words for one task, in parts, and for several tasks; the
  // line that began it; the time until which it lasts, in seconds.
  function waitOf({ text, value }, now) {
    const n = openedAt(text), it = n < 0 ? null : readLine(line(n));
    if (!it) return { sort: "other", one: [text], many: text, n, since: at[0] };
    const [first, second, third] = [0, 1, 2].map((nth) => it.word(nth));
    const one = prose.waitInShort(waitLine(n, now));
    const wait = (sort, many, more) => ({ sort, one, many, n, since: at[n], ...more });
    switch (first) {
      case "io":
        if (third !== "read") return wait("room", "room to write, each on its own socket");
        if (second.startsWith("l")) return wait("client", `a connection at ${second}`);
        if (second.startsWith("e")) return wait("job", "a message of another thread");
        return wait("bytes", "bytes, each on its own socket");
      case "sleep": {
        const until = Number(it.key("until"));
        return wait("time", "", { one: [`until ${toMillis(until)}`], until });
      }
      case "join": return wait("join", "the end of a task");
      case "offload": return wait("job", "a job each");
    }
    if (!states.start(value).startsWith("!")) return wait("other", one);
    const holders = readLine(waitLine(n, now)).key("held-by") ?? "";
    return wait("lock", /^\d*$/.test(holders) ? one : [`${first} ${second}`]);
  }

  const toMillis = (seconds) => (Number.isFinite(seconds) ? `${seconds.toFixed(3)} s` : "forever");

  // The waits of each task. A row never changes, so it is read once; only the holders of a lock do.
  const read = new Map();
  function waitsNow(now) {
    const found = new Map();
    for (const value of states.table("k").values()) {
      if (!read.has(value)) {
        if (read.size > 100_000) read.clear();
        read.set(value, { task: states.number(value), ...waitOf({ value, text: rowText(value) }, now) });
      }
      let wait = read.get(value);
      if (wait.sort === "lock") wait = { ...wait, ...waitOf({ value, text: rowText(value) }, now) };
      if (!found.has(wait.task)) found.set(wait.task, []);
      found.get(wait.task).push(wait);
    }
    return found;
  }

  const rank = ({ sort }) => SORTS.indexOf(sort);

  // Returns the wait that describes a parked task: of several, the first sort, and how many more. A task
  // whose future was dropped waits for nothing until its end.
  function mainWait(waits = [], parked) {
    if (!waits.length && isOnWaker(parked)) {
      return { sort: "other", one: ["a waker"], many: "a waker each", n: -1, since: states.number(parked) };
    }
    if (!waits.length) return { sort: "other", one: ["nothing any more"], many: "", n: -1, since: Infinity };
    const [first] = waits.sort((a, b) => rank(a) - rank(b)), more = waits.length - 1;
    if (!more) return first;
    return { ...first, one: [...first.one, ` or ${more} more`], many: `the first of ${waits.length} events` };
  }

  // The names of the locks that each task has.
  function locksNow() {
    const found = new Map();
    for (const key of states.table("h").keys()) {
      const [task, words] = holderOf(key), id = Number(task);
      if (!found.has(id)) found.set(id, []);
      found.get(id).push(words.replace(/^\S+ /, ""));
    }
    return found;
  }

  // A circle lasts from the line of its last wait to the line that ends one of its waits.
  const circles = trace.circles.map((circle) => {
    const waits = new Set(circle.map(([wait]) => wait));
    const ends = lanes.flatMap((lane) => lane.waits)
      .filter(({ from, ended }) => waits.has(from) && ended !== UNENDED).map(({ to }) => to);
    return { from: Math.max(...waits), to: Math.min(...ends, Infinity), waits: [...waits] };
  });
  const circleClosedAt = (n) => circles.find(({ from }) => from === n);
  // What is said after the sentence about a line that closes a circle, and about the line of a hang or of a stuck run.
  const stuckSaid = (n) => {
    const circle = circleClosedAt(n);
    const closes = circle ? ` This closes a circle of ${circle.waits.length}: none of them can continue.` : "";
    const hangs = ` A hang: every task waits, ${trace.hung ? "because of a" : "and"} `;
    if (trace.watched && trace.about === n) return " The run had not ended when the watchdog made the dump.";
    return trace.hang === n ? `${closes}${hangs}${hangWords()}.` : closes;
  };
  // The present circle of a wait. Each of its tasks waits for the next, and the last for the first.
  const circleOf = (wait, n) => circles.find(({ from, to, waits }) => n >= from && n < to && waits.includes(wait));

  // Splits a list of tasks into lists of neighbours of one kind. `isAlone` keeps a task by itself.
  function neighbours(tasks, isAlone) {
    const found = [];
    for (const task of tasks) {
      const last = found.at(-1), alone = isAlone(task);
      const joins = last && !alone && !last.alone && last.kind === task.kind && last.isNext === task.isNext;
      if (joins) last.tasks.push(task);
      else found.push({ kind: task.kind, isNext: task.isNext, alone, tasks: [task] });
    }
    return found;
  }

  // `level`: 0 has a card for each task, 1 joins tasks of one kind, 2 shows `most` cards.
  function readyCards({ ready, next }, isAlone, isHot, clock, level, most) {
    const add = (isNext) => (task) => ({ ...task, isNext, kind: cast.kind(task.id) });
    const all = [...ready.sort(byPlace).map(add(false)), ...next.sort(byPlace).map(add(true))];
    const isOwn = (task) => level === 0 || task === all[0] || isAlone(task.id);
    const cards = neighbours(all, isOwn).map(({ kind, tasks, isNext }) => {
      const [{ id, value }] = tasks, isOne = tasks.length === 1;
      // The first of a pile has waited longest.
      const since = Number(states.text(value).split("=")[1]) * 1e6;
      return {
        key: isOne ? `t${id}` : `r${id} ${kind}`, ids: tasks.map(({ id }) => id), isNext,
        name: isOne ? cast.name(id) : fromTo(tasks, kind), isHot: isHot(id),
        note: clock > since ? `for ${lasting(clock - since)}` : "",
      };
    });
    if (level < 2 || cards.length <= most) return cards;
    // The last task of a queue is of interest too.
    return [...cards.slice(0, most - 2), restOf(cards.slice(most - 2, -1), "r rest"), cards.at(-1)];
  }

  const restOf = (cards, key) => ({ key, ids: cards.flatMap(({ ids }) => ids), isRest: true });

  // `conn-2 ... 60` if the names end in numbers that follow each other.
  function fromTo(tasks, kind) {
    if (kind.indexOf("*") !== kind.length - 1) return kind;
    const number = ({ id }) => Number(/\d+$/.exec(cast.name(id))), first = number(tasks[0]);
    const follow = tasks.every((task, nth) => number(task) === first + nth);
    return follow ? `${cast.name(tasks[0].id)} \u2026 ${first + tasks.length - 1}` : kind;
  }

  function waitingCards(parked, isAlone, isHot, n, clock, level, most) {
    const groups = new Map(), waits = waitsNow(n);
    for (const { id, value } of parked.sort(byId)) {
      const kind = cast.kind(id), wait = mainWait(waits.get(id), value), alone = level === 0 || isAlone(id);
      const words = ["lock", "other"].includes(wait.sort) ? [wait.many].flat().join() : "";
      const key = alone ? `t${id}` : `w${wait.sort} ${kind} ${words}`;
      if (!groups.has(key)) groups.set(key, { key, kind, ids: [], wait, since: Infinity, until: Infinity, last: 0 });
      const group = groups.get(key);
      group.ids.push(id);
      group.since = Math.min(group.since, wait.since);
      group.until = Math.min(group.until, wait.until ?? Infinity);
      group.last = Math.max(group.last, wait.until ?? 0);
      group.isHot ||= isHot(id);
      group.circle ??= circleOf(wait.n, n);
    }
    const cards = [...groups.values()].map(({ key, kind, ids, wait, since, until, last, isHot, circle }) => {
      const isOne = ids.length === 1, first = until < last ? "the first " : "";
      const many = wait.sort === "time" ? [`${first}until ${toMillis(until)}`] : [wait.many].flat();
      return {
        key: isOne ? `t${ids[0]}` : key, ids, isHot, isRed: Boolean(circle), circle, wait, name: isOne ? cast.name(ids[0]) : kind,
        note: clock > since ? `for ${lasting(clock - since)}` : "", reason: isOne ? wait.one : many,
      };
    });
    // The tasks of a circle are above the others, each above the one that it waits for.
    const inCircle = ({ circle, wait }) => (circle ? [circle.from, circle.waits.indexOf(wait.n)] : [Infinity, 0]);
    const order = (card) => [...inCircle(card), rank(card.wait), card.ids[0]];
    cards.sort((a, b) => {
      const [before, after] = [order(a), order(b)], nth = before.findIndex((each, nth) => each !== after[nth]);
      return nth < 0 ? 0 : before[nth] - after[nth];
    });
    if (level < 2 || cards.length <= most) return cards;
    // The cards that have moved, those of a circle, and the largest groups.
    const worth = (card) => 4 * Boolean(card.isHot) + 2 * Boolean(card.isRed);
    const best = cards.toSorted((a, b) => worth(b) - worth(a) || b.ids.length - a.ids.length);
    const kept = new Set(best.slice(0, most - 1));
    return [...cards.filter((card) => kept.has(card)), restOf(best.slice(most - 1), "w rest")];
  }

  // Returns a duration with about three digits: `320 us`, `1.4 ms`, `2.67 s`.
  function lasting(exact) {
    const micros = Math.round(exact), number = (value, digits) => String(Number(value.toFixed(digits)));
    if (micros >= 1e5) return `${number(micros / 1e6, 2)} s`;
    return micros >= 1000 ? `${number(micros / 1e3, micros >= 1e4 ? 0 : 1)} ms` : `${micros} us`;
  }

  // Returns the tasks that a step has moved from one column to another.
  function movedIn(changed) {
    const moved = new Set();
    for (const [key, before] of changed) {
      if (key[0] !== "t") continue;
      const [is, was] = [states.get(key), before].map((row) => (row === undefined ? "" : doingOf(row)));
      if (is !== was) moved.add(Number(key.slice(1)));
    }
    return moved;
  }

  // The columns at a line. `lines` is the number of lines of the step; `clock` is the time until
  // which tasks have waited, in microseconds.
  function columnsAt(n, lines, clock = at[n]) {
    states.go(n);
    const tasks = tasksNow(), { cpu } = tasks, all = movedIn(states.changed(lines));
    const moved = all.size <= MOST_ALONE ? all : new Set(), running = [], subject = taskOf[n];
    // The subject of the sentence is marked. A live page has none, and marks the tasks that have moved.
    const isHot = (id) => (subject === undefined ? moved.has(id) : id === subject);
    // A few holders of locks are not hidden in piles.
    const locks = locksNow(), holders = locks.size <= MOST_ALONE ? locks : new Map();
    const isAlone = (id) => moved.has(id) || holders.has(id) || id === subject;
    if (cpu !== null) {
      const value = states.get(`t${cpu}`), since = value === undefined ? at[n] : states.number(value);
      const isKnown = trace.timed || trace.clock === "virtual";
      const note = isKnown && clock > since ? `for ${lasting(clock - since)}` : "";
      running.push({ key: `t${cpu}`, ids: [cpu], name: cast.name(cpu), isHot: isHot(cpu), note });
    }
    return {
      running, locks,
      sizes: { ready: tasks.ready.length + tasks.next.length, waiting: tasks.parked.length },
      ready: (level, most) => readyCards(tasks, isAlone, isHot, clock, level, most),
      waiting: (level, most) => waitingCards(tasks.parked, isAlone, isHot, n, clock, level, most),
    };
  }
  return Object.assign(columnsAt, { lasting, circleClosedAt, stuckSaid });
})();
