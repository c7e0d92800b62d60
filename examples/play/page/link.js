"use strict";

// The page has a program at the left, its log at the right, and its timeline below. This file has
// what the others use, and links: a program as letters that an address can carry.

const element = (id) => document.getElementById(id);

function make(tag, name, ...parts) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...parts);
  return made;
}

// In bytes. The language allows 512 lines, but a few letters of a link can unpack to gigabytes.
const LONGEST_PROGRAM = 100_000;

// Returns what comes out of a stream of the browser for these bytes.
async function through(bytes, stream, limit = Infinity) {
  const parts = [];
  let size = 0;
  for (const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(value);
    size += value.length;
    if (size > limit) {
      reader.cancel();
      throw new RangeError(`more than ${limit} bytes`);
    }
  }
}

function inflate(letters, limit) {
  const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  return through(bytes, new DecompressionStream("deflate-raw"), limit);
}

// The letters of base64url: they need no escape in an address.
async function linkOf(text) {
  const packed = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  const letters = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return `#p=${letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Returns the link that a text ends in, from `#` on.
const linkIn = (text) => /#p=[\w-]+$/.exec(text.trim())?.[0];

// Returns the program of a link. Fails if the link has lost a part.
async function programOf(link) {
  const letters = link.slice("#p=".length).replaceAll("-", "+").replaceAll("_", "/");
  const bytes = await inflate(letters, LONGEST_PROGRAM);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}
