// The moving pictures of the README: each is what `movie.js` makes of its log. They move by style
// sheets alone, and without their animations they show what the still pictures show.

import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { must, output, root, sameFacts, Log } from "../world.mjs";

export const needs = ["trace", "philosophers"];

const FOLDER = "kernel/src/guide";
// The name of each picture, and what it is made of: its events and its colors.
const PICTURES = {
  "philosophers.svg": [16, 47, "light"], "philosophers-dark.svg": [16, 47, "dark"],
  "philosophers-still.svg": [47, 47, "light"], "philosophers-still-dark.svg": [47, 47, "dark"],
};
const MOST_BYTES = 30_000, MOST_MOVING = 100;

export default async function movie(tab, world) {
  const file = path.join(world.scratch, "movie.trace");
  // It ends in a deadlock, and so with an error.
  await output(world.paths.philosophers, "--virtual", "--trace", file).catch(() => {});
  const page = await world.timeline("movie", new Log(file)), script = path.join(root, "tests/browser/movie.js");
  for (const [name, made] of Object.entries(PICTURES)) {
    await tab.open(page);
    await tab.run(`opened.then(() => { ${readFileSync(script, "utf8")}; globalThis.made = movie(${JSON.stringify(made).slice(1, -1)}); })`);
    const text = readFileSync(path.join(root, FOLDER, name), "utf8");
    must(text === await tab.run("made"), `${FOLDER}/${name} is not what tests/browser/movie.sh makes of the events ${made}`);
    must(text.length <= MOST_BYTES, `${name} has ${text.length} bytes`);
    must(!/<(script|animate|set|image|foreignObject)|href|url\(/.test(text), `${name} has more than shapes and styles`);
  }
  for (const [moving, still] of [["philosophers.svg", "philosophers-still.svg"], ["philosophers-dark.svg", "philosophers-still-dark.svg"]]) {
    const calm = await look(tab, still, "no-preference");
    must(calm.moving === 0, `${still} moves`);
    sameFacts(await look(tab, moving, "reduce"), calm, `${moving} without its animations`);
    const { moving: size, properties } = await look(tab, moving, "no-preference");
    must(size > 0 && size < MOST_MOVING, `${moving}: ${size} elements move`);
    must(properties === "opacity transform", `${moving} moves ${properties}`);
  }
  return `${Object.keys(PICTURES).length} pictures`;
}

// What a picture shows to a reader who prefers this motion.
async function look(tab, name, value) {
  await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value }] });
  await tab.open("about:blank");
  await tab.open(pathToFileURL(path.join(root, FOLDER, name)).href);
  return tab.call(() => {
    const animations = document.getAnimations();
    const properties = new Set(animations.flatMap(({ effect }) => effect.getKeyframes()).flatMap(Object.keys));
    for (const known of ["offset", "easing", "composite", "computedOffset"]) properties.delete(known);
    const isSeen = (it) => !it || (getComputedStyle(it).opacity !== "0" && isSeen(it.parentElement));
    const texts = [...document.querySelectorAll("text")].filter(isSeen).map((it) => {
      const { x, y } = it.getBoundingClientRect();
      return `${it.textContent} at ${Math.round(x)}, ${Math.round(y)}`;
    });
    return { moving: animations.length, properties: [...properties].sort().join(" "), texts: texts.join("\n") };
  });
}
