// The timeline of all ranks on a canvas: zoomed by the wheel or + and -, moved by dragging or the arrows.
//
// A rank's slices are sorted by start and do not overlap within a lane, so that the slices in view are found by
// bisection. Where several share a pixel, one of them is drawn, found at a moment within the pixel that differs from
// pixel to pixel: colours and gaps then have their shares of a stretch. Such pixels are gathered in an image with a row
// for each lane, which is stretched over the lanes. The work follows the canvas, not the slices.

function decode(text, Type) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Type(bytes.buffer);
}

/** Returns the first index from `from` on whose value is above `limit`. Steps double, since it is mostly near. */
function firstAbove(values, limit, from) {
  let low = from, step = 1;
  while (low + step <= values.length && values[low + step - 1] <= limit) { low += step; step *= 2; }
  let high = Math.min(values.length, low + step - 1);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle; else low = middle + 1;
  }
  return low;
}

function durationText(seconds) {
  if (seconds === 0) return "0 s";
  for (const [size, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]) {
    if (Math.abs(seconds) >= size) return `${Number((seconds / size).toPrecision(4))} ${unit}`;
  }
  return `${Number((seconds * 1e12).toPrecision(4))} ps`;
}

/** Returns the pixel of an image that has a colour "#rrggbb". */
function pixelOfColor(color) {
  const bytes = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return new Uint32Array(Uint8Array.of(...bytes, 255).buffer)[0];
}

