"use strict";
// The graph of the network, wide tables, and the table of parameters.
(function () {
  for (const edge of document.querySelectorAll(".edge")) {
    // Otherwise the browser would show its own tooltip as well.
    const title = edge.querySelector("title"), text = title.textContent;
    title.remove();
    edge.dataset.tip = text;
    const show = (event) => { charts.showTip(text, event); edge.classList.add("on"); };
    edge.addEventListener("mousemove", show);
    edge.addEventListener("click", show);
    edge.addEventListener("mouseleave", () => { charts.hideTip(); edge.classList.remove("on"); });
  }
  // A hint above everything that is wider than the window.
  const boxes = Array.from(document.querySelectorAll(".scroll")).map((box) => {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = "wider than the window: scroll sideways →";
    box.before(hint);
    return [box, hint];
  });
  const mark = () => boxes.forEach(([box, hint]) => hint.classList.toggle("on", box.scrollWidth > box.clientWidth + 1));
  addEventListener("resize", mark);
  addEventListener("load", mark);
  mark();
  const table = document.getElementById("table"), body = table.tBodies[0], rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => { const c = row.cells[column]; return "sort" in c.dataset ? Number(c.dataset.sort) : c.textContent; };
    const order = (a, b) => a === b ? 0 : typeof a === "number" ? (a < b ? -1 : 1) : a.localeCompare(b);
    rows.sort((a, b) => (up ? 1 : -1) * order(value(a), value(b)));
    body.append(...rows);
  }));
  const find = document.getElementById("find"), show = document.getElementById("show"), count = document.getElementById("count");
  const filter = () => {
    const text = find.value.toLowerCase();
    let n = 0;
    for (const row of rows) {
      const name = row.cells[0].textContent + " " + row.cells[1].textContent;
      row.hidden = !(name.toLowerCase().includes(text) && (!show.value || row.dataset.state === show.value));
      if (!row.hidden) n += 1;
    }
    count.textContent = n + " of " + rows.length + " parameters";
  };
  find.addEventListener("input", filter);
  show.addEventListener("change", filter);
  filter();
})();
