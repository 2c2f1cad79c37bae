// The checkerboard: a picture that can be zoomed, moved and read with pointer or keys.
function boardPanel(panel) {
  const b = data.board, [rows, columns] = [b.rows, b.columns];
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": `Checkerboard of ${data.modes[0].name} by ${data.modes[1].name}. Arrow keys move a reading cross, plus and minus zoom, 0 shows all.` });
  const stage = el("div", { class: "stage" }, canvas);
  const buttons = ["reordered", "original"].map((kind) => el("button", { type: "button", "aria-pressed": String(kind === "reordered"), onclick: () => show(kind) }, kind === "reordered" ? "By clusters" : "As it came"));
  const readout = el("p", { id: "readout", class: "soft", "aria-live": "polite" }, "Point at the picture, or focus it and use the arrow keys.");
  const swatch = el("i", {});
  panel.append(el("div", { class: "tools" }, buttons,
    el("button", { type: "button", onclick: () => zoom(1.6), "aria-label": "Zoom in" }, "+"),
    el("button", { type: "button", onclick: () => zoom(1 / 1.6), "aria-label": "Zoom out" }, "−"),
    el("button", { type: "button", onclick: () => { view = null; draw(); } }, "All")), stage,
    el("p", { class: "legend" }, label(plainly(b.low)), swatch, label(plainly(b.high)), el("span", {}, b.holes ? `${data.label}; grey: ${data.words.unseen}.` : data.label)), readout);
  let kind = "reordered", view = null, cross = null, drag = null;
  const source = {}, painted = {};
  const merged = [rows < data.modes[0].n_items, columns < data.modes[1].n_items];
  function load(name) {
    const image = new Image();
    image.onload = () => {
      const canvas2 = el("canvas", { width: columns, height: rows }), context = canvas2.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      const pixels = context.getImageData(0, 0, columns, rows).data, grey = new Uint8Array(rows * columns);
      for (let i = 0; i < grey.length; i++) grey[i] = pixels[4 * i];
      source[name] = grey; draw();
    };
    image.src = b[name];
  }
  function paint(name) {
    const theme = dark() ? "dark" : "light", key = name + theme;
    if (painted[key] || !source[name]) return painted[key];
    const target = el("canvas", { width: columns, height: rows }), context = target.getContext("2d"), image = context.createImageData(columns, rows);
    const unseen = [1, 3, 5].map((i) => parseInt(css("--unseen").slice(i, i + 2), 16)), table = [unseen];
    for (let v = 1; v < 256; v++) table.push(colour((v - 1) / 254));
    source[name].forEach((v, i) => image.data.set([...table[v], 255], 4 * i));
    context.putImageData(image, 0, 0);
    return (painted[key] = target);
  }
  function show(name) { kind = name; buttons.forEach((button, i) => button.setAttribute("aria-pressed", String((i === 0) === (name === "reordered")))); draw(); }
  function clamp() {
    view.w = Math.min(columns, Math.max(Math.min(columns, 6), view.w)); view.h = Math.min(rows, Math.max(Math.min(rows, 6), view.h));
    view.x = Math.max(0, Math.min(columns - view.w, view.x)); view.y = Math.max(0, Math.min(rows - view.h, view.y));
  }
  function zoom(factor, at) {
    view = view || { x: 0, y: 0, w: columns, h: rows };
    const [fx, fy] = at || [0.5, 0.5], cx = view.x + fx * view.w, cy = view.y + fy * view.h;
    view.w /= factor; view.h /= factor; clamp(); view.x = cx - fx * view.w; view.y = cy - fy * view.h; clamp(); draw();
  }
  function draw() {
    if (!stage.clientWidth) return;
    const ratio = devicePixelRatio || 1, width = stage.clientWidth, height = Math.round(Math.min(innerHeight * 0.72, Math.max(260, width * Math.min(1.1, Math.max(0.45, rows / columns)))));
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
    const context = canvas.getContext("2d"), picture = paint(kind), v = view || { x: 0, y: 0, w: columns, h: rows };
    swatch.style.background = gradient();
    if (!picture) return;
    context.imageSmoothingEnabled = v.w * 1.5 > canvas.width;
    context.drawImage(picture, v.x, v.y, v.w, v.h, 0, 0, canvas.width, canvas.height);
    const sx = canvas.width / v.w, sy = canvas.height / v.h;
    context.strokeStyle = css("--ink"); context.globalAlpha = 0.75; context.lineWidth = ratio;
    context.beginPath();
    if (kind === "reordered") {
      for (const bound of b.bounds[0]) { const y = (bound * rows / data.modes[0].n_items - v.y) * sy; if (y > 0 && y < canvas.height) { context.moveTo(0, y); context.lineTo(canvas.width, y); } }
      for (const bound of b.bounds[1]) { const x = (bound * columns / data.modes[1].n_items - v.x) * sx; if (x > 0 && x < canvas.width) { context.moveTo(x, 0); context.lineTo(x, canvas.height); } }
    }
    context.stroke(); context.globalAlpha = 1;
    if (cross) { context.strokeStyle = css("--cool"); context.lineWidth = 2 * ratio; context.strokeRect((cross[1] - v.x) * sx, (cross[0] - v.y) * sy, Math.max(sx, 3), Math.max(sy, 3)); }
  }
  function who(side, pixel, size) {
    const n = data.modes[side].n_items, name = data.modes[side].name, first = Math.floor(pixel * n / size);
    const bounds = b.bounds[side], k = bounds.findIndex((bound) => first < bound), cluster = kind === "reordered" ? b.clusters[side][k] : null;
    if (merged[side]) return { text: `${number(Math.ceil(n / size))} or so of ${name}`, cluster };
    const place = (kind === "reordered" ? b.order : b.plain)[side][pixel];
    const own = place >= 0 ? data.modes[side].items.clusters[place][0] : cluster;
    return { text: place >= 0 ? `${name}: ${itemName(side, place)}` : `one of ${name}`, cluster: own };
  }
  function read(row, column) {
    const r = who(0, row, rows), c = who(1, column, columns), v = source[kind] ? source[kind][row * columns + column] : 0;
    const value = b.low + (v - 1) / 254 * (b.high - b.low), seen = !v || (v === 1 && b.low === 0 && data.words.unseen !== "not observed") ? data.words.unseen : `${data.words.observed} ${label(plainly(value))}`;
    const i = data.cells.rows.indexOf(r.cluster), j = data.cells.columns.indexOf(c.cluster);
    const answer = i >= 0 && j >= 0 ? `cell (${clusterName(0, r.cluster)}, ${clusterName(1, c.cluster)}) ${data.words.answers} ${label(data.cells.answer[i][j])}` : "";
    return [r.text, c.text, [seen, answer].filter(Boolean).join("; ")].join("\n");
  }
  function at(event) {
    const box = canvas.getBoundingClientRect(), v = view || { x: 0, y: 0, w: columns, h: rows };
    const fx = (event.clientX - box.left) / box.width, fy = (event.clientY - box.top) / box.height;
    return { fx, fy, row: Math.max(0, Math.min(rows - 1, Math.floor(v.y + fy * v.h))), column: Math.max(0, Math.min(columns - 1, Math.floor(v.x + fx * v.w))) };
  }
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); drag = event; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => { pointers.delete(event.pointerId); drag = null; });
  canvas.addEventListener("pointercancel", (event) => { pointers.delete(event.pointerId); drag = null; });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    if (pointers.size === 2) {
      const [p, q] = [...pointers.values()], before = Math.hypot(p.clientX - q.clientX, p.clientY - q.clientY);
      pointers.set(event.pointerId, event);
      const [s, t] = [...pointers.values()], after = Math.hypot(s.clientX - t.clientX, s.clientY - t.clientY);
      if (before > 0) zoom(after / before, [((s.clientX + t.clientX) / 2 - box.left) / box.width, ((s.clientY + t.clientY) / 2 - box.top) / box.height]);
      return;
    }
    if (drag && view) {
      view.x -= (event.clientX - drag.clientX) / box.width * view.w; view.y -= (event.clientY - drag.clientY) / box.height * view.h;
      clamp(); drag = event; pointers.set(event.pointerId, event); draw(); return;
    }
    const spot = at(event), text = read(spot.row, spot.column);
    readout.textContent = text.replaceAll("\n", " · "); say(text, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => say(""));
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); const spot = at(event); zoom(event.deltaY < 0 ? 1.25 : 0.8, [spot.fx, spot.fy]); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (moves[event.key]) {
      const v = view || { x: 0, y: 0, w: columns, h: rows }, far = event.shiftKey ? 10 : 1, [dr, dc] = moves[event.key];
      cross = cross || [Math.floor(v.y + v.h / 2), Math.floor(v.x + v.w / 2)];
      cross = [Math.max(0, Math.min(rows - 1, cross[0] + dr * far)), Math.max(0, Math.min(columns - 1, cross[1] + dc * far))];
      if (view) { if (cross[0] < v.y || cross[0] >= v.y + v.h) view.y = cross[0] - v.h / 2; if (cross[1] < v.x || cross[1] >= v.x + v.w) view.x = cross[1] - v.w / 2; clamp(); }
      readout.textContent = read(cross[0], cross[1]).replaceAll("\n", " · "); draw();
    } else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "0") { view = null; draw(); }
    else return;
    event.preventDefault();
  });
  redraws.push(draw); load("reordered"); load("original");
}