function drawTimeline(parent, block) {
  const lanes = block.lanes.map((lane) => ({
    name: lane.name, start: decode(lane.start, Float64Array), end: decode(lane.end, Float64Array),
    kind: decode(lane.kind, Uint8Array), stage: decode(lane.stage, Uint16Array), microbatch: decode(lane.microbatch, Int32Array),
  }));
  const colors = block.kinds.map((kind) => kind.color);
  const pixelOf = colors.map(pixelOfColor);
  const shown = block.kinds.map(() => true);
  const gutter = 20 + 7 * Math.max(...lanes.map((lane) => lane.name.length)), axis = 20, rowHeight = Math.max(12, Math.min(26, Math.floor(640 / Math.max(1, lanes.length))));
  const height = axis + lanes.length * rowHeight;
  let begin = 0, end = block.end;

  const canvas = parent.appendChild(document.createElement("canvas"));
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `timeline of ${lanes.length} lanes; plus and minus zoom, arrows move, 0 shows all`);
  const readout = parent.appendChild(document.createElement("div"));
  readout.className = "readout";
  readout.textContent = "wheel or + and - zoom, dragging or arrows move, 0 shows all";
  const pen = canvas.getContext("2d"), image = document.createElement("canvas"), imagePen = image.getContext("2d");
  let asked = false, prints = false;
  let width = 0;  // of the canvas; asking for it costs more than a slice
  const xOf = (time) => gutter + (time - begin) / (end - begin) * (width - gutter);
  const timeOf = (x) => begin + (x - gutter) / (width - gutter) * (end - begin);

  /** Returns the moment at which a column of pixels is looked at: multiples of the golden ratio are spread evenly. */
  const momentOf = (column) => timeOf(column + column * 0.6180339887 % 1);

  function drawSlice(lane, i, x, wide, top) {
    const kind = lane.kind[i];
    if (!shown[kind]) return;
    pen.fillStyle = colors[kind];
    pen.fillRect(x, top, wide, rowHeight - 2);
    const label = lane.microbatch[i] >= 0 ? String(lane.microbatch[i]) : "";
    if (label && wide > 7 * label.length + 5) {
      pen.fillStyle = block.kinds[kind].ink;
      pen.fillText(label, x + 3, top + rowHeight / 2, wide - 4);
    }
  }

  /** Draws the slices that are wider than a pixel, and puts the others into the lane's row of pixels. */
  function drawLane(lane, top, pixels) {
    const { start, end: ends } = lane;
    let i = firstAbove(ends, begin, 0), column = gutter;  // columns before this one are drawn
    while (i < start.length && start[i] < end) {
      const x = xOf(Math.max(start[i], begin));
      column = Math.max(column, Math.floor(x));
      const next = firstAbove(ends, timeOf(column + 1), i);
      if (next - i < 2) {
        drawSlice(lane, i, x, Math.max(xOf(Math.min(ends[i], end)) - x, 0.7), top);
        i += 1;
        continue;
      }
      const moment = momentOf(column), met = firstAbove(ends, moment, i);
      if (met < start.length && start[met] <= moment && shown[lane.kind[met]]) pixels[column] = pixelOf[lane.kind[met]];
      column += 1;
      i = next;
    }
  }

  function draw() {
    asked = false;
    const began = performance.now();
    const scale = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const ink = prints ? "#1d2126" : getComputedStyle(document.body).color;  // paper is white, in dark mode too
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = ink;
    for (const time of marksOf(begin, end, 8)) {
      const text = durationText(time);
      pen.fillText(text, Math.min(xOf(time), width - pen.measureText(text).width - 2), 8);
    }
    const columns = new ImageData(Math.max(1, width), lanes.length), pixels = new Uint32Array(columns.data.buffer);
    lanes.forEach((lane, row) => {
      pen.fillStyle = ink;
      pen.fillText(lane.name, 2, axis + (row + 0.5) * rowHeight, gutter - 6);
      drawLane(lane, axis + row * rowHeight, pixels.subarray(row * columns.width, (row + 1) * columns.width));
    });
    image.width = columns.width;
    image.height = lanes.length;
    imagePen.putImageData(columns, 0, 0);
    pen.imageSmoothingEnabled = false;
    lanes.forEach((_, row) => pen.drawImage(image, 0, row, columns.width, 1, 0, axis + row * rowHeight, columns.width, rowHeight - 2));
    canvas.dataset.frameMs = (performance.now() - began).toFixed(2);
    canvas.dataset.begin = begin;
    canvas.dataset.end = end;
  }
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };

  function show(from, to) {
    const least = block.end * 1e-9, wanted = Math.max(least, Math.min(to - from, block.end));
    begin = Math.max(0, Math.min(from, block.end - wanted));
    end = begin + wanted;
    redraw();
  }
  const zoom = (factor, at) => show(at - (at - begin) * factor, at + (end - at) * factor);
  const move = (share) => show(begin + share * (end - begin), end + share * (end - begin));

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeOf(event.offsetX));
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = event.offsetX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (held !== null) {
      move((held - event.offsetX) / (width - gutter));
      held = event.offsetX;
      return;
    }
    const lane = lanes[Math.floor((event.offsetY - axis) / rowHeight)];
    const time = timeOf(event.offsetX);
    const i = lane && time >= 0 ? firstAbove(lane.end, time, 0) : -1;
    if (i < 0 || i >= lane.start.length || lane.start[i] > time) { readout.textContent = ""; return; }
    const microbatch = lane.microbatch[i] < 0 ? "" : `, micro-batch ${lane.microbatch[i]}`;
    readout.textContent = `${lane.name}: ${block.kinds[lane.kind[i]].name}, ${block.stages[lane.stage[i]]}${microbatch}: ` +
      `${durationText(lane.start[i])} to ${durationText(lane.end[i])} (${durationText(lane.end[i] - lane.start[i])})`;
  });
  canvas.addEventListener("keydown", (event) => {
    const middle = (begin + end) / 2;
    const keys = { "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), "-": () => zoom(2, middle), "0": () => show(0, block.end),
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Home: () => show(0, end - begin), End: () => show(block.end - (end - begin), block.end) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  window.addEventListener("resize", redraw);
  window.addEventListener("beforeprint", () => { prints = true; draw(); });
  window.addEventListener("afterprint", () => { prints = false; draw(); });
  parent.insertBefore(legendOf(block.kinds, (index, on) => { shown[index] = on; redraw(); }), canvas);
  draw();
}
