// Charts as SVG: stacked bars, points and lines over two axes, bars to both sides of 0.

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
  : unit === "B" ? `${Number((value / 2 ** 30).toPrecision(4))} GiB`
  : unit === "%" ? `${Number(Number(value.toPrecision(3)).toFixed(3))} %` : `${Number(value.toPrecision(4))}${unit ? ` ${unit}` : ""}`;

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
  const rowHeight = 20, right = 90, width = 1000;
  const gutter = 20 + 7 * Math.max(...block.bars.map((bar) => bar.name.length));
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
      const text = unitText(sum, block.unit), meets = sum <= limit && xOf(sum) + 10 + 7 * text.length > xOf(limit);
      svgElement(svg, "text", { x: (meets ? xOf(limit) : xOf(sum)) + 5, y: y + 14, class: "faint" }, text);
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

/** Returns round marks of values in a unit, which for bytes are round in GiB. */
function marksIn(unit, least, most) {
  const size = unit === "B" ? 2 ** 30 : 1;
  return marksOf(least / size, most / size).map((mark) => mark * size);
}

/** Returns the places and marks of an axis from `low` to `high` on the screen. */
function axisOf(axis, values, low, high) {
  const named = axis.names && axis.names.length > 0;
  const all = axis.limit > 0 ? [...values, axis.limit] : values;
  const least = Math.min(...all), most = Math.max(...all), margin = (most - least || Math.abs(most) || 1) * 0.06;
  if (axis.log && least > 0) {
    const from = Math.log(least) - 0.2, to = Math.log(most) + 0.2;
    const marks = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) marks.push(10 ** power);
    return { marks: marks.filter((mark) => Math.log(mark) >= from && Math.log(mark) <= to), text: (v) => unitText(v, axis.unit),
      place: (v) => low + (Math.log(v) - from) / (to - from) * (high - low) };
  }
  const distinct = [...new Set(values)];
  const few = distinct.length <= 8 && !(axis.limit > 0) && axis.unit === "" ? distinct : null;  // the marks of a sweep
  const from = named ? least - 0.5 : axis.unit === "B" ? 0 : Math.max(0, least - margin), to = named ? most + 0.5 : most + margin;
  return { marks: named ? axis.names.map((_, i) => i) : few || marksIn(axis.unit, from, to), text: (v) => named ? axis.names[v] : unitText(v, axis.unit),
    place: (v) => low + (v - from) / (to - from) * (high - low) };
}

