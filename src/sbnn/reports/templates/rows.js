"use strict";
// Rows that the model did not see: predictions and residuals against anything, one row at a time.
(function () {
  const data = report.data, rows = data.rows, inputs = data.inputs, byId = (id) => document.getElementById(id);
  const upright = byId("rows-y"), across = byId("rows-x"), target = byId("rows-target"), lineBox = byId("row-line");
  if (!upright) return;
  const BARS = 150; // error bars of more rows would be a solid mass
  data.targets.forEach((name, t) => target.append(new Option(name, t)));
  target.parentElement.hidden = data.targets.length < 2;
  across.append(new Option("observed", "observed"), new Option("predicted", "predicted"));
  data.order.forEach((k) => across.append(new Option(inputs[k].name, k)));

  function words(j) {
    const t = Number(target.value), name = data.targets[t], std = rows.std[t][j];
    const shown = data.order.slice(0, 12).map((k) => `${inputs[k].name} = ${charts.text(inputs[k], rows.inputs[k][j])}`);
    return [`${data.place} ${rows.line[j]}`, `${name}: observed ${charts.number(rows.y[t][j])}, predicted ${charts.rounded(rows.mean[t][j], std)} ± ${charts.rounded(std, std)}`,
      `95\u00a0%: ${charts.rounded(rows.lower[t][j], std)} to ${charts.rounded(rows.upper[t][j], std)}`, ...shown, inputs.length > 12 ? "…" : ""].filter(Boolean).join("\n");
  }

  let dots = [];
  function draw() {
    const t = Number(target.value), residual = upright.value === "residual", x = across.value;
    const y = rows.y[t], mean = rows.mean[t], low = rows.lower[t], high = rows.upper[t], n = y.length;
    const place = x === "observed" ? y : x === "predicted" ? mean : rows.inputs[Number(x)];
    const value = residual ? y.map((v, j) => v - mean[j]) : mean;
    const ends = residual ? [low.map((v, j) => y[j] - v), high.map((v, j) => y[j] - v)] : [low, high];
    // Rows that do not fit the rest would squeeze the others together: they are drawn at the edge.
    const far = rows.far[t], few = far.some(Boolean) && !far.every(Boolean), near = (some) => (few ? some.filter((_, j) => !far[j]) : some);
    const bars = n <= BARS && !residual, axis = ["observed", "predicted"].includes(x) ? Object.assign(charts.range(near(place)), { label: `${x} ${data.targets[t]}` }) : charts.axisOf(inputs[Number(x)]);
    const spread = charts.range(bars ? [...near(value), ...near(ends[0]), ...near(ends[1])] : near(value), 0.06);
    if (residual) { const most = Math.max(-spread.min, spread.max); spread.min = -most; spread.max = most; }
    const f = charts.frame(byId("rows"), { x: axis, y: Object.assign(spread, { label: residual ? "observed − predicted" : `predicted ${data.targets[t]}` }), height: 330 });
    if (residual) charts.line(f, [axis.min, axis.max], [0, 0], "guide");
    else if (x === "observed") charts.line(f, [axis.min, axis.max], [axis.min, axis.max], "guide");
    const shift = (j) => (axis.names ? ((rows.line[j] * 0.618034) % 1 - 0.5) * 0.5 : 0); // rows of a category side by side
    const inside = (v, range) => Math.min(Math.max(v, range.min), range.max);
    let atEdge = 0;
    const missed = y.map((v, j) => v < low[j] || v > high[j]);
    if (bars) place.forEach((v, j) => { if (v !== null) charts.bar(f, inside(v + shift(j), axis), inside(ends[0][j], spread), inside(ends[1][j], spread), "error"); });
    dots = place.map((v, j) => {
      if (v === null) return null;
      const across = inside(v + shift(j), axis), up = inside(value[j], spread);
      if (across !== v + shift(j) || up !== value[j]) atEdge += 1;
      return charts.dot(f, across, up, missed[j] ? "missed" : n > BARS ? "dot faint" : "dot", missed[j] ? 3.8 : n > 600 ? 2.2 : 3);
    });
    dots.forEach((dot, j) => { if (dot) dot.dataset.row = j; });
    f.svg.addEventListener("pointermove", (event) => near(f, event));
    f.svg.addEventListener("pointerleave", () => { charts.hideTip(); mark(selected); });
    f.svg.addEventListener("click", (event) => { const j = nearest(f, event); if (j >= 0) choose(j); });
    mark(selected);
    const some = rows.total > n ? ` ${n.toLocaleString("en")} of ${rows.total.toLocaleString("en")} rows are shown.` : "";
    byId("rows-note").textContent = `${missed.filter(Boolean).length} of ${n.toLocaleString("en")} rows, in orange, are outside their 95\u00a0% interval.${some}${atEdge ? ` ${atEdge} far outside ${atEdge > 1 ? "are" : "is"} drawn at the edge.` : ""}${bars ? " Bars: 95\u00a0% intervals." : ""}`;
  }
  function nearest(f, event) {
    const box = f.svg.getBoundingClientRect(), scale = f.svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let best = -1, least = 18 ** 2;
    dots.forEach((dot, j) => {
      if (!dot) return;
      const d = (dot.cx.baseVal.value - x) ** 2 + (dot.cy.baseVal.value - y) ** 2;
      if (d < least) { least = d; best = j; }
    });
    return best;
  }
  function near(f, event) {
    const j = nearest(f, event);
    mark(j >= 0 ? j : selected);
    if (j >= 0) charts.showTip(words(j), event); else charts.hideTip();
  }
  let selected = -1;
  function mark(j) {
    dots.forEach((dot, k) => { if (dot) dot.classList.toggle("on", k === j); });
    if (dots[j]) dots[j].parentElement.append(dots[j]); // in front
  }
  // The chosen row: its values as text and, with a network in the page, as settings of "what if".
  function choose(j) {
    selected = j;
    mark(j);
    lineBox.value = rows.line[j];
    byId("row-text").textContent = words(j);
    byId("row-use").hidden = !whatif;
  }
  byId("row-use").addEventListener("click", () => {
    whatif.set(inputs.map((_, k) => rows.inputs[k][selected]));
    document.getElementById("whatif").scrollIntoView();
  });
  lineBox.addEventListener("input", () => {
    const j = rows.line.indexOf(Number(lineBox.value));
    if (j >= 0) choose(j); else { selected = -1; mark(-1); byId("row-use").hidden = true; byId("row-text").textContent = lineBox.value ? `No such ${data.place} among these rows.` : ""; }
  });
  for (const select of [upright, across, target]) select.addEventListener("change", draw);
  upright.addEventListener("change", () => { if (upright.value === "residual" && across.value === "observed") { across.value = "predicted"; draw(); } });
  byId("rows-csv").addEventListener("click", () => {
    const parts = ["y", "mean", "std", "lower", "upper"], names = ["observed", "mean", "std", "lower", "upper"];
    const header = [data.place, ...inputs.map((i) => i.name), ...data.targets.flatMap((name) => names.map((p) => `${name}_${p}`))];
    const value = (k, j) => { const v = rows.inputs[k][j]; return v === null ? "" : inputs[k].kind === "number" ? v : charts.text(inputs[k], v); };
    charts.download("predictions.csv", header, rows.line.map((line, j) => [line, ...inputs.map((_, k) => value(k, j)), ...data.targets.flatMap((_, t) => parts.map((p) => rows[p][t][j]))]));
  });
  charts.responsive(byId("rows"), draw);
})();

