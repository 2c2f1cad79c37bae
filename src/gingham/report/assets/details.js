// What lies behind a click: a block, a group, an item, two groups beside each other. Every one has an address.
const drawer = document.getElementById("drawer");
const groupLink = (at, c, text) => el("a", { class: "chip", href: address({ cluster: `${data.sides[at].name}:${c + 1}` }) }, el("b", {}, c + 1), " ", bdi(text || groupName(at, c)));
const itemLink = (at, place, ...more) => el("a", { class: "chip", href: address({ item: `${data.sides[at].name}:${itemKey(at, place)}` }) }, bdi(itemName(at, place)), more);
const itemKey = (at, place) => { const ids = data.sides[at].items.ids; return ids ? ids[place] : itemName(at, place); };
function placeOf(at, key) {
  const items = data.sides[at].items, at2 = items.ids ? items.ids.indexOf(key) : -1;
  return at2 >= 0 ? at2 : data.sides[at].places.get(key);
}
const sideNamed = (name) => data.sides.findIndex((side) => side.name === name);
function named(sides, text, ...more) { // a name of some item: a link where the page knows it
  for (const at of sides) for (const key of [text, text.startsWith(`${data.sides[at].name} `) ? text.slice(data.sides[at].name.length + 1) : text]) {
    const place = data.sides[at].places.get(key);
    if (place !== undefined) return itemLink(at, place, more);
  }
  return el("span", { class: "chip" }, bdi(text), more);
}
const otherSides = (at) => { const t = meeting(at); return [t.sides[0] === at ? t.sides[1] : t.sides[0], at]; };
const meeting = (at) => data.tables[state.table].sides.includes(at) ? data.tables[state.table] : data.tables.find((table) => table.sides.includes(at));
function rowOf(at, c) { // what a group says of the groups of the other side
  const t = data.tables.indexOf(meeting(at)), board = boardAt(t), turned = board.table.sides[0] !== at, other = board.table.sides[turned ? 0 : 1];
  return { board, other, cells: cut(other).groups.map((_, d) => turned ? [d, c] : [c, d]), t };
}
function markText(measure, [, , value]) {
  if (measure === "lift") return value >= 1.05 ? ` ×${number(value, 2)}` : "";
  return measure === "difference" ? ` ${value > 0 ? "+" : "−"}${number(Math.abs(value), 2)}` : "";
}
function aboutGroup(at, c, brief) {
  const group = cut(at).groups[c], measure = meeting(at).measure, others = otherSides(at);
  const against = group.distinctive.filter((mark) => mark[1] < 0), apart = group.distinctive.filter((mark) => mark[1] >= 0);
  return [
    el("p", { class: "soft" }, `${counted(group.size, words(at))}, ${percent(share(at, c))} of all ${data.nouns[1]}`, group.shared ? ". They tell little about the other side: shared by all." : ""),
    group.facts.length ? el("ul", { class: "facts" }, group.facts.map(([text, inside, outside]) => el("li", {}, bdi(text), ` ${portion(inside)}`, el("span", { class: "soft" }, `, else ${portion(outside)}`)))) : null,
    apart.length ? el("div", {}, el("h4", {}, measure === "difference" ? "Higher than elsewhere" : "Sets it apart"), apart.slice(0, brief ? 5 : 8).map((mark) => named(others, mark[0], markText(measure, mark)))) : null,
    against.length ? el("div", {}, el("h4", {}, "Lower than elsewhere"), against.slice(0, brief ? 3 : 8).map((mark) => named(others, mark[0], markText(measure, mark)))) : null,
    group.typical.length ? el("div", {}, el("h4", {}, `Typical ${data.sides[at].many}`), group.typical.slice(0, brief ? 5 : 8).map((mark) => named([at], mark[0]))) : null,
  ];
}
function profileBars(at, c) {
  const { board, other, cells } = rowOf(at, c), scale = scaleOf(board);
  return el("div", { class: "profile" }, cells.map(([i, j], d) => el("a", { href: address({ cell: `${i + 1},${j + 1}`, table: data.tables.indexOf(board.table) }) },
    el("i", { style: `background:${cellColour(board, scale, i, j)}` }), el("b", {}, cellText(board, i, j)), el("span", {}, `${d + 1} `, bdi(groupName(other, d))))));
}
function clusterDetail(value) {
  const [name, c] = splitLast(value), at = sideNamed(name);
  if (at < 0 || !(c >= 0 && c < state.size[at])) return missing(value);
  const side = data.sides[at], node = cut(at).nodes[c], children = node >= side.n_leaves ? side.merges[node - side.n_leaves] : null;
  const k = children ? side.n_leaves - (node - side.n_leaves) : 0; // so many groups until it falls apart
  const members = side.items.leaf.map((_, place) => place).filter((place) => groupOf(at, place) === c);
  const choose = el("select", { "aria-label": "Compare with another group", onchange: (event) => event.target.value && go({ compare: `${side.name}:${c + 1},${event.target.value}` }) },
    el("option", { value: "" }, "Compare with …"), cut(at).groups.map((_, d) => d === c ? null : el("option", { value: d + 1 }, cutText(`${d + 1} ${groupName(at, d)}`, 48))));
  return [`Group ${c + 1} of ${side.many}`, bdi(groupName(at, c)), [
    aboutGroup(at, c),
    el("h4", {}, `With the groups of ${data.sides[otherSides(at)[0]].many}`), profileBars(at, c),
    state.size[at] > 1 ? el("p", {}, choose) : null,
    children ? el("div", {}, el("h4", {}, `It falls apart at ${k} groups`), children.map((child) => el("p", { class: "small" }, "• ", bdi(nameOf(side.clusters[child])), el("span", { class: "soft" }, ` (${whole(side.clusters[child].size)})`))),
      el("button", { type: "button", onclick: () => resize(at, k) }, `Show ${k} groups`)) : null,
    el("h4", {}, `${members.length < cut(at).groups[c].size ? `The ${whole(members.length)} best known of its ` : "All its "}${side.many}`),
    el("div", { class: "members" }, members.slice(0, 60).map((place) => itemLink(at, place)), members.length > 60 ? el("span", { class: "soft" }, ` and ${whole(members.length - 60)} more`) : null),
    el("p", {}, el("button", { type: "button", onclick: () => saveCsv(`${side.name}-group-${c + 1}`, [[side.name, "title", "cluster", "name", "membership"], ...members.map((place) => [itemKey(at, place), itemName(at, place), c + 1, groupName(at, c), side.items.sure[place]])]) }, "Save as CSV")),
  ]];
}
function cellDetail(value) {
  const board = boardAt(state.table), [a, b] = board.table.sides, [i, j] = value.split(",").map((v) => v - 1);
  if (!board.rows[i] || !board.columns[j]) return missing(value);
  const pairs = board.rows[i].size * board.columns[j].size, filled = board.counts[i][j] / Math.max(pairs, 1);
  const sentence = board.measure === "lift" ? `${capital(cellSentence(board, i, j))}${data.noun === "edge" ? `, ${percent(Math.min(1, filled))} of the pairs` : ""}.` : `${capital(cellSentence(board, i, j))}, ${percent(Math.min(1, filled))} of the pairs.`;
  const law = board.labels ? board.sums[i][j].map((n, k) => [n, k]).sort((x, y) => y[0] - x[0]).slice(0, 8) : [], all = board.counts[i][j] || 1;
  return [`Where two groups meet`, cellText(board, i, j) === "·" ? "As expected" : cellText(board, i, j), [
    el("p", {}, sentence), law.length ? bars(law.map(([n, k]) => [flat(board.table.labels[k]), n / all, percent(n / all)])) : null,
    el("h4", {}, `${capital(data.sides[a].many)}`), el("p", {}, groupLink(a, i)), aboutGroup(a, i, true),
    el("h4", {}, `${capital(data.sides[b].many)}`), el("p", {}, groupLink(b, j)), aboutGroup(b, j, true)]];
}
function compareDetail(value) {
  const cutAt = value.lastIndexOf(":"), at = sideNamed(value.slice(0, cutAt)), [c, d] = value.slice(cutAt + 1).split(",").map((v) => v - 1);
  if (at < 0 || !cut(at).groups[c] || !cut(at).groups[d]) return missing(value);
  const one = rowOf(at, c), two = rowOf(at, d), scale = scaleOf(one.board), strength = (cells, e) => scale.of(...cells[e]);
  const order = one.cells.map((_, e) => e).sort((e, f) => Math.abs(strength(two.cells, f) - strength(one.cells, f)) - Math.abs(strength(two.cells, e) - strength(one.cells, e)));
  const swatch = (cells, e) => el("td", { style: `background:${cellColour(one.board, scale, ...cells[e])};color:${inkOn(cellColour(one.board, scale, ...cells[e]))}` }, cellText(one.board, ...cells[e]));
  return [`Two groups of ${data.sides[at].many}`, [bdi(groupName(at, c)), " beside ", bdi(groupName(at, d))], [
    el("h4", {}, "Where they differ most"),
    el("div", { class: "scroll" }, el("table", { class: "compare" }, el("thead", {}, el("tr", {}, el("th", {}, capital(data.sides[one.other].many)), [c, d].map((g) => el("th", {}, `group ${g + 1}`)))),
      el("tbody", {}, order.map((e) => el("tr", {}, el("th", { scope: "row" }, groupLink(one.other, e)), swatch(one.cells, e), swatch(two.cells, e)))))),
    el("div", { class: "beside" }, [c, d].map((g) => el("div", {}, el("h4", {}, groupLink(at, g)), aboutGroup(at, g, true)))),
    el("p", {}, el("button", { type: "button", onclick: () => saveCsv("comparison", [[data.sides[one.other].name, "name", `${data.sides[at].name} ${c + 1}`, `${data.sides[at].name} ${d + 1}`], ...order.map((e) => [e + 1, groupName(one.other, e), cellText(one.board, ...one.cells[e]), cellText(one.board, ...two.cells[e])])]) }, "Save as CSV"))]];
}
function itemDetail(value) {
  const cutAt = data.sides.map((side) => side.name).find((name) => value.startsWith(`${name}:`)), at = sideNamed(cutAt), place = at < 0 ? undefined : placeOf(at, value.slice(cutAt.length + 1));
  if (place === undefined) return missing(value);
  const side = data.sides[at], items = side.items, c = groupOf(at, place), other = otherSides(at)[0], measure = meeting(at).measure;
  const label = (v) => measure === "labels" ? flat(meeting(at).labels[v]) : number(v), mean = items.mean ? (measure === "labels" ? `mostly ${label(items.mean[place])}` : `${label(items.mean[place])} on average`) : null;
  const best = items.best && items.best[place];
  const scored = ([p, v, unsure, k]) => el("li", {}, itemLink(other, p), el("span", { class: "soft" }, k === undefined ? ` ${number(v)}${unsure === null ? "" : ` ± ${number(unsure, 2)}`}` : ` ${label(k)}, ${percent(v)}`));
  return [capital(side.name), bdi(itemName(at, place)), [
    el("p", { class: "soft" }, [items.ids ? `id ${items.ids[place]}` : null, counted(items.mass[place], data.nouns), mean].filter(Boolean).join("; ")),
    el("h4", {}, "Belongs to"), el("p", {}, groupLink(at, c), state.size[at] === data.size[at] && items.sure[place] < 0.995 ? el("span", { class: "soft" }, items.sure[place] < 0.5 ? " on the border of other groups" : ` ${percent(items.sure[place])} sure`) : null),
    profileBars(at, c),
    el("h4", {}, "Most alike"), el("p", {}, items.near[place].map((p) => itemLink(at, p))),
    best ? [el("h4", {}, data.picture ? { lift: data.noun === "edge" ? "Likeliest edges that are not there" : "Expected most of what was not observed", difference: "Highest predictions, not observed yet", labels: "Surest predictions, not observed yet" }[measure] : "Highest predictions"),
      best.length ? el("ol", { class: "best" }, best.map(scored)) : el("p", { class: "soft" }, "Nothing is left to predict.")] : null]];
}
const missing = (value) => ["Not here", cutText(value, 40), [el("p", {}, "This page does not know it at the present size.")]];
const splitLast = (value) => { const at = value.lastIndexOf(":"); return [value.slice(0, at), Number(value.slice(at + 1)) - 1]; };
const bars = (rows) => el("div", { class: "bars" }, rows.map(([name, length, text, own]) => el("div", { class: own ? "own" : "" }, el("span", {}, bdi(name)), el("i", {}, el("i", { style: `width:${Math.max(0.5, 100 * length)}%` })), el("b", {}, text))));
const DETAILS = { cell: cellDetail, cluster: clusterDetail, item: itemDetail, compare: compareDetail };
function showDetail() {
  const kind = Object.keys(DETAILS).find((name) => state[name]);
  const was = document.body.classList.contains("open");
  drawer.hidden = !kind; document.body.classList.toggle("open", Boolean(kind));
  if (was !== Boolean(kind)) redraws.forEach((draw) => draw());
  if (!kind) { drawer.replaceChildren(); return; }
  const [above, heading, body] = DETAILS[kind](state[kind]);
  const key = `${kind}=${state[kind]}`, moved = drawer.dataset.key !== key;
  drawer.dataset.key = key;
  drawer.replaceChildren(el("div", { class: "drawer-head" }, el("p", { class: "soft" }, above), el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => go({}) }, "×")),
    el("h3", { tabindex: -1, id: "detail" }, heading), ...body.flat(3).filter(Boolean), el("p", {}, el("button", { type: "button", onclick: (event) => { copy(location.href, event.target); } }, "Copy the link to this")));
  if (moved) { drawer.scrollTop = 0; document.getElementById("detail").focus({ preventScroll: true }); }
}
function copy(text, button) {
  const was = button.textContent, done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = was; }, 1200); };
  const by = () => { const box = el("textarea", { style: "position:fixed;opacity:0" }); box.value = text; document.body.append(box); box.select(); document.execCommand("copy"); box.remove(); done(); };
  navigator.clipboard ? navigator.clipboard.writeText(text).then(done, by) : by();
}
function searchBox() {
  const input = document.getElementById("query"), results = document.getElementById("results");
  const clear = () => { results.replaceChildren(); input.setAttribute("aria-expanded", "false"); };
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase(); clear();
    if (!wanted) return;
    const found = [];
    data.sides.forEach((side, at) => {
      side.items.names.forEach((name, place) => { const hit = name.toLowerCase().indexOf(wanted); if (hit >= 0) found.push([hit + name.length / 1000, side.name, itemLink(at, place)]); });
      if (side.items.ids) side.items.ids.forEach((id, place) => { if (id.toLowerCase() === wanted) found.push([-1, side.name, itemLink(at, place)]); });
      cut(at).groups.forEach((_, c) => { const hit = groupName(at, c).toLowerCase().indexOf(wanted); if (hit >= 0) found.push([2 + hit, `group of ${side.many}`, groupLink(at, c)]); });
    });
    found.sort((x, y) => x[0] - y[0]).slice(0, 12).forEach(([, kind, link]) => { link.addEventListener("click", () => { input.value = ""; clear(); }); results.append(el("li", {}, el("span", { class: "soft" }, `${kind} `), link)); });
    if (!found.length) results.append(el("li", { class: "soft" }, `Nothing has that in its name${data.sides.some((side) => side.items.names.length < side.n_items) ? " among the items with the most data" : ""}.`));
    input.setAttribute("aria-expanded", "true");
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { input.value = ""; clear(); }
    if (event.key === "Enter" || event.key === "ArrowDown") { const first = results.querySelector("a"); if (first) { event.preventDefault(); if (event.key === "Enter") first.click(); else first.focus(); } }
  });
}
