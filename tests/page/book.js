// Looks at each page of the book in a frame, with all that is folded open: its links lead to a page,
// and to an anchor that is there; it has its parts; nothing makes it scroll sideways. A light page is
// 1280 px wide, and a dark page 400 px, except the files, which are alike; some pages have both
// widths. Then searches. `pages` has the addresses, `folder` is the book.
"use strict";

const BOTH = /(index|step_06|step_12|16_fair|rows|grammar|turn\.rs)\.html$/;

const faults = [];
const anchors = new Map(); // of a page
const links = []; // [page, link]
const frame = document.querySelector("iframe");
const short = (address) => address.slice(folder.length);

// Resolves once `done` is true of the frame's document.
async function until(done, what) {
  for (let tries = 0; tries < 1000; tries++) {
    if (done(frame.contentDocument)) return;
    await new Promise((resume) => setTimeout(resume, 10));
  }
  faults.push(`it never had ${what}`);
}

function open(address) {
  const loaded = new Promise((resume) => frame.addEventListener("load", resume, { once: true }));
  frame.src = address;
  return loaded;
}

function collect(page, shown) {
  anchors.set(page, new Set([...shown.querySelectorAll("[id]")].map((each) => each.id)));
  const found = [...shown.querySelectorAll("a[href], iframe[src]")];
  for (const link of new Set(found.map((each) => each.href ?? each.src))) {
    if (!link.startsWith("https://")) links.push([page, link]);
  }
  for (const image of shown.images) {
    if (image.naturalWidth === 0) faults.push(`${short(page)}: no picture ${image.src}`);
  }
}

// How far the page scrolls sideways. A block of code scrolls inside its own box, and is not counted.
function sideways(shown) {
  const boxes = shown.querySelectorAll("html, body, .page-wrapper, .page, .content, main");
  return Math.max(...[...boxes].map((box) => box.scrollWidth - box.clientWidth));
}

function checkLink(page, link) {
  const [address, anchor] = link.split("#");
  const target = address.split("?")[0];
  if (!anchors.has(target)) return faults.push(`${short(page)}: ${short(link)} is no page`);
  const isLine = target.endsWith("_timeline.html");
  if (!anchor || isLine || anchors.get(target).has(decodeURIComponent(anchor))) return;
  faults.push(`${short(page)}: ${short(link)} has no such anchor`);
}

// The timeline inside the page of a step opens at the line that the page names.
async function checkPanel() {
  const shown = await show(`${folder}steps/step_06.html`, 1280);
  const panel = shown.querySelector(".panel iframe");
  panel.scrollIntoView();
  const line = panel.src.split("#")[1];
  await until(() => panel.contentDocument?.body?.innerText.includes(`#${line}`), `#${line} in step 6`);
}

// The page of a step has what its marks stand for; the hints of a lab open one at a time.
function checkParts(page, shown) {
  const step = /steps\/step_(\d+)\.html$/.exec(page)?.[1];
  const parts = [".log", ".panel", `a[href$='code/step_${step}.html']`];
  if (step !== "01") parts.push(".change");
  for (const part of step ? parts : []) {
    if (!shown.querySelector(`main ${part}`)) faults.push(`${short(page)}: has no ${part}`);
  }
  const hints = [...shown.querySelectorAll(".hint")];
  if (page.includes("/labs/") && !hints.length) faults.push(`${short(page)}: has no hint`);
  const isInside = (hint, nth) => nth === 0 || hints[nth - 1].contains(hint);
  if (!hints.every(isInside)) faults.push(`${short(page)}: a hint opens before the one before it`);
}

// Looks for words, and returns the texts of the results.
async function search(words) {
  await open(`${folder}index.html?search=${encodeURIComponent(words)}`);
  await until((shown) => shown.querySelector("#mdbook-searchresults li a"), "a result");
  const results = frame.contentDocument.querySelectorAll("#mdbook-searchresults li");
  return [...results].map((each) => each.textContent);
}

// Opens a page at a width, with all that is folded.
async function show(page, width) {
  frame.style.width = `${width}px`;
  await open(page);
  const shown = frame.contentDocument;
  for (const folded of shown.querySelectorAll("details")) folded.open = true;
  const wide = sideways(shown);
  if (wide > 0) faults.push(`${short(page)}: scrolls by ${wide} px at ${width} px`);
  return shown;
}

async function lookAt(page, width) {
  // A timeline has checks of its own.
  if (page.endsWith("_timeline.html")) return anchors.set(page, new Set());
  const shown = await show(page, width);
  collect(page, shown);
  checkParts(page, shown);
}

async function look() {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const [width, other] = isDark ? [400, 1280] : [1280, 400];
  const chosen = isDark ? pages.filter((page) => !page.includes("/files/")) : pages;
  for (const page of chosen) await lookAt(page, width);
  for (const page of pages.filter((page) => BOTH.test(page))) await show(page, other);
  if (!isDark) for (const [page, link] of links) checkLink(page, link);
  await checkPanel();
  const results = await search("wake queue");
  const found = results.some((text) => text.toLowerCase().includes("wake queue"));
  if (!found) faults.push("the search does not find: wake queue");
  const theme = frame.contentDocument.documentElement.classList;
  if (!theme.contains(isDark ? "navy" : "light")) faults.push(`it has another theme: ${theme}`);
  return [`${isDark ? "dark" : "light"}: ${anchors.size} pages, ${links.length} links`, ...faults];
}

// The browser writes what it shows once everything has loaded: the second frame is loading until the
// report is there.
const hold = document.body.appendChild(document.createElement("iframe"));
hold.contentDocument.open();
look().catch((error) => [String(error)]).then((lines) => {
  const report = document.createElement("pre");
  report.textContent = `BOOK\n${lines.join("\n")}\nEND\n`;
  document.body.append(report);
  hold.contentDocument.close();
});
