// The ribbon: the whole trace in a few rows, with the task that had the CPU, the number of ready
// tasks and the number of waiting tasks. In the present mode it shows the position; above the lanes,
// as the overview, it shows which part of the trace is in view.

function Ribbon(canvas, { isSmall = false, axis: axisNow = () => view.axis, playhead, window: part, go }) {
  const pen = canvas.getContext("2d");
  // The part of the ribbon that does not depend on the position is painted once, into `picture`.
  let picture = null, wide = 0, high = 0, axis = "", side = 0, type = 12;
  const of = () => axes[axisNow()].of;
  const ends = () => (count ? [of()[trace.begins], Math.max(of()[count - 1], of()[trace.begins] + 1e-9)] : [0, 1]);
  // The lines of the head of a dump are before the ribbon begins.
  const isHead = (n) => n < trace.begins;
  const place = (value) => {
    const [from, to] = ends();
    return side + ((value - from) / (to - from)) * (wide - side);
  };
  const value = (a) => {
    const [from, to] = ends();
    return from + (Math.min(Math.max(a - side, 0), wide - side) / (wide - side)) * (to - from);
  };

  function paintPicture() {
    const scale = window.devicePixelRatio || 1;
    picture = document.createElement("canvas");
    [picture.width, picture.height] = [canvas.width, canvas.height];
    const p = picture.getContext("2d");
    p.setTransform(scale, 0, 0, scale, 0, 0);
    p.textBaseline = "middle";
    type = isSmall ? 0 : Math.max(11, high / 5.2);
    p.font = `${type}px system-ui, sans-serif`;
    const names = isSmall ? [] : ["CPU", "ready", "waiting"], { most } = everything;
    const widths = names.map((name, s) => p.measureText(`${name} ${s ? most[s] : ""}`).width);
    side = isSmall ? left : Math.max(...widths) + type * 1.4;
    const gap = isSmall ? 1 : Math.max(3, high * 0.05);
    const shares = isSmall ? [0.55, 0.45] : [0.36, 0.32, 0.32];
    let top = 0;
    const rows = shares.map((share) => [top, top += share * high]);
    p.fillStyle = colors.rule;
    for (const [from, to] of rows) p.fillRect(side, from + gap / 2, wide - side, to - from - gap);
    p.fillStyle = colors.faint;
    names.forEach((name, s) => {
      const middle = (rows[s][0] + rows[s][1]) / 2;
      p.textAlign = "left";
      p.fillText(name, 0, middle);
      p.textAlign = "right";
      if (s) p.fillText(most[s], side - type * 0.6, middle);
    });
    p.textAlign = "left";
    paintCpu(p, rows[0], gap);
    paintArea(p, READY, rows[1], gap, colors.faint);
    if (!isSmall) paintArea(p, BLOCKED, rows[2], gap, colors.blocked);
    axis = axisNow();
  }

  // A piece for each run. A run of unknown length is a mark. A trace can have many more runs than the
  // ribbon has pixels, so each pixel is painted once, for the last lane that ran there.
  function paintCpu(p, [top, bottom], gap) {
    const named = [], owners = new Int32Array(Math.ceil(wide) + 1).fill(-1);
    for (const [nth, lane] of lanes.entries()) {
      for (let q = 0; q < lane.from.length; q++) {
        if (lane.state[q] !== RUN) continue;
        const a = place(of()[lane.from[q]]), b = Math.max(a, place(endOfRun(lane, q)));
        const first = Math.round(a), end = Math.max(Math.round(b) - (b - a > 4 ? 1 : 0), first + 1);
        owners.fill(nth, first, end);
        if (b - a > type * 3) named.push([lane, a, b]);
      }
    }
    for (let a = 0, b = 0; a < wide; a = b) {
      while (b < owners.length && owners[b] === owners[a]) b++;
      if (owners[a] < 0) continue;
      p.fillStyle = cast.ink(lanes[owners[a]].id)[0];
      p.fillRect(a, top + gap / 2, b - a, bottom - top - gap);
    }
    for (const [{ id, name }, a, b] of isSmall ? [] : named) {
      if (p.measureText(name).width > b - a - type / 2) continue;
      p.fillStyle = cast.ink(id)[1];
      p.fillText(name, a + type / 3, (top + bottom) / 2);
    }
  }

  function endOfRun(lane, q) {
    if (isMeasured(axisNow()) || trace.clock === "virtual") return of()[lane.to[q]];
    return of()[lane.from[q]] + (longRuns.get(lane.from[q]) ?? 0);
  }

  function paintArea(p, s, [top, bottom], gap, fill) {
    const { places, counts, most } = everything, highest = Math.max(1, most[s]);
    const found = new Float64Array(Math.ceil(wide) + 1);
    for (let q = 0; q < places.length; q++) {
      const share = counts[s][q] / highest, a = Math.max(isHead(places[q]) ? side : 0, Math.floor(place(of()[places[q]])));
      const b = q + 1 < places.length ? Math.ceil(place(of()[places[q + 1]])) : wide;
      if (isHead(places[q]) && b <= side) continue;
      for (let c = a; c < b || c === a; c++) found[c] = Math.max(found[c], share);
    }
    p.fillStyle = fill;
    for (let a = 0; a < wide; a++) {
      const tall = found[a] * (bottom - top - gap);
      if (tall > 0) p.fillRect(a, bottom - gap / 2 - tall, 1, tall);
    }
  }

  function paint() {
    const scale = window.devicePixelRatio || 1, size = [canvas.clientWidth, canvas.clientHeight];
    if (!size[0]) return;
    if (!picture || axis !== axisNow() || size[0] !== wide || size[1] !== high) {
      [wide, high] = size;
      [canvas.width, canvas.height] = size.map((each) => Math.round(each * scale));
      paintPicture();
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    if (part) paintWindow(part().map(place));
    const head = playhead();
    if (head !== null) paintHead(place(head));
  }

  function paintWindow([a, b]) {
    const from = Math.min(Math.max(a, side), wide - 3), to = Math.max(Math.min(b, wide), from + 3);
    pen.fillStyle = colors.paper;
    pen.globalAlpha = 0.62;
    pen.fillRect(side, 0, from - side, high);
    pen.fillRect(to, 0, wide - to, high);
    pen.globalAlpha = 1;
    pen.strokeStyle = colors.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(from + 0.75, 0.75, to - from - 1.5, high - 1.5);
  }

  function paintHead(a) {
    const wing = isSmall ? 4 : type * 0.5;
    pen.fillStyle = colors.chosen;
    pen.fillRect(a - (isSmall ? 1 : 1.5), 0, isSmall ? 2 : 3, high);
    pen.beginPath();
    for (const [x, y] of [[a - wing, 0], [a + wing, 0], [a, wing * 1.3]]) pen.lineTo(x, y);
    pen.fill();
  }

  let isHeld = false;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    isHeld = true;
    go(value(event.offsetX));
  });
  canvas.addEventListener("pointermove", (event) => isHeld && go(value(event.offsetX)));
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => isHeld = false);
  return { paint, forget: () => picture = null };
}
