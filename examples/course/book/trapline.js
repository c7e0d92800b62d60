// On paper the log of a step is open.
addEventListener("beforeprint", () => {
  for (const log of document.querySelectorAll("details.log")) log.open = true;
});

// The playground in a frame says how high it is.
addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll(".play iframe")) {
    if (frame.contentWindow === source && data?.height) frame.style.height = `${data.height}px`;
  }
});
