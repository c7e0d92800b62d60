// The state of the kernel at a line, as rows. The tool has followed the kernel's rules; this only
// applies what `changes.rs` says of each line: forwards, and undone backwards.
//
// There is a table of rows for each kind of key, which is its first letter. A row is kept as a
// number that says which row of which line set it last, so its text is made when it is asked for.
// All rows are kept at every so many lines, from which any other one is near.

const states = (() => {
  const TASK = "\x01", SEQ = "\x02", AT = "\x03", ARGUMENT = "\x04";
  const NUMBER = "\x05", TIME = "\x06", BACK = "\x07";
  // The largest number of rows for a line, and of all kept rows.
  const ROWS = 65536, KEPT = 1_000_000;

  // A template of rows: `key` and `value` are lists of texts and of `[sign, index]`.
  for (const change of changes) {
    let column = 0;
    const parts = (text) => (text.match(/[^\x01-\x07]+|\x04[^]|[\x01-\x07]/g) ?? []).map((part) => {
      if (part[0] === ARGUMENT) return [ARGUMENT, part.charCodeAt(1) - 32];
      if (part > ARGUMENT && part <= BACK) return [part, column++];
      return part <= AT ? [part, 0] : part;
    });
    change.rows = change.text === "" ? [] : change.text.split("\n").map((row) => {
      const [key, value] = row.split("\t");
      return { key: parts(key), value: value === undefined ? null : parts(value) };
    });
  }
  for (const template of templates) {
    template.isTime = template.parts.filter((part) => part === "\x02" || part === "\x03")
      .map((part) => part === "\x03");
  }

  const seqText = (seq) => String(seq).padStart(4, "0");

  // Returns a sign as a number. A time is in microseconds.
  function numberOf([sign, index], n) {
    switch (sign) {
      case TASK: return taskOf[n];
      case SEQ: return seqOf[n];
      case AT: return at[n];
      case ARGUMENT: {
        const { columns, isTime } = templates[templateOf[n]];
        return columns[index][nthOf[n]] + (isTime[index] ? at[n] : 0);
      }
    }
    const number = changes[changesOf[n]].columns[index][nthChange[n]];
    return sign === NUMBER ? number : sign === TIME ? at[n] + number : seqOf[n] - number;
  }

  function signText(part, n) {
    const [sign, index] = part, number = numberOf(part, n);
    const isTime = sign === AT || sign === TIME ||
      (sign === ARGUMENT && templates[templateOf[n]].isTime[index]);
    if (isTime) return seconds(number);
    return sign === SEQ || sign === BACK ? seqText(number) : String(number);
  }

  function textOf(parts, n) {
    let text = "";
    for (const part of parts) text += typeof part === "string" ? part : signText(part, n);
    return text;
  }

  const KINDS = "cntspkmafohwxy";
  const copy = (tables) => Object.fromEntries([...KINDS].map((kind) => [kind, new Map(tables?.[kind])]));
  const sizeOf = (tables) => [...KINDS].reduce((sum, kind) => sum + tables[kind].size, 0);
  let rows = copy(null), now = -1;
  // The changes of the lines from `since` on: for each line, keys with their values before it.
  let since = 0, undo = [];
  // The rows before a line, by its place.
  const kept = new Map([[0, copy(null)]]);
  let every = Math.max(256, Math.ceil(count / 64)), size = 0;

  function keep() {
    if (kept.has(now + 1)) return;
    kept.set(now + 1, copy(rows));
    size += sizeOf(rows);
    while (size > KEPT && kept.size > 2) {
      every *= 2;
      for (const [n, tables] of kept) {
        if (n % every === 0) continue;
        kept.delete(n);
        size -= sizeOf(tables);
      }
    }
  }

  function forward() {
    if ((now + 1) % every === 0) {
      keep();
      [since, undo] = [now + 1, []];
    }
    const n = ++now, before = [];
    for (const [nth, { key, value }] of changes[changesOf[n]].rows.entries()) {
      const name = textOf(key, n), table = rows[name[0]];
      before.push(name, table.get(name));
      if (value) table.set(name, n * ROWS + nth);
      else table.delete(name);
    }
    undo.push(before);
  }

  function back() {
    const before = undo.pop();
    now--;
    for (let n = before.length - 2; n >= 0; n -= 2) {
      const table = rows[before[n][0]];
      if (before[n + 1] === undefined) table.delete(before[n]);
      else table.set(before[n], before[n + 1]);
    }
  }

  // Sets the rows to those at a line, and keeps the changes of that line.
  function go(n) {
    let from = Math.floor(n / every) * every;
    while (!kept.has(from)) from -= every;
    if (n < since || (n > now && from > now)) {
      [rows, now, since, undo] = [copy(kept.get(from)), from - 1, from, []];
    }
    while (now > n) back();
    while (now < n) forward();
  }

  // Returns the keys of the rows that the lines up to this one have changed, with the values
  // before, as far back as they are known.
  function changed(lines) {
    const found = new Map();
    for (const before of undo.slice(-Math.max(1, lines))) {
      for (let n = 0; n < before.length; n += 2) {
        if (!found.has(before[n])) found.set(before[n], before[n + 1]);
      }
    }
    return found;
  }

  const lineOf = (value) => Math.floor(value / ROWS);
  const partsOf = (value) => changes[changesOf[lineOf(value)]].rows[value % ROWS].value;
  const text = (value) => textOf(partsOf(value), lineOf(value));

  // Returns the first number in a row.
  function number(value) {
    return numberOf(partsOf(value).find((part) => typeof part !== "string"), lineOf(value));
  }

  // Returns the beginning of a row up to its first sign, `ready since=` for a task.
  function start(value) {
    const [first] = partsOf(value);
    return typeof first === "string" ? first : "";
  }

  // All rows of a kind; one row; whether a row exists.
  const table = (kind) => rows[kind], get = (key) => rows[key[0]].get(key);
  const has = (key) => rows[key[0]].has(key);

  return { go, changed, table, get, has, line: lineOf, text, number, start };
})();
