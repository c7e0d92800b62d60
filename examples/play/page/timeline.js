// The timeline: the page that `trace timeline` writes, in a frame. `srcdoc` gives it the origin of
// this page, so the two can call each other; from a file, a frame with a `blob:` address cannot.

const timeline = {
  // The page of the present log.
  page: "",
  // The frame that is shown, and the one that is to take its place.
  frame: null,
  next: null,
  // Whether the frame shows the log that the page shows.
  isCurrent: false,
};

const timelineInside = () => timeline.isCurrent ? timeline.frame.contentWindow.timeline : null;
const isTimelineShown = () => element("timeline").offsetParent !== null;

function showTimeline(page) {
  timeline.page = page;
  if (isTimelineShown()) return loadTimeline();
  timeline.frame?.remove();
  timeline.frame = null;
}

// Loads the page into a new frame each time: a new address in an old frame would be one more step
// for the Back button. The old timeline stays until the new one can be seen.
function loadTimeline() {
  timeline.next?.remove();
  const frame = make("iframe", "");
  frame.title = "Timeline";
  frame.srcdoc = timeline.page;
  timeline.next = frame;
  element("timeline").append(frame);
  frame.addEventListener("load", () => {
    const inside = frame.contentWindow;
    const style = make("style", "", HIDDEN);
    inside.document.head.append(style);
    const ready = () => frame === timeline.next && takePlace();
    if (inside.timeline) ready();
    // Its script goes on after the event.
    else inside.addEventListener("timeline", () => queueMicrotask(ready), { once: true });
  });
}

// The page shows these itself, except the button of the present mode, which needs a whole window.
const HIDDEN = "h1, #why, #faults, #show, #details:not(:has(> :not(#why, [hidden]))) { display: none }";

function takePlace() {
  const inside = timeline.next.contentWindow;
  timeline.frame?.remove();
  [timeline.frame, timeline.next] = [timeline.next, null];
  timeline.frame.className = "shown";
  timeline.isCurrent = true;
  inside.addEventListener("chosen", ({ detail }) => {
    if (!timeline.isCurrent) return;
    sayStepping();
    if (detail >= 0 && detail !== log.chosen) choose(detail, true);
  });
  // The button and the key of the panel are inside.
  for (const kind of ["click", "keyup"]) inside.addEventListener(kind, sayStepping);
  if (document.body.classList.contains("stepping")) inside.timeline.openPanel(Math.max(0, log.chosen));
  else if (log.chosen >= 0) inside.timeline.choose(log.chosen, true);
  paint();
}

// The panel of the state needs more room than the timeline alone.
function sayStepping() {
  const inside = timelineInside();
  if (inside) document.body.classList.toggle("stepping", inside.isOpen());
}

// Chooses the next line or the line before. If the panel of the state is open, it follows.
function step(by) {
  if (eventCount() > 0) choose(Math.min(eventCount() - 1, Math.max(0, log.chosen + by)));
}

// In a page of the book, the timeline is there on demand.
function openTimeline(isOpen) {
  document.body.classList.toggle("with-timeline", isOpen);
  element("more").setAttribute("aria-expanded", isOpen);
  if (isOpen && !timeline.frame && !timeline.next) loadTimeline();
}

element("step").addEventListener("click", () => step(1));
element("back").addEventListener("click", () => step(-1));
element("more").addEventListener("click", () => {
  openTimeline(!document.body.classList.contains("with-timeline"));
});
