// Functions for all marks: the marks in view, and labels.

const SMALL = "11px system-ui, sans-serif", PLAIN = "12px system-ui, sans-serif";

// Returns as many whole words of a text as fit, with a mark if words are missing. Empty if not even
// the first word fits.
function whole(text, most, breaks = / /g) {
  if (pen.measureText(text).width <= most) return text;
  const ends = [...text.matchAll(breaks)].map((found) => found.index).reverse();
  const fits = ends.find((end) => pen.measureText(`${text.slice(0, end)}…`).width <= most);
  return fits ? `${text.slice(0, fits)}…` : "";
}

// The name of a task may also end at a sign in it.
function wholeName(text, most) {
  return whole(text, most, /[ _.:/-]/g) || whole(text, most, /(?<=^\d+) /g);
}

// Writes a text from one place to another, in the middle of a row.
function write(text, from, to, middle, color = colors.ink) {
  if (to - from < 12) return;
  const shown = whole(text, to - from);
  if (!shown) return;
  pen.textAlign = "left";
  pen.fillStyle = color;
  pen.fillText(shown, from, middle);
}

// A label or a mark must hide the drawing below it.
let ground = "";
function erase(a, b, wide, high) {
  pen.fillStyle = ground;
  pen.fillRect(a, b, wide, high);
}

// For marks in the order of their beginnings: the farthest end of the marks up to each of them.
function reach(marks) {
  let to = -1;
  for (const mark of marks) mark.reach = to = Math.max(to, mark.to);
}

// Yields the marks in view.
function* inView(marks) {
  for (let m = firstOf(marks, (mark) => x(mark.reach) >= view.from); m < marks.length; m++) {
    const { from, to } = marks[m];
    if (x(from) > view.to) return;
    if (x(to) >= view.from) yield marks[m];
  }
}
