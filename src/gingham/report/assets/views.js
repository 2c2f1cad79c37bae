// The parts of the page. The first is the first screen.
function foundView(panel) {
  const verdict = el(data.finding ? "p" : "h2", { class: data.finding ? "" : "verdict" }, data.verdict), stage = el("div", { id: "board" });
  const [a, b] = data.tables[state.table].sides, meets = a === b ? [a] : [a, b];
  const switches = [];
  if (data.tables.length > 1) switches.push(el("select", { "aria-label": "Which two sides", onchange: (event) => go({ table: Number(event.target.value) }) }, data.tables.map((table, t) => el("option", { value: t, selected: t === state.table }, table.sides.map((side) => data.sides[side].many).join(" × ")))));
  if (data.tables[state.table].means) switches.push(el("button", { type: "button", "aria-pressed": String(!state.plain), onclick: () => go({ plain: null }, true) }, "Compared with the averages"), el("button", { type: "button", "aria-pressed": String(Boolean(state.plain)), onclick: () => go({ plain: 1 }, true) }, "Plain means"));
  const aside = el("aside", { class: "told", "aria-label": "How well it predicts, what is guaranteed, what to do next" }, predictsCard(), guaranteeCard(), nextCard());
  panel.append(el("div", { class: "first" }, el("div", { class: "main" }, data.finding ? el("h2", { class: "verdict" }, data.finding) : null, verdict, data.distilled ? el("p", {}, data.distilled) : null, data.known ? el("p", {}, data.known) : null, el("p", { class: "soft" }, reads()),
    el("div", { class: "tools" }, meets.map(slider), switches), stage,
    el("div", { class: "tools" }, el("span", { class: "soft" }, "Click a block or a name to look inside. Save what is seen:"),
      el("button", { type: "button", id: "save-png", onclick: () => stage.querySelector("svg") && savePng("checkerboard", stage.querySelector("svg")) }, "Picture (PNG)"),
      el("button", { type: "button", id: "save-csv", onclick: () => saveCsv("checkerboard", boardTable(boardAt(state.table), state.table)) }, "Table (CSV)")),
    el("details", {}, el("summary", {}, "Why this size?"), el("p", {}, capital(data.why)), data.prediction ? el("p", {}, capital(data.prediction)) : null), data.layers.map(layerTable)), aside));
  const draw = () => {
    if (!stage.clientWidth) return;
    if (meets.every((at) => state.size[at] === 1)) stage.replaceChildren(el("p", { class: "empty soft" }, "One group: nothing to show. Move the sliders to look at groups all the same; they tell no more than chance does."));
    else {
      const { svg, board } = drawBoard(state.table, stage.clientWidth), b2 = board.table.sides[1];
      stage.replaceChildren(svg, ...(stage.clientWidth < 620 ? [el("p", { class: "soft" }, `Groups of ${data.sides[b2].many}, from left to right:`), el("ol", { class: "heads" }, board.columns.map((_, j) => el("li", {}, el("a", { href: address({ cluster: `${data.sides[b2].name}:${j + 1}` }) }, bdi(groupName(b2, j))))))] : []));
      gridKeys(svg);
    }
    meets.forEach((at) => { document.getElementById(`count-${at}`).textContent = state.size[at]; document.getElementById(`size-${at}`).value = state.size[at]; });
    const moved = state.size.some((k, i) => k !== data.size[i]);
    verdict.textContent = !data.found || !moved ? data.verdict : `Shown as ${meets.map((at) => `${counted(state.size[at], ["group", "groups"])} of ${data.sides[at].many}`).join(" and ")}.`;
    const back = document.getElementById("as-found"); if (back) back.hidden = !moved;
  };
  redraws.push(draw); draw();
}
function layerTable(layer, at) { // what the distilled checkerboard leaves out
  const most = Math.max(1e-9, ...layer.values.flat().map(Math.abs));
  const digits = Math.min(4, Math.max(0, 1 - Math.floor(Math.log10(most))));
  const shade = (v) => `background:${mix(css("--card"), css(v > 0 ? "--accent" : "--cool"), 0.6 * Math.abs(v) / most)}`;
  return el("section", { class: "layer" }, at ? null : el("p", {}, "The strongest of the layers that the model adds up, with the largest of their clusters:"), el("h3", {}, capital(layer.name)), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}), layer.columns.map((name) => el("th", {}, bdi(name))))),
    el("tbody", {}, layer.values.map((row, i) => el("tr", {}, el("th", {}, bdi(layer.rows[i])), row.map((v) => el("td", { style: shade(v) }, `${v < 0 ? "−" : "+"}${Math.abs(v).toFixed(digits)}`))))))));
}
function reads() {
  const table = data.tables[state.table], [a, b] = table.sides.map((side) => data.sides[side]);
  if (!data.found) return "Groups that were made all the same differ no more than chance makes them.";
  if (table.measure === "lift") return a === b ? "×2 means: joined twice as often as the number of their edges would have it. Groups that join first in the tree are most alike." : `×2 means: ${a.many} of that row meet ${b.many} of that column twice as often as chance would have it. Groups that join first in the trees are most alike.`;
  if (table.measure === "difference") return table.means ? `+0.3 means: 0.3 higher than the averages of the ${a.name} and the ${b.name} say.${cut(table.sides[0]).groups.some((group) => group.name.startsWith("+")) ? " Names with + are what a group is drawn to." : ""}` : "Numbers say how far a block lies above or below the rest.";
  return `Each block shows its commonest ${data.noun} and how common it is there.`;
}
function slider(at) {
  const side = data.sides[at], id = `size-${at}`, set = (k) => resize(at, k);
  const marks = [...new Set([data.size[at], ...data.shares.map(([, size]) => size[at])])].filter((k) => k >= 1 && k <= side.n_leaves);
  return el("div", { class: "slider" }, el("label", { for: id }, `Groups of ${side.many}: `, el("output", { id: `count-${at}`, for: id }, state.size[at])),
    el("div", {}, el("button", { type: "button", "aria-label": `Fewer groups of ${side.many}`, onclick: () => set(state.size[at] - 1) }, "−"),
      el("input", { type: "range", id, min: 1, max: side.n_leaves, value: state.size[at], list: `marks-${at}`, oninput: (event) => set(Number(event.target.value)) }),
      el("datalist", { id: `marks-${at}` }, marks.map((k) => el("option", { value: k }))),
      el("button", { type: "button", "aria-label": `More groups of ${side.many}`, onclick: () => set(state.size[at] + 1) }, "+"),
      at === data.tables[state.table].sides[1] ? el("button", { type: "button", id: "as-found", hidden: true, onclick: () => go({ size: null }, true) }, "As found") : null));
}
function gridKeys(svg) { // one stop of the tab key; arrows move inside, Enter opens
  const spot = (i, j) => svg.querySelector(`[data-i="${i}"][data-j="${j}"]`);
  const first = spot(0, 0) || svg.querySelector(".spot");
  if (first) first.setAttribute("tabindex", 0);
  svg.addEventListener("keydown", (event) => {
    const here = event.target.closest(".spot"), move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!here) return;
    if (event.key === "Enter" || event.key === " ") { here.dispatchEvent(new MouseEvent("click")); event.preventDefault(); return; }
    const next = move && spot(Number(here.dataset.i) + move[0], Number(here.dataset.j) + move[1]);
    if (!move) return;
    event.preventDefault();
    if (next) { here.setAttribute("tabindex", -1); next.setAttribute("tabindex", 0); next.focus(); }
  });
  svg.addEventListener("focusin", (event) => { const box = event.target.getBoundingClientRect(); if (event.target.matches(":focus-visible")) say(event.target.getAttribute("aria-label"), box.left, box.bottom - 10); });
  svg.addEventListener("focusout", () => say(""));
}
function predictsCard() {
  const p = data.predicts;
  if (!p) return el("section", { class: "card" }, el("h2", {}, "How well it predicts"), el("p", { class: "soft" }, "Nothing could be held out to measure it by."));
  return el("section", { class: "card", id: "predicts" }, el("h2", {}, "How well it predicts"), bars(p.bars.map((bar) => [bar.name, bar.length, bar.text, bar.model])), el("p", { class: "small soft" }, p.unit), el("p", { class: p.useful === false ? "warn" : "" }, p.sentence));
}
function guaranteeCard() {
  const g = data.guarantee;
  return el("section", { class: "card", id: "guarantee" }, el("h2", {}, "What is guaranteed"), el("p", {}, g.sentence), el("p", { class: g.better === false ? "warn" : g.better ? "good" : "soft small" }, g.verdict),
    data.certificates.length ? el("p", { class: "small" }, el("a", { href: address({ view: "how" }) }, "What it rests on")) : null);
}
function nextCard() {
  return el("section", { class: "card", id: "next" }, el("h2", {}, "What to do next"), data.next.map(([what, command]) => el("div", { class: "step" }, el("p", { class: "small" }, bdi(what)), el("div", {}, el("code", { title: command }, command), el("button", { type: "button", "aria-label": `Copy: ${what}`, onclick: (event) => copy(command, event.target) }, "Copy")))));
}
function groupsView(panel) {
  const draw = () => panel.replaceChildren(...data.sides.map((side, at) => el("section", {}, el("div", { class: "tools" }, el("h2", {}, `${capital(side.many)} in ${counted(state.size[at], ["group", "groups"])}`),
    el("button", { type: "button", onclick: () => saveCsv(`groups-of-${side.name}`, [["cluster", "name", "items", "share", "distinctive", "typical", "facts"], ...cut(at).groups.map((group, c) => [c + 1, group.name, group.size, Number(share(at, c).toPrecision(3)), group.distinctive.map((m) => (m[1] < 0 ? "− " : "") + m[0]).join("; "), group.typical.map((m) => m[0]).join("; "), group.facts.map(([t, i, o]) => `${t} ${percent(i)}, else ${percent(o)}`).join("; ")])]) }, "Save as CSV")),
    slider(at), el("div", { class: "cards" }, cut(at).groups.map((_, c) => el("article", { class: "card" }, el("h3", {}, el("a", { href: address({ cluster: `${side.name}:${c + 1}` }) }, `${c + 1} `, bdi(groupName(at, c)))), el("div", { class: "bar" }, el("i", { style: `width:${100 * share(at, c)}%` })), aboutGroup(at, c, true)))))));
  draw(); redraws.push(() => { const active = document.activeElement && document.activeElement.id; draw(); if (active) { const again = document.getElementById(active); if (again) again.focus(); } });
}
function mapView(panel) {
  const stage = el("div", { class: "stage" }), legend = el("ul", { class: "map-legend" });
  let at = Math.max(0, sideNamed(state.side || "")), chosen = null, points = [];
  const canvas = el("canvas", { tabindex: 0, role: "img" });
  const buttons = data.sides.map((side, i) => el("button", { type: "button", "aria-pressed": String(i === at), onclick: () => go({ view: "map", side: side.name }) }, capital(side.many)));
  panel.append(el("div", { class: "tools" }, data.sides.length > 1 ? buttons : null, el("button", { type: "button", onclick: () => savePng(`map-of-${data.sides[at].name}`, canvas) }, "Picture (PNG)")),
    el("p", { class: "soft" }, `${capital(data.sides[at].many)} that meet the other side alike lie close together. Click one to see it; click a group to bring it out.`), el("div", { class: "map" }, stage, legend));
  stage.append(canvas);
  const draw = () => {
    if (!stage.clientWidth) return;
    const side = data.sides[at], groups = cut(at).groups, ratio = devicePixelRatio || 1, width = stage.clientWidth, height = Math.round(Math.min(innerHeight * 0.72, Math.max(300, width * 0.68))), many = groups.length > 8;
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = `${height}px`; canvas.setAttribute("aria-label", `Map of ${side.many}: ${groups.map((g) => flat(g.name)).join("; ")}`);
    const context = canvas.getContext("2d"); context.scale(ratio, ratio); context.fillStyle = css("--card"); context.fillRect(0, 0, width, height);
    points = side.items.x.map((x, place) => x === null ? null : [14 + x / 1000 * (width - 28), 14 + (1000 - side.items.y[place]) / 1000 * (height - 28), place, groupOf(at, place)]).filter(Boolean);
    const plain = (c) => chosen === null ? many : c !== chosen; // more groups than colours stay grey, and are told apart by their names
    for (const [x, y, , c] of [...points].sort((p, q) => Number(!plain(p[3])) - Number(!plain(q[3])))) { context.globalAlpha = plain(c) ? 0.35 : 0.75; context.fillStyle = plain(c) ? css("--soft") : hue(many ? 0 : c); context.beginPath(); context.arc(x, y, plain(c) ? 3 : 4, 0, 7); context.fill(); }
    context.globalAlpha = 1; context.textAlign = "center"; context.lineJoin = "round"; context.font = `600 12.5px ${FONT}`;
    const taken = [];
    groups.map((group, c) => [c, points.filter((p) => p[3] === c)]).filter(([, own]) => own.length).sort((p, q) => q[1].length - p[1].length).forEach(([c, own]) => {
      const text = cutText(`${c + 1} ${groupName(at, c)}`, 34), wide = context.measureText(text).width, middle = (axis) => own.map((p) => p[axis]).sort((p, q) => p - q)[own.length >> 1];
      const x = Math.max(wide / 2 + 6, Math.min(width - wide / 2 - 6, middle(0))); let y = Math.max(18, Math.min(height - 10, middle(1)));
      for (let tries = 0; tries < 12 && taken.some(([u, v, w]) => Math.abs(u - x) < (w + wide) / 2 + 4 && Math.abs(v - y) < 16); tries++) y = y + 17 > height - 8 ? 18 : y + 17;
      taken.push([x, y, wide]); context.strokeStyle = css("--card"); context.lineWidth = 4; context.strokeText(text, x, y); context.fillStyle = css("--ink"); context.fillText(text, x, y);
    });
    legend.replaceChildren(...groups.map((group, c) => el("li", {}, el("button", { type: "button", "aria-pressed": String(chosen === c), onclick: () => { chosen = chosen === c ? null : c; draw(); } }, el("span", { class: "dot", style: `background:${many && chosen !== c ? "var(--soft)" : hue(many ? 0 : c)}` }), ` ${c + 1} `, bdi(groupName(at, c)), el("span", { class: "soft" }, ` ${whole(group.size)}`)))));
  };
  const near = (event) => { const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top; let best = null, far = 14; for (const p of points) { const d = Math.hypot(p[0] - x, p[1] - y); if (d < far) { far = d; best = p; } } return best; };
  canvas.addEventListener("pointermove", (event) => { const p = near(event); say(p ? `${itemName(at, p[2])}\ngroup ${p[3] + 1}: ${groupName(at, p[3])}` : "", event.clientX, event.clientY); });
  canvas.addEventListener("pointerleave", () => say(""));
  canvas.addEventListener("click", (event) => { const p = near(event); if (p) go({ item: `${data.sides[at].name}:${itemKey(at, p[2])}` }); });
  redraws.push(draw); draw();
}
function dataView(panel) {
  const p = data.picture, [a, b] = data.tables[0].sides, canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `All ${data.nouns[1]}: ${data.sides[a].many} by ${data.sides[b].many}` }), stage = el("div", { class: "stage" }, canvas);
  if (!p) { panel.append(el("p", {}, "The data were not at hand when this page was written: a model file does not hold them.")); return; }
  let kind = "groups"; const grey = {};
  const buttons = ["groups", "came"].map((name) => el("button", { type: "button", "aria-pressed": String(name === kind), onclick: () => { kind = name; buttons.forEach((x, i) => x.setAttribute("aria-pressed", String(["groups", "came"][i] === name))); draw(); } }, name === "groups" ? "By groups" : "As it came"));
  const read = el("p", { class: "soft", "aria-live": "polite" }, "Point at the picture to read it; click to open the block.");
  const end = (v) => number(p.logarithmic ? Math.expm1(v) : v), key = p.labels ? data.tables[0].labels.slice(0, 8).map((name, k) => [el("i", { style: `background:${hue(k)}` }), bdi(cutText(flat(name), 20))]) : [end(p.low), el("i", { class: "long" }), end(p.high)];
  panel.append(el("div", { class: "tools" }, buttons, el("button", { type: "button", onclick: () => savePng("data", canvas) }, "Picture (PNG)"), el("span", { class: "key soft" }, key, p.holes ? [el("i", { style: "background:var(--unseen)" }), "not observed"] : null)), stage, read);
  for (const name of ["groups", "came"]) {
    const image = new Image();
    image.onload = () => { const c = el("canvas", { width: p.columns, height: p.rows }).getContext("2d", { willReadFrequently: true }); c.drawImage(image, 0, 0); grey[name] = c.getImageData(0, 0, p.columns, p.rows).data; draw(); };
    image.src = p[name];
  }
  const shade = (v) => { // 0: nothing was observed
    if (!v) return css("--unseen");
    return p.labels ? hue(v === 1 && p.high === p.low ? 0 : Math.round(p.low + (v - 1) / 254 * (p.high - p.low))) : p.logarithmic ? mix(dark() ? "#20262c" : "#fbf9f5", dark() ? "#ffd9b8" : "#7c1f1c", Math.sqrt((v - 1) / 254)) : ramp((v - 1) / 127 - 1);
  };
  const ends = (at) => { let sum = 0; return cut(at).groups.map((group) => (sum += group.size) / data.sides[at].n_items); };
  const draw = () => {
    if (!stage.clientWidth || !grey[kind]) return;
    const long = panel.querySelector(".key .long"); if (long) long.style.background = `linear-gradient(90deg, ${[1, 64, 128, 192, 255].map(shade).join(",")})`;
    const ratio = devicePixelRatio || 1, width = stage.clientWidth, height = Math.round(Math.min(innerHeight * 0.75, Math.max(280, width * Math.min(1, Math.max(0.45, p.rows / p.columns)))));
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = `${height}px`;
    const source = el("canvas", { width: p.columns, height: p.rows }), c = source.getContext("2d"), image = c.createImageData(p.columns, p.rows), table = Array.from({ length: 256 }, (_, v) => { const s = shade(v); return [1, 3, 5].map((i) => parseInt(s.slice(i, i + 2), 16)); });
    for (let i = 0; i < p.rows * p.columns; i++) { const rgb = table[grey[kind][4 * i]]; image.data[4 * i] = rgb[0]; image.data[4 * i + 1] = rgb[1]; image.data[4 * i + 2] = rgb[2]; image.data[4 * i + 3] = 255; }
    c.putImageData(image, 0, 0);
    const context = canvas.getContext("2d"); context.imageSmoothingEnabled = p.columns > canvas.width; context.drawImage(source, 0, 0, canvas.width, canvas.height);
    if (kind !== "groups") return;
    context.strokeStyle = css("--ink"); context.lineWidth = ratio; context.beginPath();
    ends(a).slice(0, -1).forEach((y) => { context.moveTo(0, y * canvas.height); context.lineTo(canvas.width, y * canvas.height); });
    ends(b).slice(0, -1).forEach((x) => { context.moveTo(x * canvas.width, 0); context.lineTo(x * canvas.width, canvas.height); }); context.stroke();
  };
  const at = (event) => { const box = canvas.getBoundingClientRect(), fx = Math.min(0.9999, Math.max(0, (event.clientX - box.left) / box.width)), fy = Math.min(0.9999, Math.max(0, (event.clientY - box.top) / box.height)); return [fy, fx, ends(a).findIndex((e) => fy < e), ends(b).findIndex((e) => fx < e)]; };
  canvas.addEventListener("pointermove", (event) => {
    if (!grey[kind]) return;
    const [fy, fx, i, j] = at(event), v = grey[kind][4 * (Math.floor(fy * p.rows) * p.columns + Math.floor(fx * p.columns))], raw = p.low + (v - 1) / 254 * (p.high - p.low);
    const shown = !v ? "not observed" : p.labels ? flat(data.tables[0].labels[Math.round(raw)]) : `${data.noun} ${number(p.logarithmic ? Math.expm1(raw) : raw)}`;
    const text = kind === "groups" ? `${groupName(a, i)} × ${groupName(b, j)}: ${shown}` : capital(shown);
    read.textContent = text; say(text, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => say(""));
  canvas.addEventListener("click", (event) => { const [, , i, j] = at(event); if (kind === "groups") go({ cell: `${i + 1},${j + 1}`, table: 0 }); });
  redraws.push(draw);
}
function howView(panel) {
  const facts = (entries) => el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, entries.map(([name, value]) => el("tr", {}, el("td", {}, bdi(name)), el("td", {}, bdi(typeof value === "number" ? number(value, 4) : String(value))))))));
  const fitted = Object.entries(data.facts), held = Object.entries(data.held_out);
  panel.append(el("p", {}, data.why), data.prediction ? el("p", {}, data.prediction) : "", ...data.notes.map((note) => el("p", {}, note)));
  if (data.curve.length > 1) panel.append(el("h2", {}, "What each size knows about entries it has not seen"), lines(data.curve.map((v) => ({ gain: v })).reverse(), data.rungs.map((size) => size.join(" × ")).reverse()));
  if (data.errors) panel.append(el("h2", {}, capital(data.errors.unit)), facts(data.errors.scores), el("p", {}, capital(data.errors.how) + "."), ...data.errors.others.flatMap(([unit, scores]) => [el("h3", {}, `Another measure: ${unit}`), facts(scores)]));
  if (held.length) panel.append(el("h2", {}, "On rows that were set aside"), facts(held));
  if (fitted.length) panel.append(el("h2", {}, "The fit"), facts(fitted));
  panel.append(el("h2", {}, "Certificates"));
  if (!data.certificates.length) panel.append(el("p", {}, "No certificate was made for this page."));
  if (data.refusal) panel.append(el("p", {}, data.refusal));
  const failing = data.certificates.reduce((sum, c) => sum + c.delta, 0);
  if (data.certificates.length > 1) panel.append(el("p", {}, `All ${data.certificates.length} hold together with ${number(100 * (1 - failing))} % confidence: each has its share of what may fail.`));
  for (const c of data.certificates) panel.append(el("h3", {}, `From the ${c.name}: ${c.measure} ${c.at_least ? "≥" : "≤"} ${number(c.shown, 4)}`),
    el("p", {}, `On the ${whole(c.n_observations)} observed ${c.unit || "observations"} it is ${number(c.observed, 4)}${c.most === null || c.most === undefined ? "" : `; the worst possible is ${number(c.most, 4)}`}${c.without === null || c.without === undefined ? "" : `; without groups ${number(c.without, 4)} is guaranteed`}.`),
    c.strata && c.strata.length ? facts(c.strata.map((part) => [`${part.name}, ${whole(part.n_observations)} tests`, `at most ${number(part.value, 4)}`])) : "",
    Object.keys(c.terms).length ? bars(Object.entries(c.terms).filter(([, nats]) => nats > 0).map(([name, nats], _, all) => [name, nats / Math.max(...all.map((t) => t[1])), `${number(nats)} nats`])) : "",
    el("ul", {}, c.assumptions.map((one) => el("li", {}, el("b", {}, `${one.status}: `), bdi(one.text)))),
    c.others && c.others.length > 1 ? facts(c.others.map((o) => [o.bound, o.value])) : "", el("details", {}, el("summary", {}, "In full"), el("pre", {}, c.explanation)));
}
function lines(rows, names) {
  const series = Object.keys(rows[0]), width = 720, height = 260, values = rows.flatMap((row) => series.map((name) => row[name])).filter((v) => typeof v === "number"), low = Math.min(0, ...values), high = Math.max(...values);
  const px = (i) => 56 + i / Math.max(1, rows.length - 1) * (width - 200), py = (v) => height - 34 - (v - low) / ((high - low) || 1) * (height - 54), every = Math.ceil(rows.length / 9);
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": series.join(", "), class: "chart" });
  for (const v of [low, (low + high) / 2, high]) svg.append(el("line", { x1: 56, x2: width - 144, y1: py(v), y2: py(v), stroke: css("--line") }), written(number(v), 50, py(v) + 4, { "text-anchor": "end", "font-size": 11, fill: css("--soft") }));
  names.forEach((name, i) => { if (i % every === 0 || i === names.length - 1) svg.append(written(name, px(i), height - 12, { "text-anchor": "middle", "font-size": 11, fill: css("--soft") })); });
  series.forEach((name, s) => {
    const known = rows.map((row, i) => [i, row[name]]).filter(([, v]) => typeof v === "number");
    if (!known.length) return;
    svg.append(el("path", { d: known.map(([i, v], n) => `${n ? "L" : "M"}${px(i)},${py(v)}`).join(""), fill: "none", stroke: hue(s), "stroke-width": 2.5 }), written(cutText(name, 22), px(known[known.length - 1][0]) + 8, py(known[known.length - 1][1]) + 4, { "font-size": 11, fill: hue(s) }));
  });
  return el("div", { class: "scroll" }, svg);
}
