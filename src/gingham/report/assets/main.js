const names = ["Overview", "Checkerboard", "Clusters", "Cells", "Certificate", "Map", "Items"];
const makers = [overviewPanel, boardPanel, clustersPanel, cellsPanel, certificatePanel, mapPanel, searchPanel];
const tabs = document.getElementById("tabs"), main = document.getElementById("main");
const panels = names.map((name, i) => {
  const key = name.toLowerCase();
  const panel = el("section", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}`, hidden: "" });
  tabs.append(el("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}`, "aria-selected": "false", tabindex: "-1", onclick: () => select(i) }, name));
  main.append(panel); makers[i](panel);
  return panel;
});
function select(chosen) {
  panels.forEach((panel, i) => { panel.hidden = i !== chosen; });
  [...tabs.children].forEach((tab, i) => { tab.setAttribute("aria-selected", String(i === chosen)); tab.tabIndex = i === chosen ? 0 : -1; });
  tabs.children[chosen].scrollIntoView({ block: "nearest", inline: "nearest" });
  say(""); redraw();
}
tabs.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const at = ([...tabs.children].indexOf(document.activeElement) + step + names.length) % names.length;
  select(at); tabs.children[at].focus(); event.preventDefault();
});
addEventListener("keydown", (event) => { if (event.key === "Escape") say(""); });
document.getElementById("subtitle").textContent = sides.map((side) => data.modes[side]).map((mode) => `${mode.n_items.toLocaleString("en")} ${mode.name}`).join(" × ") + `, ${data.label}`;
select(0);
