// The editor: a text area without colours of its own, over a painted copy of its text.

const text = element("text");
const painted = element("paint");

const STATEMENTS = "sleep|spin|yield|lock|unlock|send|recv|wait|wake|spawn|join|cancel|within|late|shield|try|" +
  "finally|note|repeat|while|if|else|shared|channel|seed";
const isStatement = (word) => new RegExp(`^(${STATEMENTS})$`).test(word);

// The lines with problems, from 1.
let bad = new Set();

const lineAt = (place) => text.value.slice(0, place).split("\n").length;
const caretLine = () => document.activeElement === text ? lineAt(text.selectionStart) : -1;

// The line of the program that the chosen event comes from, or 0.
const chosenLine = () => log.chosen < 0 ? 0 : log.sites[log.chosen + log.heads];

function paint() {
  const chosen = chosenLine();
  painted.replaceChildren(...text.value.split("\n").map((source, n) => {
    const [, indent, word, rest, comment] = /^(\s*)([\w-]*)([^#]*)(.*)$/s.exec(source);
    const code = word === "task" ? [make("em", "", word + rest)]
      : [isStatement(word) ? make("b", "", word) : word, rest];
    const line = make("div", "", indent, ...code, make("i", "", comment));
    line.classList.toggle("bad", bad.has(n + 1));
    line.classList.toggle("chosen", chosen === n + 1);
    return line;
  }));
  layOver();
}

// Both break their lines at the same letters, and scroll together.
function layOver() {
  const isNarrow = matchMedia("(max-width: 800px)").matches;
  painted.style.width = `${text.clientWidth}px`;
  painted.style.transform = `translateY(${-text.scrollTop}px)`;
  element("editor").style.height = isNarrow ? `${painted.offsetHeight + ROW}px` : "";
}

// Scrolls to the marked line, or to the first line with a problem, if it cannot be seen. The caret
// stays where it is.
function showMark(kind = ".chosen") {
  const mark = painted.querySelector(kind);
  if (!mark) return;
  const { offsetTop: top, offsetHeight: height } = mark;
  if (top < text.scrollTop || top + height > text.scrollTop + text.clientHeight) {
    text.scrollTop = top - text.clientHeight / 2;
  }
}

// The first line with a problem when the program was read last, or 0.
let firstBad = 0;

// Puts the problems below the program. Scrolls to the first only if it is a new one: a reader who
// types elsewhere has seen it.
function showProblems(problems) {
  const first = problems[0]?.[0] ?? 0, isNew = first > 0 && first !== firstBad;
  firstBad = first;
  bad = new Set(problems.map(([line]) => line));
  element("problems").replaceChildren(...problems.map(([line, problem]) => {
    const button = make("button", "", `Line ${line}: ${problem}`);
    button.addEventListener("click", () => goTo(line));
    return make("li", "", button);
  }));
  paint();
  if (isNew) showMark(".bad");
}

function goTo(line) {
  const end = text.value.split("\n").slice(0, line).join("\n").length;
  text.focus();
  text.setSelectionRange(end, end);
}

// A program runs by itself once its reader has stopped typing.
let pause = 0;

// Replaces the program by another one, and runs it.
function put(program) {
  clearTimeout(pause);
  text.value = program.trimEnd();
  text.scrollTop = log.box.scrollTop = log.box.scrollLeft = 0;
  [bad, log.chosen] = [new Set(), -1];
  paint();
  readSettings();
  run();
}

function edited() {
  bad = new Set();
  hideNotice();
  paint();
  readSettings();
  clearTimeout(pause);
  pause = setTimeout(() => {
    run();
    keepAddress();
  }, 250);
}

text.addEventListener("input", edited);
text.addEventListener("scroll", layOver);
addEventListener("resize", () => {
  layOver();
  drawRows();
});

let caret = -1;
document.addEventListener("selectionchange", () => {
  if (caret === caretLine()) return;
  caret = caretLine();
  if (caret > 0) showLinesOf(caret);
  drawRows();
});

// Typed in this way, the text area can undo it.
const type = (letters) => document.execCommand("insertText", false, letters);

// Tab indents. The Tab after an Escape leaves the editor, as does Shift+Tab.
let isLeaving = false;
text.addEventListener("keydown", (event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
  if (event.key === "Tab" && isPlain && !event.shiftKey && !isLeaving) {
    event.preventDefault();
    type("  ");
  } else if (event.key === "Enter" && isPlain) {
    event.preventDefault();
    const line = text.value.slice(0, text.selectionStart).split("\n").at(-1);
    const deeper = line.trimEnd().endsWith(":") ? "  " : "";
    type(`\n${/^\s*/.exec(line)[0]}${deeper}`);
  }
  isLeaving = event.key === "Escape";
});

element("run").addEventListener("click", run);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
});
