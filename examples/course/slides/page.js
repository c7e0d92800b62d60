// Without this script all slides are below each other.
const slides = [...document.querySelectorAll(".slide")];
const show = (nth) => {
  const now = Math.min(Math.max(nth, 0), slides.length - 1);
  slides.forEach((slide, at) => slide.classList.toggle("now", at === now));
  history.replaceState(null, "", `#${now + 1}`);
  scrollTo(0, 0);
};
const current = () => slides.findIndex((slide) => slide.classList.contains("now"));
const notes = () => document.body.classList.toggle("notes");

const keys = {
  ArrowRight: () => show(current() + 1),
  ArrowLeft: () => show(current() - 1),
  PageDown: () => show(current() + 1),
  PageUp: () => show(current() - 1),
  Home: () => show(0),
  End: () => show(slides.length - 1),
  n: notes,
};
addEventListener("keydown", (event) => {
  const act = keys[event.key];
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
