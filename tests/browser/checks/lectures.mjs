// Answers the questions of the exercises, and walks through the slides, as a reader would at 1280 and
// 400 px: every wrong answer gets a hint, the right one is right, the keys turn the slides and step
// the logs that slides play, and nothing makes a page scroll sideways.

import { must, output } from "../world.mjs";

export const needs = ["course"];

const PAGES = [
  ...[8, 9, 10, 11].map((step) => ["exercise", `${step}`]),
  ...[1, 2].map((lecture) => ["slides", `${lecture}`]),
];

export default async function lectures(tab, world) {
  let questions = 0, slides = 0;
  for (const page of PAGES) {
    const name = page.join(" ");
    const address = world.page(`${name}.html`, await output(world.paths.course, ...page));
    for (const width of [1280, 400]) {
      await tab.size(width, 760);
      await tab.open(address);
      const found = await tab.call(inPage);
      must(found.faults.length === 0, `${name} at ${width} px: not so: ${found.faults.join("; ")}`);
      if (width === 1280) [questions, slides] = [questions + found.questions, slides + found.slides];
    }
  }
  return `${questions} questions, ${slides} slides`;
}

async function inPage() {
  const faults = [];
  const must = (what, holds) => holds || faults.push(what);
  const key = (target, name) =>
    target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const asks = [...document.querySelectorAll(".exercise .ask")];

  for (const ask of asks) {
    const title = ask.querySelector("h3").textContent;
    const said = ask.querySelector(".said");
    const answer = ask.querySelector("details");
    const check = [...ask.querySelectorAll("button")].find((it) => it.textContent === "Check");
    must(`${title}: the answer is hidden at first`, answer.hidden);
    const list = ask.querySelector(".order");
    if (list) {
      check.click();
      must(`${title}: the first order is wrong`, said.className === "said wrong");
      must(`${title}: a hint names two lines`, said.querySelectorAll("code").length >= 2);
      // Sorts the lines with the keys alone.
      const items = [...list.children];
      for (let place = 0; place < items.length; place++) {
        const item = items.find((it) => it.dataset.place === `${place}`);
        while ([...list.children].indexOf(item) > place) key(item, "ArrowUp");
      }
      check.click();
    } else {
      check.click();
      must(`${title}: it asks for a choice`, said.textContent.includes("Choose"));
      for (const choice of ask.querySelectorAll("input[data-hint]")) {
        choice.click();
        check.click();
        must(`${title}: a wrong choice gets a hint`, /#\d{4}/.test(said.textContent));
        must(`${title}: a wrong choice is wrong`, said.className === "said wrong");
      }
      ask.querySelector("input:not([data-hint])").click();
      check.click();
    }
    must(`${title}: the right answer is right`, said.className === "said right");
    must(`${title}: then the answer is open`, answer.open && !answer.hidden);
  }

  // Steps a slide's log to its end. Returns the number of steps.
  async function play(slide) {
    let reports = 0;
    const heard = (event) => event.data?.trapline === "at" && reports++;
    addEventListener("message", heard);
    await until(() => reports > 0);
    for (let before = 0; slide.offsetHeight > 0 && before < reports;) {
      before = reports;
      key(document.body, "ArrowRight");
      await until(() => reports > before || slide.offsetHeight === 0);
    }
    removeEventListener("message", heard);
    return reports;
  }

  const slides = [...document.querySelectorAll(".slide")];
  const isWide = () => document.documentElement.scrollWidth > innerWidth;
  const shown = () => slides.filter((slide) => slide.offsetHeight > 0);
  if (slides.length > 0) key(document.body, "Home");
  for (const slide of slides) {
    const title = slide.querySelector("h2").textContent;
    must(`${title}: it is the one that is shown`, shown().length === 1 && shown()[0] === slide);
    must(`${title}: it does not scroll sideways`, !isWide());
    key(document.body, "n");
    must(`${title}: its note can be shown`, slide.querySelector("aside").offsetHeight > 0);
    key(document.body, "n");
    if (slide.querySelector("iframe")) {
      const steps = await play(slide);
      must(`${title}: its log has steps`, steps > 3);
      must(`${title}: the next slide follows`, slides.indexOf(slide) + 1 === slides.indexOf(shown()[0]));
    } else key(document.body, "ArrowRight");
  }
  must("nothing scrolls sideways", !isWide());
  must("the page has questions or slides", asks.length + slides.length > 3);
  return { faults, questions: asks.length, slides: slides.length };
}
