// Where the reader is stands in the address, after the #: every place has a link, and the back button works.
const VIEWS = { found: ["What was found", foundView], groups: ["Groups", groupsView], map: ["Map", mapView], data: ["Data", dataView], how: ["How it was computed", howView] };
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); document.getElementById("main").focus(); });
const KEYS = ["view", "cell", "cluster", "item", "compare", "table", "plain", "side", "size"];
const state = { size: [...data.size], table: 0, view: "found" };
let redraws = [];
function parsed(hash) {
  const found = Object.fromEntries([...new URLSearchParams(hash.replace(/^#/, "")).entries()].filter(([name]) => KEYS.includes(name)));
  const sizes = (found.size || "").split(",").map(Number), whole = sizes.length === data.sides.length && sizes.every((k, i) => Number.isInteger(k) && k >= 1 && k <= data.sides[i].n_leaves);
  return { ...found, size: whole ? sizes : [...data.size], table: data.tables[Number(found.table)] ? Number(found.table) : 0, view: VIEWS[found.view] ? found.view : "found" };
}
function address(changes) { // the view, sizes and table stay; what was open closes
  const next = { view: state.view === "found" ? null : state.view, table: state.table || null, plain: state.plain, side: state.side, size: state.size.some((k, i) => k !== data.size[i]) ? state.size.join(",") : null, ...changes };
  if (next.view === "found") next.view = null;
  const text = KEYS.filter((name) => next[name] !== null && next[name] !== undefined && next[name] !== "").map((name) => `${name}=${encodeURIComponent(next[name])}`).join("&");
  return `#${text.replaceAll("%3A", ":").replaceAll("%2C", ",")}`;
}
const open_ = () => Object.fromEntries(["cell", "cluster", "item", "compare"].filter((name) => state[name]).map((name) => [name, state[name]]));
function go(changes, keep) {
  const next = address(keep ? { ...open_(), ...changes } : changes);
  if (keep) { history.replaceState(null, "", next === "#" ? location.pathname : next); show(); } else if (location.hash === next || (next === "#" && !location.hash)) show(); else location.hash = next;
}
function resize(at, k) {
  const size = [...state.size]; size[at] = Math.max(1, Math.min(data.sides[at].n_leaves, k));
  const stays = state.item ? { item: state.item } : {}; // groups are others at another size
  history.replaceState(null, "", address({ ...stays, size: size.some((v, i) => v !== data.size[i]) ? size.join(",") : null })); show(true);
}
function show(sized) {
  const before = `${state.view} ${state.table} ${state.plain} ${state.side}`;
  for (const name of KEYS) delete state[name];
  Object.assign(state, parsed(location.hash));
  const panel = document.getElementById("panel");
  if (!panel.childElementCount || before !== `${state.view} ${state.table} ${state.plain} ${state.side}`) {
    redraws = []; panel.replaceChildren(); panel.className = `view-${state.view}`; VIEWS[state.view][1](panel);
    [...document.querySelectorAll("#views a")].forEach((link) => link.toggleAttribute("aria-current", link.dataset.view === state.view));
  } else if (sized !== false) redraws.forEach((draw) => draw());
  [...document.querySelectorAll("#views a")].forEach((link) => { link.href = address({ view: link.dataset.view }); });
  say(""); showDetail();
}
document.getElementById("about").textContent = data.data;
document.getElementById("views").append(...Object.entries(VIEWS).map(([key, [name]]) => el("a", { "data-view": key, href: "#" }, name)));
addEventListener("hashchange", () => show());
addEventListener("resize", () => redraws.forEach((draw) => draw()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((draw) => draw()));
addEventListener("keydown", (event) => {
  if (event.key === "Escape") { say(""); if (!drawer.hidden) { const back = [state.cell, state.cluster].find(Boolean); go({}); const spot = document.querySelector(".spot[tabindex='0']"); if (back && spot) spot.focus(); } }
  if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); document.getElementById("query").focus(); }
});
searchBox(); show();
