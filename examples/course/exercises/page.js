// A page may have several pieces, and each brings this script.
for (const ask of document.querySelectorAll(".exercise .ask:not([data-on])")) {
  ask.dataset.on = "";
  const said = ask.querySelector(".said");
  const answer = ask.querySelector("details");
  const list = ask.querySelector(".order");
  answer.hidden = true;
  let tries = 0;

  const say = (isRight, html) => {
    said.className = `said ${isRight ? "right" : "wrong"}`;
    said.innerHTML = html;
    tries += 1;
    answer.hidden = !isRight && tries < 2;
    answer.open = isRight;
  };
  const button = (text, label, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    if (label) made.ariaLabel = label;
    made.addEventListener("click", act);
    return made;
  };

  const chosen = () => {
    const choice = ask.querySelector("input:checked");
    if (!choice) return say(false, "Choose one first.");
    say(choice.dataset.hint === undefined, choice.dataset.hint ?? "");
  };

  // The first two neighbours of the answer that are not in order.
  const ordered = () => {
    const items = [...list.children];
    const place = (nth) => items.findIndex((item) => item.dataset.place === `${nth}`);
    items.forEach((item) => item.classList.remove("odd"));
    for (let nth = 0; nth + 1 < items.length; nth++) {
      const [first, second] = [items[place(nth)], items[place(nth + 1)]];
      if (place(nth) < place(nth + 1)) continue;
      [first, second].forEach((item) => item.classList.add("odd"));
      const code = (item) => item.querySelector("code").outerHTML;
      return say(false, `${code(first)} is before ${code(second)}: ${first.dataset.hint}.`);
    }
    say(true, "");
  };

  const move = (item, by, focus) => {
    const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    if (by < 0) other.before(item);
    else other.after(item);
    focus.focus();
  };
  for (const item of list?.children ?? []) {
    item.tabIndex = 0;
    const line = item.textContent;
    const up = button("↑", `up: ${line}`, () => move(item, -1, up));
    const down = button("↓", `down: ${line}`, () => move(item, 1, down));
    item.append(up, down);
    item.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!by || event.target !== item) return;
      event.preventDefault();
      move(item, by, item);
    });
  }
  said.before(button("Check", "", list ? ordered : chosen));
}
