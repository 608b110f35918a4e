"use strict";
// What the other scripts show, as written into the page.
const report = { data: JSON.parse(document.getElementById("page-data").textContent) };
