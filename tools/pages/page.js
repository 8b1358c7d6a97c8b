// Draws the blocks of the page in their order. The data stand in the page, and nothing is asked of a network.

function drawTable(parent, block) {
  const holder = parent.appendChild(document.createElement("div"));
  holder.className = "scroll";
  const table = holder.appendChild(document.createElement("table"));
  const isNumber = block.head.map((_, c) => block.rows.every((row) => row[c] === "" || row[c] === "-" || /^[-+]?[0-9]/.test(row[c])));
  const head = table.appendChild(document.createElement("thead")).insertRow();
  const body = table.appendChild(document.createElement("tbody"));
  let rows = block.rows, sorted = -1, up = true;
  const fill = () => body.replaceChildren(...rows.map((row) => {
    const line = document.createElement("tr");
    row.forEach((cell, c) => {
      const data = line.insertCell();
      data.textContent = cell;
      if (isNumber[c]) data.className = "number";
    });
    return line;
  }));
  const units = { ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  const value = (cell) => (parseFloat(cell) || 0) * (units[cell.split(" ").pop()] || 1);
  block.head.forEach((name, c) => {
    const cell = head.appendChild(document.createElement("th"));
    cell.textContent = name;
    if (isNumber[c]) cell.className = "number";
    cell.addEventListener("click", () => {
      up = sorted === c ? !up : true;
      sorted = c;
      rows = [...rows].sort((a, b) => (isNumber[c] ? value(a[c]) - value(b[c]) : a[c].localeCompare(b[c])) * (up ? 1 : -1));
      fill();
    });
  });
  fill();
}

const longText = 30; // lines; more are shown when asked for

function drawText(parent, block) {
  const lines = block.text.split("\n").length;
  if (lines > longText) {
    parent = parent.appendChild(document.createElement("details"));
    parent.appendChild(document.createElement("summary")).textContent = `${lines} lines`;
  }
  const text = parent.appendChild(document.createElement(block.kind === "command" ? "pre" : "p"));
  text.className = block.kind === "verdict" ? `verdict${block.bad ? " bad" : ""}` : block.kind === "note" ? "note" : "";
  text.textContent = block.text;
}

const drawings = { verdict: drawText, note: drawText, command: drawText, table: drawTable, timeline: drawTimeline, bars: drawBars, points: drawPoints, differences: drawDifferences };

const page = JSON.parse(document.getElementById("data").textContent);
document.title = page.title;
const main = document.body.appendChild(document.createElement("main"));
main.appendChild(document.createElement("h1")).textContent = page.title;
for (const block of page.blocks) {
  const section = main.appendChild(document.createElement("section"));
  if (block.title) section.appendChild(document.createElement("h2")).textContent = block.title;
  drawings[block.kind](section, block);
}
document.body.dataset.ready = "yes";
