// Looks at each page of the book, with all that is folded open: its links lead to a page, and to an
// anchor that is there; it has its parts; nothing makes it scroll sideways. A light page is 1280 px
// wide, and a dark page 400 px, except the files, which are alike; some pages have both widths. Then
// searches.

import { readdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { must } from "../world.mjs";

export const needs = ["book"];

const BOTH = /(index|step_06|step_12|16_fair|rows|grammar|turn\.rs)\.html$/;

// The files below a folder, from there.
function below(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((each) => each.isDirectory()
    ? below(path.join(folder, each.name)).map((file) => path.join(each.name, file)) : [each.name]);
}

export default async function book(tab, { paths }) {
  const folder = `${pathToFileURL(path.resolve(paths.book)).href}/`;
  const files = below(paths.book).filter((file) => file.endsWith(".html") && path.basename(file) !== "toc.html");
  const pages = files.sort().map((file) => pathToFileURL(path.resolve(paths.book, file)).href);
  const links = await look(tab, folder, pages, "light");
  await look(tab, folder, pages, "dark");
  return `${pages.length} pages, ${links} links`;
}

// Looks at the book as a reader with this preference. Returns how many links it has found.
async function look(tab, folder, pages, scheme) {
  const faults = [], links = []; // [page, link]
  const anchors = new Map(); // of a page
  const short = (address) => address.slice(folder.length);
  const isDark = scheme === "dark";

  // Opens a page at a width, with all that is folded.
  async function show(page, width) {
    await tab.size(width, 900);
    await tab.open(page);
    const wide = await tab.call(unfold);
    if (wide > 0) faults.push(`${short(page)}: scrolls by ${wide} px at ${width} px`);
  }

  function checkLink(page, link) {
    const [address, anchor] = link.split("#");
    const target = address.split("?")[0];
    if (!anchors.has(target)) return faults.push(`${short(page)}: ${short(link)} is no page`);
    const isLine = target.endsWith("_timeline.html");
    if (!anchor || isLine || anchors.get(target).has(decodeURIComponent(anchor))) return;
    faults.push(`${short(page)}: ${short(link)} has no such anchor`);
  }

  await tab.prefer(scheme);
  const [width, other] = isDark ? [400, 1280] : [1280, 400];
  for (const page of isDark ? pages.filter((page) => !page.includes("/files/")) : pages) {
    anchors.set(page, new Set());
    // A timeline has checks of its own.
    if (page.endsWith("_timeline.html")) continue;
    await show(page, width);
    const found = await tab.call(collect, page);
    anchors.set(page, new Set(found.anchors));
    links.push(...found.links.map((link) => [page, link]));
    faults.push(...found.faults.map((fault) => `${short(page)}: ${fault}`));
  }
  for (const page of pages.filter((page) => BOTH.test(page))) await show(page, other);
  if (!isDark) for (const [page, link] of links) checkLink(page, link);

  // The timeline inside the page of a step opens at the line that the page names.
  await show(`${folder}steps/step_06.html`, 1280);
  const line = await tab.call(scrollToPanel);
  const isThere = await tab.callInFrame(opensAt, line);
  if (!isThere) faults.push(`it never had #${line} in step 6`);

  const words = "wake queue";
  await tab.open(`${folder}index.html?search=${encodeURIComponent(words)}`);
  const { results, theme } = await tab.call(search);
  if (!results.some((text) => text.toLowerCase().includes(words))) faults.push(`the search does not find: ${words}`);
  if (!theme.includes(isDark ? "navy" : "light")) faults.push(`it has another theme: ${theme}`);
  must(faults.length === 0, `${scheme}: ${faults.length} faults\n${faults.slice(0, 40).join("\n")}`);
  return links.length;
}

// The rest runs in a page.

// Unfolds all, and returns how far the page then scrolls sideways. A block of code scrolls inside its
// own box, and is not counted.
function unfold() {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const boxes = document.querySelectorAll("html, body, .page-wrapper, .page, .content, main");
  return Math.max(...[...boxes].map((box) => box.scrollWidth - box.clientWidth));
}

function collect(page) {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const found = new Set(all("a[href], iframe[src]").map((each) => each.href ?? each.src));
  const links = [...found].filter((link) => !link.startsWith("https://"));
  for (const image of document.images) {
    if (image.naturalWidth === 0) faults.push(`no picture ${image.src}`);
  }

  // The page of a step has what its marks stand for; the hints of a lab open one at a time.
  const step = /steps\/step_(\d+)\.html$/.exec(page)?.[1];
  const parts = [".log", ".panel", `a[href$='code/step_${step}.html']`];
  if (step !== "01") parts.push(".change");
  for (const part of step ? parts : []) {
    if (!document.querySelector(`main ${part}`)) faults.push(`has no ${part}`);
  }
  const hints = all(".hint");
  if (page.includes("/labs/") && !hints.length) faults.push("has no hint");
  const isInside = (hint, nth) => nth === 0 || hints[nth - 1].contains(hint);
  if (!hints.every(isInside)) faults.push("a hint opens before the one before it");
  return { anchors: all("[id]").map((each) => each.id), links, faults };
}

// Returns the line that the address of the timeline names.
function scrollToPanel() {
  const panel = document.querySelector(".panel iframe");
  panel.scrollIntoView();
  return panel.src.split("#")[1];
}

async function opensAt(line) {
  const isThere = () => document.body?.innerText.includes(`#${line}`);
  for (let tries = 0; tries < 1000 && !isThere(); tries++) await new Promise((resume) => setTimeout(resume, 10));
  return isThere();
}

// The texts of the results, and the theme.
async function search() {
  const found = () => document.querySelectorAll("#mdbook-searchresults li");
  const isThere = () => document.querySelector("#mdbook-searchresults li a");
  for (let tries = 0; tries < 1000 && !isThere(); tries++) await new Promise((resume) => setTimeout(resume, 10));
  return { results: [...found()].map((each) => each.textContent), theme: [...document.documentElement.classList] };
}
