// On paper the log of a step is open.
addEventListener("beforeprint", () => {
  for (const log of document.querySelectorAll("details.log")) log.open = true;
});