// Partial dependence of every input: mean, band and single rows.
(function () {
  const data = report.data, box = document.getElementById("effects");
  if (!box) return;
  const single = document.getElementById("effects-rows"), own = document.getElementById("effects-own"), target = document.getElementById("effects-target");
  data.targets.forEach((name, t) => target.append(new Option(name, t)));
  target.parentElement.hidden = data.targets.length < 2;
  const panels = data.effects.map(() => { const panel = document.createElement("div"); panel.className = "panel"; box.append(panel); return panel; });

  function draw() {
    const t = Number(target.value), found = data.effects.map((e) => e.targets[t]);
    const rows = (e) => (single.checked ? e.rows.flat() : []);
    const extent = found.map((e) => charts.range([...e.low, ...e.high, ...rows(e)], 0.04));
    const all = charts.range(found.flatMap((e) => [...e.mean, ...rows(e)]));
    // One scale, so that effects can be compared; a band far wider than all of them would flatten the curves, and gets its own.
    const alone = extent.map((r) => own.checked || r.max - r.min > 2 * (all.max - all.min)), shared = extent.filter((_, k) => !alone[k]);
    const common = shared.length ? { min: Math.min(...shared.map((r) => r.min)), max: Math.max(...shared.map((r) => r.max)) } : null;
    data.effects.forEach((effect, k) => {
      const input = data.inputs[effect.input], e = found[k], xs = effect.places;
      const x = charts.axisOf(input);
      const names = charts.namesOf(input);
      if (names) Object.assign(x, { min: -0.6, max: xs.length - 0.4, names: xs.map((v) => names[v]) });
      else Object.assign(x, charts.range(xs, 0.02));
      const at = names ? xs.map((_, j) => j) : xs;
      const f = charts.frame(panels[k], { x, y: Object.assign({ label: data.targets[t] + (alone[k] && !own.checked ? " (own scale)" : "") }, alone[k] ? extent[k] : common), height: 185 });
      if (names) {
        if (single.checked) e.rows.forEach((row) => at.forEach((v, j) => charts.dot(f, v, row[j], "single", 1.6)));
        at.forEach((v, j) => { charts.bar(f, v, e.low[j], e.high[j], "narrow"); charts.dot(f, v, e.mean[j], "dot", 4.5); });
      } else {
        if (single.checked) e.rows.forEach((row) => charts.line(f, at, row, "single"));
        charts.band(f, at, e.low, e.high, "inner");
        charts.line(f, at, e.mean, "curve");
        charts.rug(f, input.marks);
      }
      charts.hover(f, at, (j) => `${input.name} = ${charts.text(input, xs[j])}\naverage ${charts.number(e.mean[j])}\n95\u00a0%: ${charts.number(e.low[j])} to ${charts.number(e.high[j])}`);
    });
  }
  for (const option of [single, own, target]) option.addEventListener("change", draw);
  document.getElementById("effects-csv").addEventListener("click", () => {
    const header = ["input", "value", "target", "mean", "lower", "upper"], rows = [];
    for (const e of data.effects) data.targets.forEach((name, t) => e.places.forEach((v, j) => rows.push(
      [data.inputs[e.input].name, data.inputs[e.input].kind === "number" ? v : charts.text(data.inputs[e.input], v), name, e.targets[t].mean[j], e.targets[t].low[j], e.targets[t].high[j]])));
    charts.download("partial_dependence.csv", header, rows);
  });
  charts.responsive(box, draw);
})();
