// Pictures on canvases: images with axes and a colour bar, and lines.

import { paint } from "./colours.js";

const FONT = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A number in few letters. */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const words = size >= 1e4 || size < 1e-3 ? value.toExponential(1).replace(".0e", "e").replace("e+", "e") : String(Number(value.toPrecision(3)));
  return words.replaceAll("-", "−");
}

/** A number in three digits, without an exponent. */
export function plain(value) {
  const digits = Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(Math.abs(value) || 1))));
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: digits });
}

/** A canvas made as large as it is shown; its context counts in CSS pixels. */
export function prepare(canvas, height) {
  const width = canvas.clientWidth || 300;
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.fillStyle = colour("quiet");
  return { context, width, height };
}

function drawImage(context, image, box) {
  const small = document.createElement("canvas");
  [small.width, small.height] = [image.width, image.height];
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, box.x, box.y, box.w, box.h);
}

function text(context, words, x, y, align = "left") {
  context.textAlign = align;
  context.fillText(words, x, y);
}

const [LEFT, BELOW, BAR] = [42, 20, 36];

function prepareField(canvas, square, labels = []) {
  const pen = canvas.getContext("2d");
  pen.font = FONT;
  const left = Math.max(LEFT, ...labels.map((words) => Math.ceil(9 + pen.measureText(words).width)));
  const width = (canvas.clientWidth || 300) - left;
  const high = square ? Math.min(width, 460) : Math.min(300, Math.max(190, 0.75 * width));
  const wide = square ? high : width;
  const { context } = prepare(canvas, high + BELOW + BAR);
  return { context, box: { x: left + (width - wide) / 2, y: 0, w: wide, h: high }, below: BELOW };
}

/** Words where an image will be, which takes the same room. */
export function drawWords(canvas, words, square) {
  const { context, box } = prepareField(canvas, square);
  context.fillStyle = colour("grid");
  context.fillRect(box.x, box.y, box.w, box.h);
  context.fillStyle = colour("quiet");
  text(context, words, box.x + box.w / 2, box.y + box.h / 2, "center");
}

/** An image with its axes and a colour bar below; returns the box of the image itself.
 *
 * @param frame { columns, rows, at(column, row), scale, x: [low, high], y: [low, high],
 *   labels: [x, y], square, marker: share of the height or null }
 */
export function drawField(canvas, frame) {
  const { context, box, below } = prepareField(canvas, frame.square, frame.y.map(short));
  const [wide, shape] = [box.w, box.h];
  drawImage(context, paint(frame.columns, frame.rows, frame.at, frame.scale), box);
  const [xName, yName] = frame.labels;
  text(context, short(frame.x[0]), box.x, shape + 15);
  text(context, short(frame.x[1]), box.x + wide, shape + 15, "right");
  text(context, xName, box.x + wide / 2, shape + 15, "center");
  text(context, short(frame.y[1]), box.x - 5, 11, "right");
  text(context, short(frame.y[0]), box.x - 5, shape - 2, "right");
  text(context, yName, box.x - 5, shape / 2 + 4, "right");
  if (frame.marker !== null && frame.marker !== undefined) {
    const y = box.y + (1 - frame.marker) * box.h;
    for (const [style, size] of [["#ffffff", 3], ["#000000", 1]]) {
      context.strokeStyle = style;
      context.lineWidth = size;
      context.beginPath();
      context.moveTo(box.x, y);
      context.lineTo(box.x + box.w, y);
      context.stroke();
    }
  }
  const top = shape + below + 8;
  const { low, high } = frame.scale;
  const strip = paint(256, 1, (c) => low + ((high - low) * c) / 255, frame.scale);
  drawImage(context, strip, { x: box.x, y: top, w: wide, h: 8 });
  context.fillStyle = colour("quiet");
  text(context, short(low), box.x, top + 22);
  text(context, short((low + high) / 2), box.x + wide / 2, top + 22, "center");
  text(context, short(high), box.x + wide, top + 22, "right");
  return box;
}

/** A few round numbers between two. */
export function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 2));
  const size = [5, 2, 1].find((factor) => (high - low) / (step * factor) >= 2) * step;
  const first = Math.ceil(low / size - 1e-9);
  const count = Math.floor(high / size + 1e-9) - first + 1;
  return Array.from({ length: Math.min(count, 12) }, (_, i) => Number(((first + i) * size).toPrecision(12)));
}

/** Lines over one axis; `lines` are { values, name, style, dash, width }.
 *
 * @param how { x: [low, high], y: [low, high], height, label: of the axis, ends: whether the first
 *   and the last value lie at its ends and not half a step away, cursor: a point or null }
 */
export function drawLines(canvas, lines, { x, y, height = 230, label = "x", ends = false, cursor = null }) {
  const { context, width } = prepare(canvas, height);
  const top = lines.some((line) => line.name) ? 24 : 8;
  const box = { x: 50, y: top, w: width - 58, h: height - top - 24 };
  const [low, high] = y;
  const px = (share) => box.x + share * box.w;
  const py = (value) => box.y + box.h * (1 - (value - low) / (high - low || 1));
  context.lineWidth = 1;
  context.strokeStyle = colour("line");
  context.strokeRect(box.x, box.y, box.w, box.h);
  for (const value of ticks(low, high)) {
    context.strokeStyle = colour("grid");
    context.beginPath();
    context.moveTo(box.x, py(value));
    context.lineTo(box.x + box.w, py(value));
    context.stroke();
    text(context, short(value), box.x - 6, py(value) + 4, "right");
  }
  text(context, short(x[0]), box.x, height - 6);
  text(context, short(x[1]), box.x + box.w, height - 6, "right");
  text(context, label, box.x + box.w / 2, height - 6, "center");
  let legend = box.x;
  for (const line of lines) {
    context.strokeStyle = line.style;
    context.lineWidth = line.width ?? 2;
    context.setLineDash(line.dash ?? []);
    if (line.name) {
      context.beginPath();
      context.moveTo(legend, 10);
      context.lineTo(legend + 16, 10);
      context.stroke();
      text(context, line.name, legend + 21, 14);
      legend += 33 + context.measureText(line.name).width;
    }
    context.save();
    context.beginPath();
    context.rect(box.x, box.y - 2, box.w, box.h + 4);
    context.clip();
    context.beginPath();
    const n = line.values.length;
    line.values.forEach((value, j) => {
      const share = ends ? j / (n - 1) : (j + 0.5) / n;
      if (j) context.lineTo(px(share), py(value));
      else context.moveTo(px(share), py(value));
    });
    context.stroke();
    context.restore();
    context.setLineDash([]);
  }
  if (cursor) {
    context.fillStyle = colour("second");
    context.beginPath();
    context.arc(px(cursor.x), py(cursor.y), 5, 0, 2 * Math.PI);
    context.fill();
  }
  return box;
}

/** The least and the greatest of some numbers, with a margin. */
export function extent(...rows) {
  let [low, high] = [Infinity, -Infinity];
  for (const row of rows) {
    for (const value of row ?? []) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (!(low <= high)) return [-1, 1];
  const margin = 0.06 * (high - low) || 0.5;
  return [low - margin, high + margin];
}
