  hall.render(0, { clock: known.at, time });
  hall.part("where").textContent = "live";
  cards.before = new Map(tasks.map(({ id, state }) => [id, state]));
}

at("cards").addEventListener("click", () => openCards(true));
at("leave").addEventListener("click", () => openCards(false));
