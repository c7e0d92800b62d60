// Looks at each page of the book, with all that is folded open: its links lead to a page, and to an
// anchor that is there; it has its parts; nothing makes it scroll sideways. A light page is 1280 px
// wide, and a dark page 400 px, except the files, which are alike; some pages have both widths. Each
// program of the playground runs in its frame, or is text if the book has no playground. Then searches.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { golden, must, root } from "../world.mjs";

export const needs = ["book"];

// The files that have programs of the playground, and their pages.
const PLAYED = [
  ...[1, 4, 6, 8, 11].map((step) => `step_${`${step}`.padStart(2, "0")}`)
    .map((step) => [`examples/course/${step}/README.md`, `steps/${step}.html`]),
  ["kernel/src/guide/reading.md", "guide/reading.html"],
];

// The pages of the book that other checks look at.
const HAS_CHECKS = /(_timeline|\/play)\.html$/;
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
  const programs = await play(tab, folder, existsSync(path.join(paths.book, "play.html")));
  return `${pages.length} pages, ${links} links, ${programs}`;
}

// Looks at the programs of the playground. Returns how many there are, and as what.
async function play(tab, folder, hasFrames) {
  let count = 0;
  for (const [scheme, width] of [["light", 1280], ["dark", 400]]) {
    await tab.prefer(scheme);
    await tab.size(width, 900);
    for (const [file, page] of PLAYED) {
      const text = readFileSync(path.join(root, file), "utf8");
      const names = [...text.matchAll(/^<!-- play: (.*) -->$/gm)].map(([, name]) => name);
      must(names.length > 0, `${file} has no program`);
      await tab.open(`${folder}${page}`);
      const { frames, heads } = await tab.call(played);
      const wanted = hasFrames ? names.map((name) => `../play.html?small#${name}`) : [];
      must(frames.join() === wanted.join(), `${page}: the frames are ${frames}`);
      for (const [nth, name] of names.entries()) {
        const log = golden(`play/${name}`);
        if (hasFrames) await runs(tab, `${page}, ${name}`, nth, wanted[nth].slice(2), log);
        else must(heads.includes(log.text.split("\n")[0]), `${page}: has no log of ${name}`);
      }
      count += names.length;
    }
  }
  return `${count / 2} programs in ${hasFrames ? "frames" : "text"}`;
}

// The program in a frame runs and has its log, and the frame is as high as what it shows.
async function runs(tab, what, nth, address, log) {
  await tab.call(scrollToFrame, nth);
  const lines = await tab.callInFrame(address, answer);
  must(lines === log.lines.length, `${what}: ${lines} lines, not ${log.lines.length}`);
  const hidden = await tab.callInFrame(address, hiddenHeight);
  must(hidden === 0, `${what}: ${hidden} px of it are hidden`);
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
    if (!anchor || HAS_CHECKS.test(target) || anchors.get(target).has(decodeURIComponent(anchor))) return;
    faults.push(`${short(page)}: ${short(link)} has no such anchor`);
  }

  await tab.prefer(scheme);
  const [width, other] = isDark ? [400, 1280] : [1280, 400];
  for (const page of isDark ? pages.filter((page) => !page.includes("/files/")) : pages) {
    anchors.set(page, new Set());
    if (HAS_CHECKS.test(page)) continue;
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
  const isThere = await tab.callInFrame(`step_06_timeline.html#${line}`, opensAt, line);
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
  return panel.src.split("#")[1].split("?")[0];
}

async function opensAt(line) {
  return until(() => document.body?.innerText.includes(`#${line}`));
}

// The addresses of the frames with programs, and the first lines of all that is in code.
function played() {
  const all = (selector) => [...document.querySelectorAll(selector)];
  return {
    frames: all(".play iframe").map((frame) => frame.getAttribute("src")),
    heads: all("pre code").map((code) => code.textContent.split("\n")[0]),
  };
}

function scrollToFrame(nth) {
  document.querySelectorAll(".play iframe")[nth].scrollIntoView();
}

// How many lines the log in the frame has, once it is there.
async function answer() {
  const lines = () => /(\d+) lines/.exec(document.getElementById("status")?.textContent)?.[1];
  await until(lines);
  return Number(lines());
}

// How much of the page in the frame is below its end, once the frame has its height.
async function hiddenHeight() {
  const hidden = () => Math.max(0, document.documentElement.offsetHeight - innerHeight);
  await until(() => !hidden());
  return hidden();
}

// The texts of the results, and the theme.
async function search() {
  const found = () => document.querySelectorAll("#mdbook-searchresults li");
  await until(() => document.querySelector("#mdbook-searchresults li a"));
  return { results: [...found()].map((each) => each.textContent), theme: [...document.documentElement.classList] };
}
