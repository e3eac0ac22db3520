// What is seen of a state, a truth and a prediction at the chosen time, field and plane.

import { colour, drawField, drawLines, extent, short } from "./canvas.js";
import { errorScale, scaleOf } from "./colours.js";
import { drawingRange, knotValue } from "./drawn.js";

const byId = (id) => document.getElementById(id);

/** √(Σ (p − u)² / Σ u²) over all numbers, or over those of one frame of every field. */
export function relativeError(prediction, truth, about, frame = null) {
  const frames = about.times.length;
  const size = truth.length / (about.names.length * frames);
  let [error, target] = [0, 0];
  for (let i = 0; i < truth.length; i++) {
    if (frame !== null && Math.floor(i / size) % frames !== frame) continue;
    error += (prediction[i] - truth[i]) ** 2;
    target += truth[i] ** 2;
  }
  return Math.sqrt(error / target);
}

/** The numbers of one field, all frames. */
function fieldOf(result, about, field) {
  if (!result || !result.values.length) return null;
  const size = result.values.length / about.names.length;
  return result.values.subarray(field * size, (field + 1) * size);
}

/** An image of one frame on two axes, or of the plane z of three. */
function plane(values, shape, z) {
  const [X, Y, Z = 1] = shape;
  return { columns: X, rows: Y, at: (c, r) => values[(c * Y + (Y - 1 - r)) * Z + (Z > 1 ? z : 0)] };
}

/** Draw everything that depends on time, field or plane. */
export function drawViews(about, state, results) {
  const grid = about.grids[state.grid];
  const truth = fieldOf(results.truth, about, state.field);
  const guess = fieldOf(results.guess, about, state.field);
  const difference = truth && guess && truth.length === guess.length ? guess.map((v, i) => v - truth[i]) : null;
  const scale = truth ?? guess ? scaleOf(truth ?? guess) : null;
  const off = difference ? errorScale(difference) : null;
  const steadyLine = grid.length === 1 && about.times.length === 1;
  byId("panels").hidden = steadyLine;
  byId("panels").classList.toggle("drop", grid.length === 2 && !about.why_not);
  if (!steadyLine) {
    const boxes = {};
    const rows = [["truth", truth, scale], ["operator", guess, scale], ["difference", difference, off]];
    for (const [id, values, colours] of rows) boxes[id] = drawPanel(byId(id), values, colours, about, state, grid);
    results.boxes = boxes;
  }
  byId("curve-box").hidden = grid.length > 1;
  if (grid.length === 1) drawCurve(about, state, grid[0], truth, guess);
  describe(about, state, difference);
}

function drawPanel(canvas, values, scale, about, state, grid) {
  if (!values) {
    canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    return null;
  }
  const ends = (axis) => [about.lower[axis], about.upper[axis]];
  if (grid.length === 1) {
    const n = grid[0];
    const frames = about.times.length;
    const marker = frames > 1 ? (state.frame + 0.5) / frames : null;
    return drawField(canvas, {
      columns: n, rows: frames, at: (c, r) => values[(frames - 1 - r) * n + c], scale, marker,
      x: ends(0), y: [about.times[0], about.times[frames - 1]], labels: ["x", "t"],
    });
  }
  const size = grid.reduce((a, b) => a * b, 1);
  const frame = values.subarray(state.frame * size, (state.frame + 1) * size);
  return drawField(canvas, {
    ...plane(frame, grid, state.slice ?? 0), scale, square: true, x: ends(0), y: ends(1), labels: ["x", "y"],
  });
}

function drawCurve(about, state, n, truth, guess) {
  const row = (values) => Array.from(values.subarray(state.frame * n, (state.frame + 1) * n));
  const lines = [];
  if (truth) lines.push({ values: row(truth), name: about.truth === "solver" ? "solver" : "stored", style: colour("text"), width: 2.4 });
  if (guess) lines.push({ values: row(guess), name: "operator", style: colour("second"), dash: [6, 4], width: 2.2 });
  drawLines(byId("curve"), lines, { x: [about.lower[0], about.upper[0]], y: extent(truth ?? guess) });
}

function describe(about, state, difference) {
  const when = about.times.length > 1 ? ` at t = ${short(about.times[state.frame])}` : "";
  const name = about.names[state.field];
  byId("truth").setAttribute("aria-label", `${about.truth === "solver" ? "Solver" : "Truth"}: ${name}${when}`);
  byId("operator").setAttribute("aria-label", `Operator: ${name}${when}`);
  const top = difference ? `, at most ${short(Math.max(...extent(difference).map(Math.abs)))}` : "";
  byId("difference").setAttribute("aria-label", `Error of the operator: ${name}${when}${top}`);
  byId("curve").setAttribute("aria-label", `${name} over x${when}, solver and operator`);
}

/** Draw the initial state that can be drawn on; returns the box of its picture. */
export function drawState(canvas, about, state, values, cursor) {
  const [, ...shape] = about.state_shape;
  const size = shape.reduce((a, b) => a * b, 1);
  const first = values.subarray(0, size);
  if (shape.length === 1) {
    const range = drawingRange(about.ranges[0]);
    const spot = cursor && { x: (cursor.x + 0.5) / 64, y: state.knots ? knotValue(state.knots[cursor.x], range) : first[Math.floor((cursor.x / 64) * size)] };
    return drawLines(canvas, [{ values: Array.from(first), style: colour("accent"), width: 2.2 }], {
      x: [about.lower[0], about.upper[0]], y: range, height: 190, cursor: spot,
    });
  }
  const box = drawField(canvas, {
    ...plane(first, shape, state.slice ?? Math.floor((shape[2] ?? 0) / 2)), scale: scaleOf(first), square: true, bar: false,
    x: [about.lower[0], about.upper[0]], y: [about.lower[1], about.upper[1]], labels: ["x", "y"],
  });
  if (cursor) {
    const context = canvas.getContext("2d");
    context.strokeStyle = "#ffffff";
    context.lineWidth = 2;
    context.beginPath();
    context.arc(box.x + cursor.x * box.w, box.y + (1 - cursor.y) * box.h, 8, 0, 2 * Math.PI);
    context.stroke();
  }
  return box;
}
