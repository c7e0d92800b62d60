// The cast: each task has a colour or, if there are many, each kind of task. The name is always beside
// the colour.

const cast = (() => {
  // The palette of Okabe and Ito, which readers without red or green vision can tell apart. The
  // second colour is for text on the first.
  const INKS = [
    ["#0072b2", "#fff"], ["#e69f00", "#000"], ["#56b4e9", "#000"], ["#d55e00", "#fff"],
    ["#009e73", "#fff"], ["#cc79a7", "#000"], ["#f0e442", "#000"],
  ];
  const OTHER = ["#687385", "#fff"];
  // The kernel's own task, and main if there are others, which mostly waits.
  const plain = new Set(["wakeup", ...(lanes.length > 3 ? ["main"] : [])]);
  const others = lanes.slice(1).filter(({ name }) => !plain.has(name));
  const isFew = others.length <= INKS.length, inks = new Map();
  for (const { id, name } of others) {
    const key = isFew ? id : kindOfName(name);
    if (!inks.has(key)) inks.set(key, INKS[inks.size % INKS.length]);
  }
  const nameOfTask = (id) => lanes[laneOf.get(id)]?.name ?? (id === 1 ? "wakeup" : `task ${id}`);
  const kind = (id) => kindOfName(nameOfTask(id));
  // In a sentence, tasks that share a name have their numbers too.
  const sizes = new Map();
  for (const { name } of lanes) sizes.set(name, (sizes.get(name) ?? 0) + 1);
  const told = (id) => (sizes.get(nameOfTask(id)) > 1 ? `${nameOfTask(id)} ${id}` : nameOfTask(id));
  const ink = (id) => inks.get(isFew ? id : kind(id)) ?? OTHER;
  return { kind, ink, told, name: nameOfTask };
})();
