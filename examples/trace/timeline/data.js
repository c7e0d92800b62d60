"use strict";

// The trace: what is known of each line, by its place from 0. See `page.rs` for the form of `#data`.

const trace = JSON.parse(document.getElementById("data").textContent);
const count = trace.lines.length;
const { at, turn, task: taskOf, behind } = trace;
const RUN = 0, READY = 1, BLOCKED = 2;

// The line, as it is in the log.
function line(n) {
  return trace.lines[n];
}

// The causes of a line, itself first.
function chain(n) {
  const found = [];
  for (; n >= 0; n = behind[n]) found.push(n);
  return found;
}

// The first of a sorted list for which `is` holds.
function firstOf(list, is) {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (is(list[middle])) to = middle;
    else from = middle + 1;
  }
  return from;
}
