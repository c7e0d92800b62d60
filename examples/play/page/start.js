// The start, and what differs in a page of the book, which embeds `playground.html?small#deadlock`.

function toggleLanguage() {
  const { hidden } = element("language");
  element("language").hidden = !hidden;
  element("help").setAttribute("aria-expanded", hidden);
}

element("help").addEventListener("click", toggleLanguage);

if (location.search === "?small") {
  document.body.classList.add("small");
  // The page around this one gives the frame its height.
  new ResizeObserver(() => {
    parent.postMessage({ height: document.documentElement.offsetHeight }, "*");
  }).observe(document.body);
  const whole = element("whole");
  const follow = () => { whole.href = location.href.replace("?small", ""); };
  for (const kind of ["pointerdown", "focus"]) {
    whole.addEventListener(kind, () => keepAddress().then(follow));
  }
  follow();
}

async function start() {
  if (!window.DecompressionStream || !window.WebAssembly) {
    return tell("This browser is too old for the page. Expected one from 2023 or later.");
  }
  showHint();
  kernel.module = await WebAssembly.compile(await inflate(element("kernel").textContent));
  renew();
  followAddress();
  addEventListener("hashchange", followAddress);
}

start();
