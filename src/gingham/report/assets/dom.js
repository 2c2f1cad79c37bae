"use strict";
// Everything from the data enters the page through textContent or setAttribute: it is shown, never run.
const data = JSON.parse(document.getElementById("data").textContent);
function el(tag, attributes, ...children) {
  const svg = ["svg", "rect", "line", "path", "text", "circle", "g", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const number = (v, digits = 4) => v === null || v === undefined ? "–" : Math.abs(v) >= 10000 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(digits)));
const label = (v) => data.label_names && v !== null && v !== undefined ? data.label_names[Math.max(0, Math.min(data.label_names.length - 1, Math.round(v)))] : number(v);
const clusterName = (side, c) => data.modes[side].cluster_names ? data.modes[side].cluster_names[c] : `${data.modes[side].name} ${c + 1}`;
const sides = data.same ? [0] : [0, 1]; // a graph has one kind of item
const itemName = (side, place) => data.modes[side].items.names[place];
const bdi = (text) => el("bdi", {}, text);
const tip = document.getElementById("tip");
function say(text, x, y) {
  tip.textContent = text;
  tip.classList.toggle("on", Boolean(text));
  if (!text) return;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + "px";
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const STOPS = { light: ["#fbf8f2", "#f0c9b4", "#d9775c", "#a8352f", "#45101c"], dark: ["#2b1a1c", "#63262a", "#b0473a", "#e59a72", "#fdf0d8"] };
function colour(t) {
  const stops = STOPS[dark() ? "dark" : "light"], at = Math.max(0, Math.min(0.9999, t)) * (stops.length - 1), k = Math.floor(at);
  const [a, b] = [stops[k], stops[k + 1]].map((s) => [1, 3, 5].map((i) => parseInt(s.slice(i, i + 2), 16)));
  return a.map((v, i) => Math.round(v + (b[i] - v) * (at - k)));
}
const scaled = (v) => (v - data.cells.low) / ((data.cells.high - data.cells.low) || 1);
const plainly = (v) => data.board.logarithmic ? Math.expm1(v) : v;
const gradient = () => `linear-gradient(90deg, ${STOPS[dark() ? "dark" : "light"].join(",")})`;
const HUES = ["#c8553d", "#2f6690", "#6a994e", "#b5838d", "#8f6bb3", "#d99b2b", "#3a9188", "#9a6a4f", "#c06090", "#5f7f3f"];
const hue = (c) => HUES[c % HUES.length];
const redraws = [];
const redraw = () => redraws.forEach((draw) => draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", redraw);
