// The named checkerboard as one drawing: blocks, names, trees, legend.
const pen = document.createElement("canvas").getContext("2d");
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const AFTER_HYPHEN = /(?<=[^\s-]-)(?=[^\s-])/;
function wrap(text, width, size, most, bold = true) {
  pen.font = `${bold ? 600 : 400} ${size}px ${FONT}`;
  const lines = [""];
  const shortened = (word) => { // a word that is wider than its place is cut, not broken
    if (pen.measureText(word).width <= width) return word;
    let n = word.length - 1;
    while (n > 1 && pen.measureText(word.slice(0, n) + "…").width > width) n--;
    return word.slice(0, n) + "…";
  };
  for (const word of flat(text).split(" ")) word.split(AFTER_HYPHEN).forEach((part, k) => {
    const last = lines[lines.length - 1], shown = shortened(part), tried = last ? `${last}${k ? "" : " "}${shown}` : shown;
    if (pen.measureText(tried).width <= width) lines[lines.length - 1] = tried; else lines.push(shown);
  });
  const kept = lines.filter(Boolean).slice(0, most);
  if (lines.filter(Boolean).length > most) {
    let last = kept[most - 1];
    while (last.length > 1 && pen.measureText(last + "…").width > width) last = last.slice(0, last.includes(" ") ? last.lastIndexOf(" ") : -1);
    kept[most - 1] = last.replace(/[\s,]+$/, "") + "…";
  }
  return kept;
}
const goesIn = (text, width, size, bold = false) => { pen.font = `${bold ? 600 : 400} ${size}px ${FONT}`; return pen.measureText(text).width <= width; };
const factTexts = ([text, inside, outside]) => [`${flat(text)} ${portion(inside)}, else ${portion(outside)}`, `${flat(text)} ${portion(inside)}`];
const uncut = (variants, width) => variants.find((text) => goesIn(text, width, 11)); // the longest that stands there uncut, if any
function headLines(group, width, size) { // a word of the name a line, as far as they fit
  const name = flat(group.name), first = name.slice(0, name.length - group.words.map(flat).join(", ").length), words = group.words.length && name.endsWith(group.words.map(flat).join(", ")) ? group.words.map(flat) : [name];
  if (words.length > 1 || words[0] !== name) words[0] = first + words[0];
  for (let n = words.length; n > 0; n--) { // as many words as stand there whole
    const lines = words.slice(0, n).map((word) => wrap(word, width, size, 9));
    if (lines.flat().length <= 6) return lines.flat();
  }
  return wrap(words[0], width, size, 6);
}
const written = (text, x, y, more = {}) => el("text", { x, y, "font-size": 13, "font-family": FONT, fill: css("--ink"), ...more }, text);
function lengths(groups, whole, least) { // sides of boxes grow with the root of what they hold, none too small to be written in
  const roots = groups.map((group) => Math.sqrt(Math.max(group.mass, 1e-12))), all = roots.reduce((a, b) => a + b, 0);
  const sized = roots.map((root) => Math.max(root / all, Math.min(least / whole, 1 / groups.length))), sum = sized.reduce((a, b) => a + b, 0);
  let at = 0;
  return sized.map((part) => { const from = at; at += part / sum * whole; return [from, at]; });
}
function treeLines(at, middles, draw) {
  const side = data.sides[at], k = state.size[at], place = new Map(cut(at).nodes.map((node, i) => [node, [middles[i], 0]]));
  side.merges.slice(side.n_leaves - k).forEach(([a, b], step) => {
    const depth = Math.sqrt((step + 1) / Math.max(k - 1, 1)), [p, low] = place.get(a), [q, other] = place.get(b);
    draw(p, low, p, depth); draw(q, other, q, depth); draw(p, depth, q, depth);
    place.set(side.n_leaves + side.n_leaves - k + step, [(p + q) / 2, depth]);
  });
}
function drawBoard(t, width) {
  const board = boardAt(t), [a, b] = board.table.sides, k1 = board.rows.length, k2 = board.columns.length, scale = scaleOf(board);
  const narrow = width < 620, ink = css("--ink"), soft = css("--soft");
  const left = narrow ? 0 : Math.min(290, Math.max(170, width * 0.27)), right = narrow ? 4 : 48, wide = width - left - right;
  const columns = lengths(board.columns, wide, Math.min(76, wide / k2)), colWidth = Math.min(...columns.map(([p, q]) => q - p));
  const turned = !narrow && colWidth < 70, size = (at, c) => counted(cut(at).groups[c].size, words(at));
  const inHead = columns.map(([p, q]) => q - p - 6), headSize = [12.5, 11.5, 10.5].find((px) => px === 10.5 || board.columns.every((group, j) => flat(group.name).split(/[\s,;]+/).flatMap((word) => word.split(AFTER_HYPHEN)).every((word) => goesIn(word, inHead[j], px, true)))); // smaller letters before cut words
  const heads = board.columns.map((group, j) => narrow ? [] : turned ? [wrap(`${j + 1} ${groupName(b, j)}`, Math.min(150, (width - left - (columns[j][0] + columns[j][1]) / 2 - 12) / 0.62), 11.5, 1)[0]] : headLines(group, inHead[j], headSize));
  const headFacts = board.columns.map((group, j) => turned || narrow ? [] : group.facts.map((fact) => uncut(factTexts(fact), inHead[j])).filter(Boolean).slice(0, 2));
  const factLines = Math.max(...headFacts.map((lines) => lines.length));
  const top = narrow ? 32 : turned ? (colWidth < 13 ? 24 : 140) : 22 + 15 * Math.max(...heads.map((lines) => lines.length)) + 16 + 13 * factLines;
  const named = narrow ? board.rows.map((group, i) => wrap(`${i + 1}  ${groupName(a, i)}`, width - 8, 12.5, 2)) : null;
  const rowLeast = narrow ? 44 : k1 > 14 ? 20 : k1 > 9 ? 40 : k1 > 5 ? 54 : 82, high = narrow ? 0 : Math.max(rowLeast * k1, Math.min(430, Math.max(230, 104 * k1)));
  let y = top;
  const rows = narrow
    ? board.rows.map((_, i) => { y += 17 * named[i].length + 6; const from = y; y += rowLeast; return [from, y]; })
    : lengths(board.rows, high, rowLeast).map(([p, q]) => [top + p, top + q]);
  const foot = rows[k1 - 1][1], tree = !narrow && k2 > 1 && a !== b ? 34 : 6, legend = board.measure === "labels" ? 46 : 52, height = foot + tree + legend + 10;
  const svg = el("svg", { viewBox: `0 0 ${width} ${Math.ceil(height)}`, width, height: Math.ceil(height), role: "grid", "aria-label": `${data.sides[a].many} in ${k1} groups by ${data.sides[b].many} in ${k2} groups` });
  if (!narrow) {
    svg.append(written(`${data.sides[b].many} →`, left - 12, top - 30, { "text-anchor": "end", "font-size": 12, fill: css("--accent") }), written(`${data.sides[a].many} ↓`, left - 12, top - 10, { "text-anchor": "end", "font-size": 12, fill: css("--accent") }));
  } else svg.append(written(`${data.sides[a].many} ↓   ${data.sides[b].many} →`, 0, 12, { "font-size": 11.5, fill: css("--accent") }));
  const spot = (i, j, label, link, ...inside) => {
    const node = el("g", { role: j < 0 || i < 0 ? (i < 0 ? "columnheader" : "rowheader") : "gridcell", class: "spot", tabindex: -1, "data-i": i, "data-j": j, "aria-label": label, onclick: () => go(link), onpointermove: (event) => say(label, event.clientX, event.clientY), onpointerleave: () => say("") }, inside);
    svg.append(node);
  };
  board.columns.forEach((group, j) => {
    const [p, q] = columns[j], x = left + (p + q) / 2, label = `Group ${j + 1} of ${data.sides[b].many}: ${groupName(b, j)}. ${size(b, j)}, ${percent(share(b, j))} of all ${data.nouns[1]}.`, quiet = group.shared ? soft : ink;
    const inside = narrow ? [el("rect", { x: left + p, y: 18, width: q - p, height: top - 18, fill: "transparent" }), written(j + 1, x, top - 4, { "text-anchor": "middle", "font-weight": 600, "font-size": 12.5 })]
      : turned ? [el("rect", { x: left + p, y: 0, width: q - p, height: top, fill: "transparent" }), colWidth < 13 ? null : written(heads[j][0], 0, 0, { transform: `translate(${x + 4} ${top - 8}) rotate(-52)`, "font-size": 11.5, fill: quiet, "font-weight": 600 })]
        : [el("rect", { x: left + p, y: 0, width: q - p, height: top - 4, fill: "transparent" }), ...heads[j].map((line, n) => written(line, x, top - 30 - 13 * factLines - 15 * (heads[j].length - 1 - n), { "text-anchor": "middle", "font-size": headSize, "font-weight": 600, fill: quiet })),
          ...[uncut([size(b, j), group.size.toLocaleString("en")], inHead[j]) || "", ...headFacts[j]].map((line, n) => written(line, x, top - 12 - 13 * (factLines - n), { "text-anchor": "middle", "font-size": 11, fill: soft }))];
    spot(-1, j, label, { cluster: `${data.sides[b].name}:${j + 1}` }, ...inside.filter(Boolean));
  });
  board.rows.forEach((group, i) => {
    const [p, q] = rows[i], middle = (p + q) / 2, room = q - p, label = `Group ${i + 1} of ${data.sides[a].many}: ${groupName(a, i)}. ${size(a, i)}, ${percent(share(a, i))} of all ${data.nouns[1]}.`, quiet = group.shared ? soft : ink;
    let inside;
    if (narrow) inside = [el("rect", { x: 0, y: p - 17 * named[i].length - 4, width, height: 17 * named[i].length + 2, fill: "transparent" }), ...named[i].map((line, n) => written(line, 0, p - 6 - 17 * (named[i].length - 1 - n), { "font-size": 12.5, "font-weight": 600, fill: quiet }))];
    else if (room < 30) inside = [el("rect", { x: 0, y: p, width: left - 6, height: room, fill: "transparent" }), written(wrap(`${i + 1} ${groupName(a, i)}`, left - 20, 11.5, 1)[0], left - 12, middle + 4, { "text-anchor": "end", "font-size": 11.5, "font-weight": 600, fill: quiet })];
    else {
      const lines = wrap(groupName(a, i), left - 24, 13.5, room < 44 ? 1 : room < 82 ? 2 : 3), notes = [size(a, i)], room2 = Math.floor((room - 16 * lines.length - 4) / 14);
      if (group.against.length && room2 > 1) notes.unshift(`− ${group.against.map(flat).join(", ")}`);
      const told = group.facts.map(factTexts);
      notes.push(...told.map((texts) => uncut(texts, left - 24)).filter(Boolean).slice(0, Math.max(0, room2 - notes.length)));
      if (room2 < 2 && told.length) notes[notes.length - 1] = uncut([...told[0].map((text) => `${size(a, i)} · ${text}`), size(a, i)], left - 24) || size(a, i);
      const all = notes.slice(0, Math.max(1, room2)), whole = 16 * lines.length + 14 * all.length, from = middle - whole / 2 + 12;
      inside = [el("rect", { x: 0, y: p, width: left - 6, height: room, fill: "transparent" }), ...lines.map((line, n) => written(line, left - 12, from + 16 * n, { "text-anchor": "end", "font-size": 13.5, "font-weight": 600, fill: quiet })), ...all.map((line, n) => written(wrap(line, left - 24, 11, 1, false)[0], left - 12, from + 16 * lines.length + 14 * n - 2, { "text-anchor": "end", "font-size": 11, fill: soft }))];
    }
    spot(i, -1, label, { cluster: `${data.sides[a].name}:${i + 1}` }, ...inside);
  });
  rows.forEach(([p, q], i) => columns.forEach(([r, s], j) => {
    const gap = Math.min(2.5, (s - r) * 0.06), fill = cellColour(board, scale, i, j), text = cellText(board, i, j), strong = Math.abs(scale.of(i, j)) > 0.55;
    const fits = s - r > 15 + 4 * text.length && q - p > 14;
    spot(i, j, `${groupName(a, i)} × ${groupName(b, j)}: ${cellSentence(board, i, j)}.`, { cell: `${i + 1},${j + 1}` },
      el("rect", { x: left + r + gap, y: p + gap, width: Math.max(1, s - r - 2 * gap), height: Math.max(1, q - p - 2 * gap), fill, rx: Math.min(3, gap) }),
      fits ? written(text, left + (r + s) / 2, (p + q) / 2 + 4.5, { "text-anchor": "middle", "font-size": s - r < 44 ? 11 : 13, "font-weight": strong ? 650 : 400, fill: text === "·" ? soft : inkOn(fill), "pointer-events": "none" }) : null);
  }));
  if (!narrow) {
    const line = (x1, y1, x2, y2) => svg.append(el("line", { x1, y1, x2, y2, stroke: soft, "stroke-width": 1.3, "stroke-linecap": "round" })), out = left + wide + 6;
    treeLines(a, rows.map(([p, q]) => (p + q) / 2), (p, d, q, e) => line(out + 38 * d, p, out + 38 * e, q));
    if (a !== b) treeLines(b, columns.map(([p, q]) => left + (p + q) / 2), (p, d, q, e) => line(p, foot + 6 + 24 * d, q, foot + 6 + 24 * e));
  }
  drawLegend(svg, board, scale, left, foot + tree + 8, width);
  return { svg, board };
}
function drawLegend(svg, board, scale, left, y, width) {
  const soft = css("--soft"), x = left + 2, wide = Math.min(240, width - left - 20);
  svg.append(written(scale.title, x, y + 10, { "font-size": 11.5, fill: soft }));
  if (board.measure === "labels") {
    let at = x;
    board.table.labels.slice(0, 8).forEach((name, k) => { svg.append(el("rect", { x: at, y: y + 18, width: 12, height: 12, rx: 2, fill: hue(k) }), written(cutText(flat(name), 14), at + 17, y + 28, { "font-size": 11.5 })); pen.font = `11.5px ${FONT}`; at += 32 + pen.measureText(cutText(flat(name), 14)).width; });
    return;
  }
  const id = `ramp${Math.round(width)}`;
  svg.append(el("defs", {}, el("linearGradient", { id }, STOPS[theme()].map((colour, i, all) => el("stop", { offset: i / (all.length - 1), "stop-color": colour })))), el("rect", { x, y: y + 16, width: wide, height: 10, rx: 2, fill: `url(#${id})` }));
  scale.marks.forEach(([v, text]) => svg.append(written(text, x + (v + 1) / 2 * wide, y + 40, { "font-size": 11, fill: soft, "text-anchor": v < 0 ? "start" : v > 0 ? "end" : "middle" })));
}
function boardTable(board, t) { // what is seen, a row a block
  const [a, b] = board.table.sides, [row, column] = [data.sides[a].name, a === b ? `${data.sides[b].name} 2` : data.sides[b].name];
  const value = { lift: "times as often as chance", difference: "compared with the averages", labels: "share" }[board.measure];
  const head = [row, `${row} name`, column, `${column} name`, ...(board.labels ? ["label"] : []), value, ...(board.means ? ["mean"] : []), data.nouns[1]];
  return [head, ...board.rows.flatMap((_, i) => board.columns.map((__, j) => [i + 1, groupName(a, i), j + 1, groupName(b, j), ...(board.labels ? [board.table.labels[board.labels[i][j]]] : []), Number(board.values[i][j].toPrecision(4)), ...(board.means ? [board.means[i][j] === null ? "" : Number(board.means[i][j].toPrecision(4))] : []), Number(board.counts[i][j].toPrecision(6))]))];
}
