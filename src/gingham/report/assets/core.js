"use strict";
// Everything from the data enters the page through textContent or setAttribute: it is shown, never run.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = new Set(["svg", "g", "rect", "line", "path", "text", "circle", "title", "defs", "linearGradient", "stop"]);
function el(tag, attributes, ...children) {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}
const bdi = (text) => el("bdi", {}, text);
const number = (v, digits = 3) => v === null || v === undefined || !Number.isFinite(v) ? "–" : Math.abs(v) >= 10 ** (digits - 1) ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(digits)));
const portion = (v) => v > 0 && v < 0.005 ? "under 1 %" : `${Math.round(100 * v)} %`;
const percent = (v) => v > 0 && v < 0.0001 ? "less than 0.01 %" : v >= 0.0995 || v === 0 ? `${Math.round(100 * v)} %` : `${Number((100 * v).toPrecision(2))} %`;
const whole = (n) => Math.round(n).toLocaleString("en");
const counted = (n, [one, many]) => `${Number.isInteger(n) || n >= 100 ? whole(n) : number(n)} ${n === 1 ? one : many}`;
const flat = (text) => String(text).replace(/\s+/g, " ").trim();
const cutText = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
const words = (side) => [data.sides[side].name, data.sides[side].many];
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The trees: a cut at k groups is k nodes, in the order of the leaves. Groups are numbered from 1 where people look.
data.sides.forEach((side) => {
  side.below = Array.from({ length: side.n_leaves }, (_, leaf) => [leaf]);
  side.merges.forEach(([a, b]) => side.below.push([...side.below[a], ...side.below[b]]));
  side.at = []; side.order.forEach((leaf, place) => { side.at[leaf] = place; });
  side.first = side.below.map((leaves) => Math.min(...leaves.map((leaf) => side.at[leaf])));
  side.places = new Map(side.items.names.map((name, place) => [name, place]).reverse());
  side.cuts = new Map();
  const prefix = `${side.name} `; // "node 17" needs its first word, "node YBR106W" does not
  if (side.clusters.every((group) => group.words.every((word) => word.startsWith(prefix) && /\p{L}/u.test(word.slice(prefix.length))))) {
    const bare = (text) => text.slice(prefix.length);
    side.clusters.forEach((group) => {
      const listed = group.words.join(", ");
      group.words = group.words.map(bare);
      if (listed && group.name.endsWith(listed)) group.name = group.name.slice(0, group.name.length - listed.length) + group.words.join(", ");
      group.typical = group.typical.map(([item, ...rest]) => [item.startsWith(prefix) ? bare(item) : item, ...rest]);
    });
  }
});
function cut(at) {
  const side = data.sides[at], k = state.size[at];
  if (!side.cuts.has(k)) {
    const alive = new Set(side.order);
    side.merges.slice(0, side.n_leaves - k).forEach(([a, b], t) => { alive.delete(a); alive.delete(b); alive.add(side.n_leaves + t); });
    const nodes = [...alive].sort((a, b) => side.first[a] - side.first[b]), of = [];
    nodes.forEach((node, c) => side.below[node].forEach((leaf) => { of[leaf] = c; }));
    side.cuts.set(k, { nodes, of, groups: nodes.map((node) => side.clusters[node]) });
  }
  return side.cuts.get(k);
}
function nameOf(group) { // words that have commas of their own are told apart by semicolons
  const name = flat(group.name), listed = group.words.map(flat).join(", ");
  return listed && group.words.some((word) => word.includes(",")) && name.endsWith(listed) ? name.slice(0, name.length - listed.length) + group.words.map(flat).join("; ") : name;
}
const groupName = (at, c) => nameOf(cut(at).groups[c]);
const groupOf = (at, place) => cut(at).of[data.sides[at].items.leaf[place]];
const itemName = (at, place) => data.sides[at].items.names[place];
const share = (at, c) => cut(at).groups[c].mass / data.sides[at].clusters[data.sides[at].clusters.length - 1].mass;

