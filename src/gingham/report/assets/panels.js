// The other parts: overview, clusters, cells, certificate, map, search.
const fact = (name, value, note) => el("div", { class: "card" }, el("div", { class: "soft" }, name), el("div", { class: "big" }, bdi(value)), note ? el("p", { class: "soft" }, note) : null);
const chip = (side, place) => el("button", { type: "button", class: "chip", onclick: () => openItem(side, place) }, bdi(itemName(side, place)));
const sign = (c) => c.at_least ? "≥" : "≤"; // most guarantees bound a loss from above, some a gain from below
const lossOf = (c) => c.bound === "density" || c.bound === "gain" || c.at_least ? c.loss : `${c.loss} loss`;
function overviewPanel(panel) {
  const cards = el("div", { class: "cards" });
  sides.map((side) => data.modes[side]).forEach((mode) => cards.append(fact(mode.name, number(mode.n_items), `in ${mode.n_clusters} clusters, ${number(mode.effective)} of them in effect`)));
  for (const [name, value] of Object.entries(data.facts)) cards.append(fact(name, typeof value === "number" ? number(value) : String(value)));
  panel.append(cards, ...data.notes.map((note) => el("p", {}, note)));
  if (Object.keys(data.errors).length) panel.append(el("h2", {}, "Error on data the model has not seen"), el("div", { class: "cards" }, Object.entries(data.errors).map(([name, value]) => fact(name, number(value)))));
  if (data.certificates.length) panel.append(el("h2", {}, "What is guaranteed"), el("div", { class: "cards" }, data.certificates.map((c) => fact(`${lossOf(c)} on new data, ${c.predictor}`, `${sign(c)} ${number(c.value)}`, `with ${number(100 * (1 - c.delta))} % confidence, from ${c.n_tuples.toLocaleString("en")} ${c.name}`))));
  if (data.path.length) { const names = Object.keys(data.path[0]); panel.append(el("h2", {}, "Along β"), lines(data.path, names[0], names.slice(1), true)); }
}
function clustersPanel(panel) {
  const bodies = sides.map((side) => {
    const mode = data.modes[side];
    const list = mode.clusters.map((cluster, c) => [cluster, c]).filter(([cluster]) => cluster.mass * mode.n_items >= 0.5).sort((a, b) => b[0].mass - a[0].mass);
    return el("div", { class: "cards" }, list.map(([cluster, c]) => el("article", { class: "card" },
      el("h3", {}, el("span", { class: "dot", style: `background:${hue(c)}` }), " ", bdi(clusterName(side, c))),
      el("div", { class: "bar", "aria-hidden": "true" }, el("i", { style: `width:${100 * cluster.mass}%` })),
      el("p", { class: "soft" }, `${cluster.size.toLocaleString("en")} of ${mode.n_items.toLocaleString("en")}, ${number(100 * cluster.mass, 3)} %`),
      el("ul", { class: "plain" }, cluster.marks.map((mark) => el("li", {}, data.label_names ? "• " : `${mark.difference > 0 ? "▲" : "▼"} `, bdi(label(mark.value)), ` with `, bdi(clusterName(1 - side, mark.cluster)), el("span", { class: "soft" }, data.label_names ? "" : ` (${mark.difference > 0 ? "+" : ""}${number(mark.difference, 3)} against the rest)`)))),
      el("p", {}, cluster.members.map((place) => chip(side, place))))));
  });
  const buttons = sides.map((side) => el("button", { type: "button", "aria-pressed": String(side === 0), onclick: () => choose(side) }, bdi(data.modes[side].name)));
  const choose = (side) => { bodies.forEach((body, i) => { body.hidden = i !== side; body.style.display = i === side ? "" : "none"; }); buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === side))); };
  panel.append(el("div", { class: "tools" }, buttons), ...bodies); choose(0);
}
function cellsPanel(panel) {
  const c = data.cells, tds = [];
  const table = el("table", { class: "cells" }, el("caption", { class: "soft" }, `What each cell ${data.words.answers} (${data.label}); rows ${data.modes[0].name}, columns ${data.modes[1].name}.`),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, ""), c.columns.map((k) => el("th", { scope: "col" }, data.modes[1].cluster_names ? bdi(clusterName(1, k)) : String(k + 1))))),
    el("tbody", {}, c.rows.map((r, i) => el("tr", {}, el("th", { scope: "row" }, bdi(clusterName(0, r))), c.columns.map((k, j) => {
      const text = `${clusterName(0, r)} × ${clusterName(1, k)}\n${data.words.answers} ${label(c.answer[i][j])}, ${data.words.mean} ${data.label_names ? label(c.mean[i][j]) : number(c.mean[i][j], 3)}\n${number(c.count[i][j], 3)} ${data.words.tuples}`;
      const td = el("td", { tabindex: "0", "aria-label": text, onmousemove: (event) => say(text, event.clientX, event.clientY), onmouseleave: () => say(""), onfocus: (event) => { const box = event.target.getBoundingClientRect(); say(text, box.right, box.top); }, onblur: () => say("") }, label(c.answer[i][j]));
      tds.push([td, scaled(c.answer[i][j])]); return td;
    })))));
  const draw = () => tds.forEach(([td, t]) => { const rgb = colour(t); td.style.background = `rgb(${rgb})`; td.style.color = rgb[0] * 0.3 + rgb[1] * 0.6 + rgb[2] * 0.1 > 130 ? "#22303c" : "#ffffff"; });
  redraws.push(draw); draw(); panel.append(el("div", { class: "scroll" }, table));
}
function certificatePanel(panel) {
  if (!data.certificates.length) panel.append(el("p", {}, "No certificate was made for this report."));
  if (data.refusal) panel.append(el("p", {}, data.refusal));
  const failing = data.certificates.reduce((sum, c) => sum + c.delta, 0);
  if (data.certificates.length > 1) panel.append(el("p", {}, `All ${data.certificates.length} hold together with ${number(100 * (1 - failing))} % confidence: each has its share of what may fail.`));
  for (const c of data.certificates) {
    panel.append(el("h2", {}, `From the ${c.name}`), el("p", { class: "big" }, `${lossOf(c)} ${sign(c)} ${number(c.value)}`),
      el("p", {}, `With ${number(100 * (1 - c.delta))} % confidence the average ${lossOf(c)} on new data is at ${c.at_least ? "least" : "most"} ${number(c.value)}; on the ${c.n_tuples.toLocaleString("en")} observed ${c.unit || "tuples"} it is ${number(c.empirical)}${c.worst === null || c.worst === undefined ? "" : `, and the worst possible is ${number(c.worst)}`}.`),
      Object.keys(c.terms).length ? waterfall(c) : "", el("h3", {}, "It rests on"), el("ul", {}, c.assumptions.map((a) => el("li", {}, el("strong", {}, a.status + ": "), bdi(a.text)))));
    if (c.others && c.others.length > 1) panel.append(el("h3", {}, "The same evidence under other theorems"), el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, c.others.map((o) => el("tr", {}, el("td", {}, o.bound), el("td", {}, number(o.value))))))));
    panel.append(el("details", {}, el("summary", {}, "In full"), el("pre", {}, c.explanation)));
  }
}
function mapPanel(panel) {
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": `Map of ${data.modes.map((m) => m.name).join(" and ")}` }), stage = el("div", { class: "stage" }, canvas);
  panel.append(el("p", { class: "soft" }, data.same ? `Two of ${data.modes[0].name} that the model joins strongly lie in the same direction. Colours are clusters.` : `Items of both sides on one map: a ${data.modes[0].name} (circle) and the ${data.modes[1].name} (square) it gets high answers from lie in the same direction. Colours are clusters.`), stage);
  const points = sides.flatMap((side) => data.modes[side].items.x.map((x, i) => [x, data.modes[side].items.y[i], side, i]).filter((p) => p[0] !== null)
    .sort((a, b) => data.modes[side].items.count[b[3]] - data.modes[side].items.count[a[3]]).slice(0, data.max_points));
  const span = [0, 1].map((axis) => [0, 1].map((side) => { const v = points.filter((p) => p[2] === side).map((p) => Math.abs(p[axis])).sort((a, b) => a - b); return v[Math.floor(v.length * 0.99)] || 1; }));
  let places = [];
  const draw = () => {
    if (!stage.clientWidth) return;
    const ratio = devicePixelRatio || 1, width = stage.clientWidth, height = Math.min(innerHeight * 0.7, width * 0.7);
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
    const context = canvas.getContext("2d"); context.scale(ratio, ratio); context.strokeStyle = css("--line");
    context.beginPath(); context.moveTo(width / 2, 0); context.lineTo(width / 2, height); context.moveTo(0, height / 2); context.lineTo(width, height / 2); context.stroke();
    places = points.map(([x, y, side, i]) => [width / 2 + Math.max(-1, Math.min(1, x / span[0][side])) * (width / 2 - 14), height / 2 - Math.max(-1, Math.min(1, y / span[1][side])) * (height / 2 - 14), side, i]);
    for (const [x, y, side, i] of places) {
      context.fillStyle = hue(data.modes[side].items.clusters[i][0]); context.globalAlpha = 0.7;
      if (side) context.fillRect(x - 3.5, y - 3.5, 7, 7); else { context.beginPath(); context.arc(x, y, 4, 0, 7); context.fill(); }
    }
    context.globalAlpha = 1;
  };
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, distance = 14;
    for (const p of places) { const d = Math.hypot(p[0] - x, p[1] - y); if (d < distance) { distance = d; best = p; } }
    return best;
  };
  canvas.addEventListener("pointermove", (event) => { const p = nearest(event); say(p ? `${data.modes[p[2]].name}: ${itemName(p[2], p[3])}\n${clusterName(p[2], data.modes[p[2]].items.clusters[p[3]][0])}` : "", event.clientX, event.clientY); });
  canvas.addEventListener("pointerleave", () => say(""));
  canvas.addEventListener("click", (event) => { const p = nearest(event); if (p) openItem(p[2], p[3]); });
  redraws.push(draw);
}
let openItem = () => {};
function searchPanel(panel) {
  const input = el("input", { type: "search", id: "query", placeholder: "Part of a name", autocomplete: "off", "aria-label": "Search for an item by its name" });
  const results = el("ul", { class: "results", id: "results" }), card = el("div", { id: "item" });
  const known = sides.map((side) => data.modes[side]).map((mode) => mode.n_shown < mode.n_items ? `${mode.n_shown.toLocaleString("en")} of ${mode.n_items.toLocaleString("en")} ${mode.name} (those with the most data)` : `all ${mode.n_items.toLocaleString("en")} ${mode.name}`).join(" and ");
  panel.append(el("div", { class: "tools" }, input), el("p", { class: "soft" }, `Searches ${known}.`), results, card);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase(); results.replaceChildren();
    if (!wanted) return;
    const found = [];
    sides.forEach((side) => data.modes[side].items.names.forEach((name, place) => { const at = name.toLowerCase().indexOf(wanted); if (at >= 0) found.push([at + name.length / 1000, side, place]); }));
    found.sort((a, b) => a[0] - b[0]).slice(0, 20).forEach(([, side, place]) => results.append(el("li", {}, el("button", { type: "button", class: "chip", onclick: () => openItem(side, place) }, `${data.modes[side].name}: `, bdi(itemName(side, place))))));
    if (!found.length) results.append(el("li", { class: "soft" }, "No item has that in its name."));
  });
  openItem = (side, place) => {
    const mode = data.modes[side], items = mode.items, other = data.modes[1 - side];
    const used = data.cells[side === 0 ? "columns" : "rows"];
    card.replaceChildren(el("div", { class: "cards" },
      el("div", { class: "card wide" }, el("h3", { class: "big" }, bdi(items.names[place])), el("p", { class: "soft" }, bdi(mode.name), `, ${number(items.count[place])} ${data.words.counted}, ${data.words.mean} ${label(items.mean[place])}`)),
      el("div", { class: "card" }, el("h3", {}, "Belongs to"), items.clusters[place].map((c, k) => items.shares[place][k] >= 0.005 ? el("div", {}, bdi(clusterName(side, c)), ` ${number(100 * items.shares[place][k], 3)} %`, el("div", { class: "bar" }, el("i", { style: `width:${100 * items.shares[place][k]}%;background:${hue(c)}` }))) : null)),
      el("div", { class: "card" }, el("h3", {}, "Most alike"), items.near[place].map((p) => chip(side, p))),
      el("div", { class: "card" }, el("h3", {}, data.words.best), items.best[place].length ? el("ul", { class: "plain" }, items.best[place].map(([p, v, share]) => el("li", {}, chip(1 - side, p), " ", bdi(label(v)), share === undefined ? "" : ` (${number(100 * share, 3)} %)`))) : el("p", { class: "soft" }, "Nothing is left to predict.")),
      el("div", { class: "card wide" }, el("h3", {}, `${data.words.profile} by cluster of ${other.name}`), el("div", { class: "columns" }, used.map((c) => el("div", {}, bdi(clusterName(1 - side, c)), " ", bdi(label(items.profile[place][c])), el("div", { class: "bar" }, el("i", { style: `width:${Math.max(0, Math.min(100, 100 * scaled(items.profile[place][c])))}%` }))))))));
    select(names.indexOf("Items")); results.replaceChildren(); scrollTo(0, 0);
  };
}
