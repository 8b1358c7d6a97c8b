// Charts as SVG: stacked bars, lines over steps, points with their front.

const kSvg = "http://www.w3.org/2000/svg";

function svgElement(parent, name, attributes, text) {
  const element = parent.appendChild(document.createElementNS(kSvg, name));
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Returns the row of names with their colours, of what is there; a press takes one away or brings it back. */
function legendOf(kinds, onChange) {
  const legend = document.createElement("div");
  legend.className = "legend";
  kinds.forEach((kind, index) => {
    if (kind.used === false) return;
    const button = legend.appendChild(document.createElement("button"));
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const mark = button.appendChild(document.createElement("i"));
    mark.style.background = kind.color;
    button.append(kind.name);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      onChange(index, on);
    });
  });
  return legend;
}

const unitText = (value, unit) => unit === "s" ? durationText(value)
  : unit === "B" ? `${Number((value / 2 ** 30).toPrecision(4))} GiB` : `${Number(value.toPrecision(4))}${unit ? ` ${unit}` : ""}`;

/** Returns round marks from 0 or `least` to `most`. */
function marksOf(least, most, count = 5) {
  const step = 10 ** Math.floor(Math.log10((most - least) / count || 1));
  const wide = [1, 2, 5, 10].map((k) => k * step).find((s) => (most - least) / s <= count) || step;
  const marks = [];
  for (let mark = Math.ceil(least / wide) * wide; mark <= most * (1 + 1e-9); mark += wide) marks.push(mark);
  return marks;
}

function drawBars(parent, block) {
  const shown = block.kinds.map(() => true);
  const holder = document.createElement("div");
  const rowHeight = 20, gutter = 110, right = 90, width = 1000;
  const limit = block.limit || 0;
  const most = Math.max(limit, ...block.bars.map((bar) => bar.values.reduce((a, b) => a + b, 0))) || 1;
  function draw() {
    holder.replaceChildren();
    const height = block.bars.length * rowHeight + 24;
    const svg = svgElement(holder, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    const xOf = (value) => gutter + value / most * (width - gutter - right);
    block.bars.forEach((bar, row) => {
      const y = row * rowHeight;
      svgElement(svg, "text", { x: 0, y: y + 14 }, bar.name);
      let sum = 0;
      bar.values.forEach((value, kind) => {
        if (!shown[kind] || value <= 0) return;
        const rect = svgElement(svg, "rect", { x: xOf(sum), y: y + 2, width: Math.max(0, xOf(sum + value) - xOf(sum)), height: rowHeight - 5, fill: block.kinds[kind].color });
        svgElement(rect, "title", {}, `${bar.name}, ${block.kinds[kind].name}: ${unitText(value, block.unit)}`);
        sum += value;
      });
      svgElement(svg, "text", { x: xOf(sum) + 5, y: y + 14, class: "faint" }, unitText(sum, block.unit));
    });
    if (limit > 0) {
      const x = xOf(limit), bottom = block.bars.length * rowHeight;
      svgElement(svg, "line", { x1: x, x2: x, y1: 0, y2: bottom, stroke: "var(--bad)", "stroke-dasharray": "4 3" });
      svgElement(svg, "text", { x, y: bottom + 16, "text-anchor": "middle", class: "faint" }, `limit ${unitText(limit, block.unit)}`);
    }
  }
  parent.append(legendOf(block.kinds, (index, on) => { shown[index] = on; draw(); }), holder);
  draw();
}

/** Points of several series over two axes; a series of kind "line" is joined. */
function drawPoints(parent, block) {
  const width = 1000, height = 420, left = 90, bottom = 50, top = 12, right = 24;
  const points = block.series.flatMap((series) => series.points);
  if (points.length === 0) return;
  const range = (key) => {
    const values = points.map((point) => point[key]);
    const least = Math.min(...values), most = Math.max(...values), margin = (most - least || Math.abs(most) || 1) * 0.06;
    return [Math.max(0, least - margin), most + margin];
  };
  const [x0, x1] = range("x"), [y0, y1] = range("y");
  const xOf = (x) => left + (x - x0) / (x1 - x0) * (width - left - right);
  const yOf = (y) => height - bottom - (y - y0) / (y1 - y0) * (height - bottom - top);
  const shown = block.series.map(() => true);
  const holder = document.createElement("div");
  function draw() {
    holder.replaceChildren();
    const svg = svgElement(holder, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    for (const mark of marksOf(y0, y1)) {
      svgElement(svg, "line", { x1: left, x2: width - right, y1: yOf(mark), y2: yOf(mark), class: "axis" });
      svgElement(svg, "text", { x: left - 8, y: yOf(mark) + 4, "text-anchor": "end", class: "faint" }, unitText(mark, block.y.unit));
    }
    for (const mark of marksOf(x0, x1)) {
      svgElement(svg, "line", { x1: xOf(mark), x2: xOf(mark), y1: top, y2: height - bottom, class: "axis" });
      svgElement(svg, "text", { x: xOf(mark), y: height - bottom + 18, "text-anchor": "middle", class: "faint" }, unitText(mark, block.x.unit));
    }
    svgElement(svg, "text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, block.x.name);
    svgElement(svg, "text", { x: 14, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${height / 2})` }, block.y.name);
    block.series.forEach((series, index) => {
      if (!shown[index]) return;
      if (series.line && series.points.length > 1) {
        const path = series.points.map((point) => `${xOf(point.x)},${yOf(point.y)}`).join(" ");
        svgElement(svg, "polyline", { points: path, fill: "none", stroke: series.color, "stroke-width": 2 });
      }
      for (const point of series.points) {
        const dot = svgElement(svg, "circle", { cx: xOf(point.x), cy: yOf(point.y), r: 4, fill: series.color });
        svgElement(dot, "title", {}, `${point.label || series.name}\n${block.x.name} ${unitText(point.x, block.x.unit)}, ${block.y.name} ${unitText(point.y, block.y.unit)}`);
      }
    });
  }
  parent.append(legendOf(block.series, (index, on) => { shown[index] = on; draw(); }), holder);
  draw();
}