// What two sides say of each other at the present cuts: sums over leaves, made coarser.
function boardAt(t) {
  const table = data.tables[t], [a, b] = table.sides, rows = cut(a), columns = cut(b), K = table.sums[0][0].length;
  const sums = rows.nodes.map(() => columns.nodes.map(() => new Array(K).fill(0))), means = rows.nodes.map(() => columns.nodes.map(() => 0));
  table.sums.forEach((line, i) => line.forEach((block, j) => block.forEach((v, k) => { sums[rows.of[i]][columns.of[j]][k] += v; })));
  if (table.means) table.means.forEach((line, i) => line.forEach((v, j) => { means[rows.of[i]][columns.of[j]] += v; }));
  const total = (list) => list.reduce((x, y) => x + y, 0);
  const counts = sums.map((line) => line.map((block) => table.measure === "difference" ? block[0] : total(block)));
  const board = { table, rows: rows.groups, columns: columns.groups, sums, counts, measure: table.measure, labels: null };
  if (table.measure === "lift") {
    const r = counts.map(total), c = counts[0].map((_, j) => total(counts.map((line) => line[j]))), all = total(r) || 1;
    const mean = all / (r.length * c.length);
    board.values = counts.map((line, i) => line.map((n, j) => { const e = r[i] * c[j] / all, extra = table.smoothing * e / mean; return e + extra > 0 ? (n + extra) / (e + extra) : 1; }));
  } else if (table.measure === "difference") {
    board.values = sums.map((line) => line.map(([n, s]) => s / (n + table.shrink)));
    board.far = Math.max(...board.values.flat().map(Math.abs), 1e-12);
    if (table.means) {
      board.means = means.map((line, i) => line.map((v, j) => counts[i][j] ? v / counts[i][j] : null));
      board.mean = total(means.map(total)) / (total(counts.map(total)) || 1);
    }
  } else {
    const all = total(counts.map(total)) || 1, overall = table.labels.map((_, k) => total(sums.map((line) => total(line.map((block) => block[k])))) / all);
    const law = sums.map((line, i) => line.map((block, j) => block.map((v, k) => (v + table.shrink * overall[k]) / (counts[i][j] + table.shrink))));
    board.labels = law.map((line) => line.map((shares) => shares.indexOf(Math.max(...shares))));
    board.values = law.map((line) => line.map((shares) => Math.max(...shares)));
  }
  board.plain = Boolean(state.plain && board.means);
  return board;
}
function cellText(board, i, j) {
  const v = board.values[i][j];
  if (board.plain) return number(board.means[i][j]);
  if (board.measure === "labels") return `${cutText(flat(board.table.labels[board.labels[i][j]]), 12)} ${percent(v)}`;
  if (board.measure === "difference") {
    const far = Math.max(board.far, Math.abs(v), 1e-12), digits = far >= 100 ? 0 : Math.max(1, Math.ceil(-Math.log10(far / 2.5))); // as many for all blocks
    const text = digits ? Math.abs(v).toFixed(digits) : Math.round(Math.abs(v)).toLocaleString("en");
    return Number(text.replace(/,/g, "")) === 0 ? "·" : (v > 0 ? "+" : "−") + text;
  }
  const factor = v >= 1 ? v : 1 / Math.max(v, 1e-9);
  return factor < 1.15 ? "·" : v < 1 && factor >= 99.5 ? "÷99+" : (v > 1 ? "×" : "÷") + (factor < 9.95 ? factor.toFixed(1) : Math.round(factor));
}
function cellSentence(board, i, j) {
  const v = board.values[i][j], n = counted(board.counts[i][j], data.nouns);
  if (board.measure === "labels") return `mostly ${flat(board.table.labels[board.labels[i][j]])}, ${percent(v)}; ${n}`;
  if (board.measure === "difference") {
    const mean = board.means ? `; ${number(board.means[i][j])} on average` : "", text = cellText({ ...board, plain: false }, i, j);
    return (text === "·" ? "as the averages say" : `${text.slice(1)} ${v > 0 ? "higher" : "lower"} than the averages say`) + `${mean}; ${n}`;
  }
  const text = cellText(board, i, j);
  return (text === "·" ? "about as often as chance would have it" : v < 1 && v < 1 / 99.5 ? "almost never" : `${text.slice(1)} times as ${v > 1 ? "often as" : "rare as"} chance would have it`) + `; ${n}`;
}

