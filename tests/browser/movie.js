// Makes a moving picture of a part of a log: the three columns of the present mode as an SVG, for a
// README. It runs in a timeline page: `movie.sh` writes what it returns, and the check `movie`
// compares that with the pictures of the README.
//
// A README shows an SVG as an image, in which no script runs. So style sheets move it. Without its
// animations it shows its last line, and a picture of one line has none.
"use strict";

// Returns the SVG of the lines `from` to `to`, in the colors of the scheme `light` or `dark`.
function movie(from, to, scheme) {
  // It takes so many seconds, the last line for `REST` of them. A card moves for `MOVE`.
  const SECONDS = 20, REST = 4, MOVE = 0.4;
  const look = {
    light: { paper: "#ffffff", ink: "#1c2330", faint: "#5b6577", rule: "#d6dbe3", panel: "#f2f4f7", hot: "#fff1d6", hit: "#b42318" },
    dark: { paper: "#0d1117", ink: "#e6e9ef", faint: "#9aa5b5", rule: "#363d49", panel: "#1b2028", hot: "#3a2c10", hit: "#ff7a6b" },
  }[scheme];
  // Where the cards are. A card has no more than this width in each column.
  const WIDTH = 830, TOP = 122, ROW = 46, CARD = { width: 210, height: 40 };
  const X = { running: 16, ready: 242, waiting: 468, reason: 688, right: WIDTH - 16 };

  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const words = (parts) => parts.map((part) => (typeof part === "number" ? cast.told(part) : part)).join("");
  const text = (x, y, size, content, more = "") =>
    `<text x="${x}" y="${y}" font-size="${size}"${more}>${escape(content)}</text>`;
  const bold = ' font-weight="700"', atEnd = ' text-anchor="end"';

  // Splits a text into lines of at most this many letters.
  function wrapped(content, most) {
    const lines = [];
    for (const word of content.split(" ")) {
      if (lines.length && `${lines.at(-1)} ${word}`.length <= most) lines[lines.length - 1] += ` ${word}`;
      else lines.push(word);
    }
    return lines;
  }

  // What is shown at each line at which a card moves.
  function sceneAt(n, lines) {
    const { running, locks, sizes, ready, waiting } = columnsAt(n, lines), cards = new Map();
    const columns = { running, ready: ready(0, Infinity), waiting: waiting(0, Infinity) };
    for (const [column, list] of Object.entries(columns)) {
      list.forEach(({ ids: [id], isHot, isRed, reason = [] }, row) => cards.set(id, {
        place: `translate(${X[column]}px,${TOP + row * ROW}px)`, row, isHot, isRed,
        locks: (locks.get(id) ?? []).join(", "), reason: words(reason),
      }));
    }
    const circle = columnsAt.stuckSaid(n);
    const clock = timePasses ? `${(at[n] / 1e6).toFixed(3)} s` : `turn ${turn[n]}`;
    return { cards, sizes, clock, isRed: Boolean(circle), sentence: words(prose.say(n)) + circle };
  }
  presenting.open({ n: placeOf(from), from: placeOf(from), to: placeOf(to), unit: "move" });
  const scenes = [sceneAt(presenting.now.now, 1)];
  for (let before = presenting.now.now; presenting.step(1); before = presenting.now.now) {
    scenes.push(sceneAt(presenting.now.now, presenting.now.now - before));
  }
  presenting.close();
  const when = (nth) => (nth === 0 ? 0 : (nth / (scenes.length - 1)) * (SECONDS - REST));
  const percent = (seconds) => `${Number(((100 * seconds) / SECONDS).toFixed(2))}%`;

  const styles = [];
  // Puts an animation on an element. `frames` are pairs of a time and a style; the last is the style
  // without the animation.
  function animated(kind, frames, markup) {
    const name = `m${styles.length}`, last = frames.at(-1)[1];
    const steps = frames.map(([seconds, style]) => `${percent(seconds)}{${style}}`).join("");
    styles.push(`.${name}{${last};animation-name:${name}}@keyframes ${name}{${steps}}`);
    return `<g class="${kind} ${name}">${markup}</g>`;
  }

  // For each value that is shown at some scene, an element that is seen while it is.
  function shown(valueOf, draw) {
    const values = scenes.map(valueOf);
    return [...new Set(values)].filter(Boolean).map((value) => {
      const frames = [], style = (nth) => `opacity:${values[nth] === value ? 1 : 0}`;
      values.forEach((_, nth) => {
        if (nth === 0 || style(nth) !== style(nth - 1)) frames.push([when(nth), style(nth)]);
      });
      return frames.length > 1 ? animated("s", frames, draw(value)) : draw(value);
    }).join("");
  }

  // The card of a task: it moves from place to place, and keeps its place while it is not shown.
  function card(id) {
    const places = scenes.map(({ cards }) => cards.get(id)?.place);
    for (let nth = 1; nth < places.length; nth++) places[nth] ??= places[nth - 1];
    for (let nth = places.length - 2; nth >= 0; nth--) places[nth] ??= places[nth + 1];
    const frames = [[0, `transform:${places[0]}`]];
    for (let nth = 1; nth < places.length; nth++) {
      if (places[nth] === places[nth - 1]) continue;
      frames.push([when(nth), `transform:${places[nth - 1]}`], [when(nth) + MOVE, `transform:${places[nth]}`]);
    }
    const part = (of, draw) => shown(({ cards }) => cards.has(id) && of(cards.get(id)), draw);
    const { width, height } = CARD, [back, front] = cast.ink(id);
    const frame = (fill, stroke, wide) =>
      `<rect x="1" y="1" width="${width - 2}" height="${height - 2}" rx="6" fill="${fill}" stroke="${stroke}" stroke-width="${wide}"/>`;
    const all = frame(look.panel, look.rule, 1) +
      part(({ isHot }) => isHot, () => frame(look.hot, look.ink, 2)) +
      part(({ isRed }) => isRed, () => frame("none", look.hit, 2.5)) +
      `<rect x="7" y="7" width="28" height="26" rx="4" fill="${back}"/>` +
      text(21, 26, 15, id, ` text-anchor="middle" font-weight="800" fill="${front}"`) +
      text(43, 26, 16, cast.name(id), bold) +
      part(({ locks }) => locks, (locks) => text(width - 8, 25, 13, `has ${locks}`, atEnd)) +
      part(({ reason }) => reason, (reason) => {
        const lines = wrapped(reason, 17), y = lines.length > 1 ? 17 : 25;
        return lines.map((line, nth) => text(X.reason - X.waiting, y + nth * 17, 14, line, ` fill="${look.faint}"`)).join("");
      });
    const isThere = ({ cards }) => cards.has(id);
    const it = frames.length > 1 ? animated("c", frames, all) : `<g style="${frames[0][1]}">${all}</g>`;
    return shown(isThere, () => it);
  }

  const column = (name, title, right) =>
    text(X[name], TOP - 18, 16, title, bold) +
    `<path d="M${X[name]} ${TOP - 10}H${right}" stroke="${look.ink}" stroke-width="2"/>` +
    shown(({ sizes }) => sizes[name], (size) => text(right, TOP - 18, 16, size, bold + atEnd));
  // The sentences are of two kinds, because the sentence about a circle is red.
  const sentences = [false, true].map((red) => shown(
    ({ sentence, isRed }) => isRed === red && sentence,
    (sentence) => wrapped(sentence, 66).map((line, nth) =>
      text(16, 34 + nth * 25, 18, line, bold + (red ? ` fill="${look.hit}"` : ""))).join("")));
  const ids = [...new Set(scenes.flatMap(({ cards }) => [...cards.keys()]))].sort((a, b) => a - b);
  const rows = Math.max(...scenes.flatMap(({ cards }) => [...cards.values()].map(({ row }) => row + 1)));
  const height = TOP + rows * ROW + 12, isMoving = scenes.length > 1;
  const body = [
    ...sentences, shown(({ clock }) => clock, (clock) => text(X.right, 36, 24, clock, bold + atEnd)),
    column("running", "Has the CPU", X.running + CARD.width), column("ready", "Ready, in order", X.ready + CARD.width),
    column("waiting", "Waiting", X.right), ...ids.map(card),
    isMoving ? `<rect class="b" y="${height - 4}" width="${WIDTH}" height="4" fill="${look.rule}"/>` : "",
  ].join("");
  const moving = `.c,.s{animation-duration:${SECONDS}s;animation-iteration-count:infinite}.s{animation-timing-function:step-end}` +
    `.b{transform:scaleX(0);animation:b ${SECONDS}s linear infinite}@keyframes b{to{transform:scaleX(1)}}${styles.join("")}` +
    "@media (prefers-reduced-motion:reduce){.c,.s,.b{animation:none}}";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" fill="${look.ink}">` +
    `<title>${escape(scenes.at(-1).sentence)}</title>` +
    `<style>text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}${isMoving ? moving : ""}</style>` +
    `<rect width="${WIDTH}" height="${height}" rx="6" fill="${look.paper}"/>${body}</svg>\n`;
}
