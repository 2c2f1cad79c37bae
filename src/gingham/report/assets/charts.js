// Small charts as SVG.
function waterfall(certificate) {
  // Left to right: the observed loss, what the guarantee adds (shared out by its terms), the guarantee.
  const terms = Object.entries(certificate.terms).filter(([, nats]) => nats > 0);
  const total = terms.reduce((sum, [, nats]) => sum + nats, 0) || 1;
  const extra = certificate.value - certificate.empirical;
  const bars = [["observed loss", 0, certificate.empirical, "var(--cool)"]];
  let at = certificate.empirical;
  for (const [name, nats] of terms) { bars.push([name, at, at + extra * nats / total, "var(--accent)", nats]); at += extra * nats / total; }
  bars.push(["guarantee", 0, certificate.value, "var(--ink)"]);
  const narrow = innerWidth < 600, width = narrow ? 390 : 820, left = narrow ? 2 : 230, step = narrow ? 42 : 26, bar = 18; // on a phone names stand above their bars
  const ends = [0, certificate.empirical, certificate.value], low = Math.min(...ends), top = Math.max(...ends, low + 1e-12); // a gain lies below zero
  const x = (v) => left + (v - low) / (top - low) * (width - left - (narrow ? 4 : 180));
  const svg = el("svg", { viewBox: `0 0 ${width} ${bars.length * step + 10}`, style: narrow ? "min-width:0" : "", role: "img", "aria-label": `Waterfall from the observed loss ${number(certificate.empirical)} to the guarantee ${number(certificate.value)}` });
  bars.forEach(([name, from, to, fill, nats], i) => {
    const y = 6 + i * step, amount = nats === undefined ? number(to) : `+${number(to - from, 3)}  (${number(nats, 3)} nats)`;
    const rect = (at) => el("rect", { x: Math.min(x(from), x(to)), y: at, width: Math.max(1, Math.abs(x(to) - x(from))), height: bar, fill, rx: 2 });
    if (narrow) svg.append(el("text", { x: left, y: y + 11 }, name), el("text", { x: width - 2, y: y + 11, "text-anchor": "end", class: "soft" }, amount), rect(y + 16));
    else svg.append(el("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, name), rect(y), el("text", { x: Math.max(x(from), x(to)) + 6, y: y + 14, class: "soft" }, amount));
  });
  return el("div", { class: "scroll" }, svg);
}
function lines(rows, xName, series, logX) {
  const width = 720, height = 320, pad = [20, 120, 40, 60];
  const values = rows.flatMap((row) => series.map((name) => row[name])).filter((v) => typeof v === "number");
  const low = Math.min(...values), high = Math.max(...values), f = logX ? Math.log : (v) => v;
  const xs = rows.map((row) => f(row[xName])), x0 = Math.min(...xs), x1 = Math.max(...xs);
  const px = (v) => pad[3] + (f(v) - x0) / ((x1 - x0) || 1) * (width - pad[1] - pad[3]);
  const py = (v) => height - pad[2] - (v - low) / ((high - low) || 1) * (height - pad[0] - pad[2]);
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${series.join(", ")} against ${xName}` });
  for (const v of [low, (low + high) / 2, high]) svg.append(el("line", { x1: pad[3], x2: width - pad[1], y1: py(v), y2: py(v), class: "axis" }), el("text", { x: pad[3] - 6, y: py(v) + 4, "text-anchor": "end", class: "soft" }, number(v, 3)));
  rows.forEach((row) => svg.append(el("text", { x: px(row[xName]), y: height - 16, "text-anchor": "middle", class: "soft" }, number(row[xName], 3))));
  series.forEach((name, i) => {
    const known = rows.filter((row) => typeof row[name] === "number");
    if (!known.length) return;
    svg.append(el("path", { d: known.map((row, k) => `${k ? "L" : "M"}${px(row[xName])},${py(row[name])}`).join(""), fill: "none", stroke: hue(i), "stroke-width": 2.5 }));
    known.forEach((row) => svg.append(el("circle", { cx: px(row[xName]), cy: py(row[name]), r: 4, fill: hue(i) }, el("title", {}, `${xName} ${number(row[xName])}: ${name} ${number(row[name])}`))));
    const last = known[known.length - 1];
    svg.append(el("text", { x: px(last[xName]) + 8, y: py(last[name]) + 4, style: `fill:${hue(i)}` }, name));
  });
  return el("div", { class: "scroll" }, svg);
}
