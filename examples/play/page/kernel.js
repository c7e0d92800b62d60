// The kernel. It is in a worker, so that the page can end a run that takes too long.

const kernel = {
  module: null,
  worker: null,
  // The timer of the present run.
  watch: 0,
  longest: 4000,
};

// Starts a new worker, and ends the one before with all that it does.
function renew() {
  kernel.worker?.terminate();
  clearTimeout(kernel.watch);
  kernel.watch = 0;
  const code = new Blob([element("worker").textContent], { type: "text/javascript" });
  const address = URL.createObjectURL(code);
  kernel.worker = new Worker(address);
  kernel.worker.onmessage = ({ data }) => hear(data);
  kernel.worker.onerror = (event) => fail("The worker has failed", event.message);
  kernel.worker.postMessage({ module: kernel.module });
}

function run() {
  if (!kernel.module) return;
  // The answer of a run that is not done would be of another program.
  if (kernel.watch) renew();
  kernel.watch = setTimeout(() => {
    fail("Stopped", `the run has not ended within ${kernel.longest / 1000} s`);
  }, kernel.longest);
  kernel.worker.postMessage({ program: text.value });
}

function hear(data) {
  if ("log" in data) showRun(data);
  if ("timeline" in data) {
    clearTimeout(kernel.watch);
    kernel.watch = 0;
    if (data.timeline) showTimeline(data.timeline);
  }
  if ("why" in data && data.place === log.chosen) showWhy(data.why);
  if ("panic" in data) fail("The kernel has panicked", data.panic);
}

// After this, the next run has a new worker.
function fail(what, why) {
  renew();
  document.body.classList.add("stale");
  tell(make("b", "", what), `: ${why}. The next run has a new kernel.`);
}

// Sets the status. A screen reader reads each change aloud, so the same text is not set again.
function tell(...parts) {
  const status = make("p", "", ...parts);
  if (status.textContent !== element("status").textContent) {
    element("status").replaceChildren(...status.childNodes);
  }
}