/** Points of several series over two axes; the pointer or the arrows pick one, whose facts stand below. */
function drawPoints(parent, block) {
  const width = 1000, height = 420, left = 90, bottom = 50, top = 12, right = 24;
  const points = block.series.flatMap((series, index) => series.points.map((point) => ({ ...point, index })));
  if (points.length === 0) return;
  const shown = block.series.map(() => true);
  let x, y;  // the axes of what is shown
  const holder = document.createElement("div");
  holder.tabIndex = 0;
  holder.className = "chart";
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", `${block.y.name} over ${block.x.name}, ${points.length} points; the arrows go through them`);
  const readout = document.createElement("div");
  readout.className = "readout";
  readout.textContent = "the pointer or the arrows tell each point";
  let ring = null, picked = null;
  const visible = () => points.filter((point) => shown[point.index]).sort((a, b) => a.x - b.x || a.y - b.y);

  function pick(point) {
    picked = point;
    if (!point) return;
    ring.setAttribute("cx", x.place(point.x));
    ring.setAttribute("cy", y.place(point.y));
    ring.setAttribute("visibility", "visible");
    readout.textContent = `${block.series[point.index].name}${point.label ? `: ${point.label}` : ""}: ` +
      `${block.x.name} ${x.text(point.x)}, ${block.y.name} ${y.text(point.y)}`;
  }
  function draw() {
    const seen = visible().length > 0 ? visible() : points;
    x = axisOf(block.x, seen.map((point) => point.x), left, width - right);
    y = axisOf(block.y, seen.map((point) => point.y), height - bottom, top);
    holder.replaceChildren();
    const svg = svgElement(holder, "svg", { viewBox: `0 0 ${width} ${height}` });
    for (const mark of y.marks) {
      svgElement(svg, "line", { x1: left, x2: width - right, y1: y.place(mark), y2: y.place(mark), class: "axis" });
      svgElement(svg, "text", { x: left - 8, y: y.place(mark) + 4, "text-anchor": "end", class: "faint" }, y.text(mark));
    }
    for (const mark of x.marks) {
      svgElement(svg, "line", { x1: x.place(mark), x2: x.place(mark), y1: top, y2: height - bottom, class: "axis" });
      svgElement(svg, "text", { x: x.place(mark), y: height - bottom + 18, "text-anchor": "middle", class: "faint" }, x.text(mark));
    }
    svgElement(svg, "text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, block.x.name);
    svgElement(svg, "text", { x: 14, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${height / 2})` }, block.y.name);
    if (block.x.limit > 0) {
      const at = x.place(block.x.limit);
      svgElement(svg, "line", { x1: at, x2: at, y1: top, y2: height - bottom, stroke: "var(--bad)", "stroke-dasharray": "4 3" });
      svgElement(svg, "text", { x: at - 5, y: top + 10, "text-anchor": "end", class: "faint" }, `limit ${x.text(block.x.limit)}`);
    }
    if (block.y.limit > 0) {
      const at = y.place(block.y.limit);
      svgElement(svg, "line", { x1: left, x2: width - right, y1: at, y2: at, stroke: "var(--bad)", "stroke-dasharray": "4 3" });
      svgElement(svg, "text", { x: width - right, y: at - 5, "text-anchor": "end", class: "faint" }, `limit ${y.text(block.y.limit)}`);
    }
    block.series.forEach((series, index) => {
      if (!shown[index]) return;
      if (series.line && series.points.length > 1) {
        const path = series.points.map((point) => `${x.place(point.x)},${y.place(point.y)}`).join(" ");
        svgElement(svg, "polyline", { points: path, fill: "none", stroke: series.color, "stroke-width": 2 });
      }
      if (series.line && series.points.length > 60) return;  // a curve
      for (const point of series.points) svgElement(svg, "circle", { cx: x.place(point.x), cy: y.place(point.y), r: 4, fill: series.color });
    });
    ring = svgElement(svg, "circle", { r: 7, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" });
    if (picked && shown[picked.index]) pick(picked);
  }
  holder.addEventListener("pointermove", (event) => {
    const box = holder.getBoundingClientRect(), scale = width / box.width;
    const at = { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
    let nearest = null, least = 900;  // a square distance of 30
    for (const point of visible()) {
      const distance = (x.place(point.x) - at.x) ** 2 + (y.place(point.y) - at.y) ** 2;
      if (distance < least) { least = distance; nearest = point; }
    }
    pick(nearest);
  });
  holder.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = visible(), at = all.findIndex((point) => picked && point.x === picked.x && point.y === picked.y && point.index === picked.index);
    if (all.length > 0) pick(all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))]);
  });
  parent.append(legendOf(block.series, (index, on) => { shown[index] = on; draw(); }), holder, readout);
  draw();
}

/** Bars to both sides of 0, with their ranges across them. */
function drawDifferences(parent, block) {
  const rowHeight = 20, gutter = 280, right = 330, width = 1000;
  const ends = block.bars.flatMap((bar) => bar.low === null ? [bar.value] : [bar.value, bar.low, bar.high]);
  const least = Math.min(0, ...ends), most = Math.max(0, ...ends), wide = most - least || 1;
  const xOf = (value) => gutter + (value - least) / wide * (width - gutter - right);
  const height = block.bars.length * rowHeight;
  const svg = svgElement(parent, "svg", { viewBox: `0 0 ${width} ${height + 4}`, role: "img" });
  block.bars.forEach((bar, row) => {
    const y = row * rowHeight, middle = y + rowHeight / 2;
    const name = bar.name.length > 38 ? `${bar.name.slice(0, 37)}…` : bar.name;
    svgElement(svgElement(svg, "text", { x: gutter - 8, y: y + 14, "text-anchor": "end" }, name), "title", {}, bar.name);
    const from = Math.min(xOf(0), xOf(bar.value)), to = Math.max(xOf(0), xOf(bar.value));
    svgElement(svg, "rect", { x: from, y: y + 3, width: Math.max(1, to - from), height: rowHeight - 7, fill: bar.value < 0 ? "#4e79a7" : "#f28e2b" });
    if (bar.low !== null) {
      svgElement(svg, "line", { x1: xOf(bar.low), x2: xOf(bar.high), y1: middle - 1, y2: middle - 1, class: "range" });
      for (const end of [bar.low, bar.high]) svgElement(svg, "line", { x1: xOf(end), x2: xOf(end), y1: y + 4, y2: y + rowHeight - 6, class: "range" });
    }
    const sign = bar.value > 0 && least < 0 ? "+" : "";
    const furthest = Math.max(xOf(0), xOf(bar.value), bar.low === null ? 0 : xOf(bar.high));
    const text = svgElement(svg, "text", { x: furthest + 6, y: y + 14 }, `${sign}${unitText(bar.value, block.unit)}`);
    if (bar.label) svgElement(text, "tspan", { class: "faint", dx: 8 }, bar.label);
  });
  svgElement(svg, "line", { x1: xOf(0), x2: xOf(0), y1: 0, y2: height, class: "zero" });
}
