"use strict";

// Unpacks the data, then runs the script of the page.

async function unpack() {
  const letters = atob(document.getElementById("data").textContent);
  const packed = new Uint8Array(letters.length);
  for (let n = 0; n < letters.length; n++) packed[n] = letters.charCodeAt(n);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

let unpacked = null;
const opened = window.DecompressionStream ? unpack().then((bytes) => {
  unpacked = bytes;
  const script = document.createElement("script");
  script.textContent = document.getElementById("script").textContent;
  document.body.append(script);
}) : Promise.resolve();
if (!window.DecompressionStream) {
  document.getElementById("why").textContent =
    "This browser cannot unpack the trace. Expected one from 2023 or later.";
}