// Colours: blue below, red above what is expected; a label has a colour of its own.
const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const STOPS = { light: ["#5f94bb", "#a9c6dc", "#dbe7ef", "#f6f3ec", "#f5cdb8", "#dd7a5c", "#a33224"], dark: ["#69a9d8", "#41708f", "#2d4354", "#272c31", "#573730", "#a8523c", "#f08a6a"] };
const HUES = { light: ["#c8553d", "#2f6690", "#5f8f3f", "#c98a1b", "#8057a8", "#2b8a82", "#b8447c", "#7d6a55"], dark: ["#f0907a", "#7fb6dc", "#a5cf86", "#f0c060", "#c3a5e4", "#76c9c0", "#ec93c0", "#c6b49e"] };
const theme = () => dark() ? "dark" : "light";
const hue = (c) => HUES[theme()][c % 8];
const mix = (a, b, t) => { const p = (s, i) => parseInt(s.slice(i, i + 2), 16); return `#${[1, 3, 5].map((i) => Math.round(p(a, i) + (p(b, i) - p(a, i)) * t).toString(16).padStart(2, "0")).join("")}`; };
function ramp(t) { // from −1 to 1
  const stops = STOPS[theme()], at = (Math.max(-1, Math.min(1, t)) + 1) / 2 * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at));
  return mix(stops[k], stops[k + 1], at - k);
}
const inkOn = (colour) => { const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)); return r * 0.3 + g * 0.59 + b * 0.11 > 140 ? "#22303c" : "#ffffff"; };
function scaleOf(board) { // how strong each value is, from −1 to 1, and the marks of a legend
  const all = board.values.flat(), far = board.far;
  if (board.plain) {
    const off = Math.max(...board.means.flat().map((v) => v === null ? 0 : Math.abs(v - board.mean)), 1e-12);
    return { of: (i, j) => board.means[i][j] === null ? 0 : (board.means[i][j] - board.mean) / off, marks: [[-1, number(board.mean - off)], [0, `mean ${number(board.mean)}`], [1, number(board.mean + off)]], title: `mean ${data.noun} of a block` };
  }
  if (board.measure === "difference") return { of: (i, j) => board.values[i][j] / far, marks: [[-1, `−${number(far, 2)}`], [0, "as averages say"], [1, `+${number(far, 2)}`]], title: `${data.noun}, compared with the averages` };
  if (board.measure === "labels") return { of: (i, j) => board.values[i][j], marks: [], title: `commonest ${data.noun}` };
  const high = Math.max(Math.log(Math.max(...all)), Math.log(2)), low = Math.log(8);
  return { of: (i, j) => { const v = Math.log(Math.max(board.values[i][j], 1e-9)); return v > 0 ? v / high : v / low; }, marks: [[-1, "÷8"], [0, "as chance"], [1, `×${number(Math.exp(high), 2)}`]], title: "how often, compared with chance" };
}
function cellColour(board, scale, i, j) {
  if (board.measure !== "labels") return ramp(scale.of(i, j));
  const k = board.table.labels.length, strength = Math.max(0, (board.values[i][j] - 1 / k) / (1 - 1 / k || 1));
  return mix(STOPS[theme()][3], hue(board.labels[i][j]), 0.15 + 0.85 * strength);
}

// What is seen as a file.
function save(name, content, type) {
  const link = el("a", { download: name, href: content instanceof Blob ? URL.createObjectURL(content) : URL.createObjectURL(new Blob([content], { type })) });
  document.body.append(link); link.click(); link.remove(); setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const csvCell = (v) => { const text = String(v ?? ""), safe = typeof v !== "number" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text; return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe; };
const saveCsv = (name, rows) => save(`${name}.csv`, "\ufeff" + rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n", "text/csv");
function savePng(name, drawing) { // an svg element or a canvas
  if (drawing instanceof HTMLCanvasElement) { drawing.toBlob((blob) => save(`${name}.png`, blob)); return; }
  const image = new Image(), [, , width, height] = drawing.getAttribute("viewBox").split(" ").map(Number);
  image.onload = () => {
    const canvas = el("canvas", { width: 2 * width, height: 2 * height }), context = canvas.getContext("2d");
    context.fillStyle = css("--paper"); context.fillRect(0, 0, canvas.width, canvas.height); context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${name}.png`, blob));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(drawing));
}

const tip = document.getElementById("tip");
function say(text, x, y) {
  tip.textContent = text; tip.classList.toggle("on", Boolean(text));
  if (!text) return;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(innerWidth - box.width - 8, x + 14))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}
