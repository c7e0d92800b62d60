// Without this script all slides are below each other.
const slides = [...document.querySelectorAll(".slide")];
const show = (nth) => {
  const now = Math.min(Math.max(nth, 0), slides.length - 1);
  slides.forEach((slide, at) => slide.classList.toggle("now", at === now));
  load(slides[now].querySelector("iframe"));
  history.replaceState(null, "", `#${now + 1}`);
  scrollTo(0, 0);
};
// A slide can play a log: its frame has the timeline of a step in the present mode. The page of the
// timeline is here once, and the data of each step.
const [DATA, END] = ['<script id="data" type="text/plain">', "</" + "script>"];
function load(frame) {
  if (!frame || frame.src) return;
  const { step, events } = frame.dataset, text = (id) => document.getElementById(id).textContent;
  const page = text("timeline").replaceAll("&lt;", "<").replaceAll("&amp;", "&");
  const html = page.replace(DATA + END, () => DATA + text(`data-${step}`) + END);
  const url = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  frame.src = `${url}#${events.split("-")[0]}?present&of=${events}`;
}
// Each frame reports whether it is at an end of its part of the log.
const reported = new Map();
addEventListener("message", ({ data, source }) => {
  if (data?.trapline === "at") reported.set(source, data);
  if (data?.trapline === "past") show(current() + data.by);
});
const frame = () => slides[current()].querySelector("iframe")?.contentWindow;
const pass = (key) => frame()?.postMessage({ trapline: "key", key }, "*");
// A step of the log that the slide plays or, at its end, another slide.
const turn = (by) => {
  const at = reported.get(frame());
  if (!at || (by > 0 ? at.last : at.first)) show(current() + by);
  else pass(by > 0 ? "ArrowRight" : "ArrowLeft");
};
const current = () => slides.findIndex((slide) => slide.classList.contains("now"));
const notes = () => document.body.classList.toggle("notes");

const keys = {
  ArrowRight: () => turn(1),
  ArrowLeft: () => turn(-1),
  PageDown: () => turn(1),
  PageUp: () => turn(-1),
  Home: () => show(0),
  End: () => show(slides.length - 1),
  n: notes,
};
// Keys of a log that plays: play, play back, to the cause, the kind of step, the speed, a loop.
const LOG_KEYS = [" ", "r", "Enter", "u", "+", "-", "l"];
addEventListener("keydown", (event) => {
  const isLogs = frame() && LOG_KEYS.includes(event.key) && event.target.tagName !== "BUTTON";
  const act = isLogs ? () => pass(event.key) : keys[event.key];
  // The arrows scroll a piece of code that has the focus.
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.tagName === "PRE" && event.key.startsWith("Arrow")) return;
  event.preventDefault();
  act();
});
addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1));

const nav = document.createElement("nav");
for (const [text, label, act] of [
  ["←", "previous slide", keys.ArrowLeft],
  ["→", "next slide", keys.ArrowRight],
  ["Notes", "speaker's notes (n)", notes],
]) {
  const button = document.createElement("button");
  button.textContent = text;
  button.title = label;
  button.ariaLabel = label;
  button.addEventListener("click", act);
  nav.append(button);
}
document.body.append(nav);
document.body.classList.add("on");
show((Number(location.hash.slice(1)) || 1) - 1);
