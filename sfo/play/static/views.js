// What is seen of a state, a truth and a prediction at the chosen time, field and plane.

import { colour, drawField, drawLines, drawWords, extent, short } from "./canvas.js";
import { errorScale, scaleOf } from "./colours.js";
import { drawingRange, knotValue } from "./drawn.js";

const byId = (id) => document.getElementById(id);

/** √(Σ (p − u)² / Σ u²) over all numbers, `whole`, and over those of each frame, `frames`. */
export function relativeErrors(prediction, truth, about) {
  const frames = about.times.length;
  const size = truth.length / (about.names.length * frames);
  const [error, target] = [new Float64Array(frames), new Float64Array(frames)];
  for (let i = 0; i < truth.length; i++) {
    const frame = Math.floor(i / size) % frames;
    error[frame] += (prediction[i] - truth[i]) ** 2;
    target[frame] += truth[i] ** 2;
  }
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  return { whole: Math.sqrt(sum(error) / sum(target)), frames: Array.from(error, (value, i) => Math.sqrt(value / target[i])) };
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
    for (const [id, values, colours] of rows) {
      boxes[id] = values ? drawPanel(byId(id), values, colours, about, state, grid) : null;
      if (!values) drawWords(byId(id), results.waiting, grid.length > 1);
    }
    results.boxes = boxes;
  }
  const { errors } = results;
  byId("curve-box").hidden = grid.length > 1 && (about.times.length === 1 || about.truth === "none");
  if (grid.length === 1) drawCurve(about, state, grid[0], truth, guess);
  else drawErrors(about, state, errors?.frames ?? []);
  describe(about, state, difference);
}

function drawPanel(canvas, values, scale, about, state, grid) {
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
  drawLines(byId("curve"), lines, { x: [about.lower[0], about.upper[0]], y: extent(truth, guess) });
}

/** The error over time; a first frame of zeros has none. */
function drawErrors(about, state, frames) {
  const percents = frames.map((value) => (Number.isFinite(value) ? 100 * value : 0));
  const last = about.times.length - 1;
  drawLines(byId("curve"), [{ values: percents, style: colour("accent"), width: 2.2 }], {
    x: [about.times[0], about.times[last]], y: [0, 1.06 * Math.max(0, ...percents) || 1], label: "t", ends: true,
    cursor: frames.length ? { x: state.frame / last, y: percents[state.frame] } : null,
  });
}

function describe(about, state, difference) {
  const when = about.times.length > 1 ? ` at t = ${short(about.times[state.frame])}` : "";
  const name = about.names[state.field];
  byId("truth").setAttribute("aria-label", `${about.truth === "solver" ? "Solver" : "Truth"}: ${name}${when}`);
  byId("operator").setAttribute("aria-label", `Operator: ${name}${when}`);
  const top = difference ? `, at most ${short(Math.max(...extent(difference).map(Math.abs)))}` : "";
  byId("difference").setAttribute("aria-label", `Error of the operator: ${name}${when}${top}`);
  const steady = about.times.length === 1;
  const line = about.lower.length === 1;
  const title = line ? (steady ? `Solution: ${name}` : `${name}${when}`) : "Error over time";
  byId("curve-title").textContent = title;
  byId("curve-words").textContent = line ? (steady ? byId("truth-words").textContent : "") : "relative, in percent, over all fields";
  byId("curve").setAttribute("aria-label", line ? `${name} over x${when}, solver and operator` : "Relative error over time");
}

/** The plane of the input, whose grid need not be that of the panels. */
function sliceOf(about, state, shape) {
  return state.slice === null ? 0 : Math.floor((state.slice * shape[2]) / about.grids[state.grid][2]);
}

/** Draw the initial state that can be drawn on; returns the box of its picture. */
export function drawState(canvas, about, state, values, cursor) {
  const [, ...shape] = about.state_shape;
  const size = shape.reduce((a, b) => a * b, 1);
  if (!values) {
    drawWords(canvas, "…", shape.length > 1);
    return null;
  }
  const first = values.subarray(0, size);
  if (shape.length === 1) {
    const range = drawingRange(about.ranges[0]);
    const spot = cursor && { x: (cursor.x + 0.5) / 64, y: state.knots ? knotValue(state.knots[cursor.x], range) : first[Math.floor((cursor.x / 64) * size)] };
    return drawLines(canvas, [{ values: Array.from(first), style: colour("accent"), width: 2.2 }], {
      x: [about.lower[0], about.upper[0]], y: range, height: 190, cursor: spot,
    });
  }
  const box = drawField(canvas, {
    ...plane(first, shape, sliceOf(about, state, shape)), scale: scaleOf(first), square: true,
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
