// The page: what is chosen, what is asked of the server, and when things are drawn.

import { fields, json } from "./api.js";
import { fromHash, toHash } from "./address.js";
import { short } from "./canvas.js";
import { addDrops, curveThrough, drawingRange } from "./drawn.js";
import { drawKernels, showKernels } from "./kernels.js";
import { dropAt, listen } from "./sketch.js";
import { drawState, drawViews, relativeError } from "./views.js";

const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const PLAY_SECONDS = 4;

const state = { data: null, model: null, seed: 0, knots: null, drops: [], frame: 0, grid: 0, field: 0, slice: null };
const results = { truth: null, guess: null, boxes: {} };
let models = [];
let about = null;
let sample = null;
let values = null;
let asked = new AbortController();
let round = 0;
let choice = 0;
let notice = "";
let predicting = false;
let playing = 0;

const page = {
  about: () => about,
  state,
  sample: () => sample.subarray(0, about.state_shape[1]),
  box: () => page.place,
  cursor: null,
  changed(finished) {
    compose();
    redraw();
    if (finished) refresh(true);
    else preview();
  },
  redraw,
};

// ---- from choices to numbers

function say(words, warn = false) {
  byId("message").textContent = words;
  byId("message").classList.toggle("warn", warn);
}

function isDrawn() {
  return Boolean(state.knots || state.drops.length);
}

/** The input fields: the sample itself, or what was drawn on it. */
function compose() {
  values = Float32Array.from(sample);
  if (state.knots) {
    const n = about.state_shape[1];
    values.set(curveThrough(state.knots, n, drawingRange(about.ranges[0]), about.periodic));
  }
  if (state.drops.length) addDrops(values, about.state_shape, state.drops, about.ranges[0], about.periodic);
}

function ask(what, signal) {
  const name = encodeURIComponent(about.name);
  const path = `/api/models/${name}/${what}?grid=${state.grid}&seed=${state.seed}`;
  return fields(path, signal, isDrawn() ? values : null);
}

/** The operator's answer while a curve is being drawn; the solver's comes when it is done. */
async function preview() {
  if (predicting) return;
  predicting = true;
  try {
    const mine = round;
    const guess = await ask("predict", asked.signal);
    if (mine !== round) return;
    results.guess = guess;
    results.truth = null;
    showNumbers();
    redraw();
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  } finally {
    predicting = false;
  }
}

/** Ask for everything that the choices call for; what was asked before is forgotten. */
async function refresh(keepSample = false) {
  const mine = ++round;
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  root.dataset.busy = "true";
  remember();
  try {
    if (!keepSample || !sample) {
      const name = encodeURIComponent(about.name);
      sample = (await fields(`/api/models/${name}/state?seed=${state.seed}`, signal)).values;
      if (mine !== round) return;
      compose();
    }
    say("");
    results.guess = await ask("predict", signal);
    if (mine !== round) return;
    results.truth = null;
    showNumbers();
    redraw();
    say(about.truth === "solver" ? "Solving …" : "");
    results.truth = await ask("solve", signal);
    if (mine !== round) return;
    say(notice || (results.truth.meta.shape ? outside() : results.truth.meta.words), Boolean(notice));
    notice = "";
    showNumbers();
    redraw();
    if (about.state_shape.length === 3 && state.drops.length) startPlaying();
  } catch (error) {
    if (error.name === "AbortError" || mine !== round) return;
    say(error.message, true);
    showNumbers();
    redraw();
  } finally {
    if (mine === round) root.dataset.busy = "false";
  }
}

/** A hint where the drawn state lies far from what the model has seen. */
function outside() {
  if (!isDrawn()) return "";
  const [low, high] = about.ranges[0];
  const margin = 0.3 * (high - low);
  const size = values.length / about.state_shape[0];
  for (let i = 0; i < size; i++) {
    if (values[i] < low - margin || values[i] > high + margin) {
      return `The state leaves the range of the samples, ${short(low)} to ${short(high)}: the operator has not seen such.`;
    }
  }
  return "";
}

function remember() {
  history.replaceState(null, "", toHash(state));
}

// ---- from numbers to the page

const percent = (value) => (Number.isFinite(value) ? `${short(100 * value)} %` : "–");
const milliseconds = (value) => (value == null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`);

function put(id, words, value) {
  byId(id).textContent = words;
  byId(id).dataset.value = value ?? "";
}

function showNumbers() {
  const { truth, guess } = results;
  const both = truth?.values.length && guess && truth.values.length === guess.values.length;
  const error = both ? relativeError(guess.values, truth.values, about) : null;
  put("error", error === null ? "–" : percent(error), error);
  showErrorNow();
  const solver = truth?.meta.milliseconds;
  const operator = guess?.meta.milliseconds;
  put("solver-ms", milliseconds(solver), solver);
  put("operator-ms", milliseconds(operator), operator);
  put("ratio", solver && operator ? `${short(Number((solver / operator).toPrecision(2)))} ×` : "–", solver / operator);
  byId("truth-title").textContent = about.truth === "solver" ? "Solver" : "Truth";
  byId("minus").textContent = about.truth === "solver" ? "solver" : "truth";
  byId("truth-words").textContent = truth?.meta.shape ? truth.meta.words.replace(/^solver /, "") : "";
  byId("curve-title").textContent = about.times.length > 1 ? "At the chosen time" : "Solution";
  byId("curve-words").textContent = about.times.length > 1 ? "" : byId("truth-words").textContent;
  byId("truth-box").hidden = byId("difference-box").hidden = about.truth === "none";
}

function showErrorNow() {
  const { truth, guess } = results;
  const both = truth?.values.length && guess && truth.values.length === guess.values.length;
  const now = both ? relativeError(guess.values, truth.values, about, state.frame) : null;
  put("error-now", now === null ? "–" : percent(now), now);
}

function redraw() {
  if (!about || !values) return;
  page.place = drawState(byId("state"), about, state, values, page.cursor);
  byId("undo").disabled = !isDrawn();
  byId("time-value").textContent = `t = ${short(about.times[state.frame])}`;
  byId("grid-value").textContent = `${about.grids[state.grid].map((n) => n.toLocaleString("en")).join(" × ")} points${state.grid === about.home ? ", as trained" : ""}`;
  if (state.slice !== null) byId("slice-value").textContent = `${state.slice + 1} of ${about.grids[state.grid][2]}`;
  drawViews(about, state, results);
}

// ---- choices

function fill(select, rows, chosen) {
  select.replaceChildren(...rows.map(([value, title]) => new Option(title, value)));
  select.value = chosen;
}

/** The model of that name; of another one if it is not shown here, which is then said. */
function find(name, shared) {
  const named = models.find((model) => model.name === name);
  const entry = named ?? models.find((model) => model.data === shared.data) ?? models[0];
  notice = named || !name ? "" : `The address asks for the model “${name}”, which is not shown here. This is ${entry.title} on ${entry.data_title}.`;
  return entry;
}

/** Show a model, with as much of a shared state as fits it. */
async function choose(name, shared = {}) {
  stopPlaying();
  const mine = ++choice;
  const entry = find(name, shared);
  // Another problem's sample, drawing and time would mean nothing here.
  if (shared.data && shared.data !== entry.data) shared = { model: entry.name };
  const sameData = state.data === entry.data && !shared.model;
  root.dataset.busy = "true";
  say("Loading the model …");
  let told;
  try {
    told = await json(`/api/models/${encodeURIComponent(entry.name)}`);
  } catch (error) {
    if (mine !== choice) return;
    say(error.message, true);
    root.dataset.busy = "false";
    return;
  }
  // A model that was chosen since goes first, whichever answer comes first.
  if (mine !== choice) return;
  about = told;
  const last = about.times.length - 1;
  const within = (value, most, other) => (Number.isInteger(value) && value >= 0 && value <= most ? value : other);
  const keep = sameData ? state : shared;
  Object.assign(state, {
    data: entry.data,
    model: entry.name,
    seed: within(keep.seed, (about.samples ?? 2 ** 24) - 1, 0),
    knots: about.state_shape.length === 2 && !about.why_not ? keep.knots ?? null : null,
    drops: about.state_shape.length === 3 && !about.why_not ? keep.drops ?? [] : [],
    frame: within(keep.frame, last, last),
    grid: within(keep.grid, about.grids.length - 1, about.home),
    field: within(keep.field, about.names.length - 1, 0),
  });
  const depth = about.grids[state.grid][2];
  state.slice = depth ? within(keep.slice, depth - 1, Math.floor(depth / 2)) : null;
  Object.assign(results, { truth: null, guess: null, boxes: {} });
  sample = values = null;
  page.cursor = null;
  setUp(entry, last);
  await refresh();
  if (byId("kernel").open) await kernels();
}

function setUp(entry, last) {
  const problems = [...new Map(models.map((model) => [model.data, model.data_title]))];
  fill(byId("data"), problems, entry.data);
  fill(byId("model"), models.filter((m) => m.data === entry.data).map((m) => [m.name, m.title]), entry.name);
  byId("words").textContent = `${about.words} ${about.parameters.toLocaleString("en")} parameters.`;
  byId("time").max = last;
  byId("time").value = state.frame;
  byId("time-row").hidden = byId("error-now-box").hidden = last === 0;
  byId("grid").max = about.grids.length - 1;
  byId("grid").value = state.grid;
  byId("grid-row").hidden = about.grids.length < 2;
  fill(byId("field"), about.names.map((name, i) => [i, name]), state.field);
  byId("field-row").hidden = about.names.length < 2;
  byId("slice-row").hidden = state.slice === null;
  if (state.slice !== null) {
    byId("slice").max = about.grids[state.grid][2] - 1;
    byId("slice").value = state.slice;
  }
  byId("seed").value = state.seed;
  byId("seed").max = (about.samples ?? 2 ** 24) - 1;
  byId("operator-words").textContent = entry.title;
  const can = !about.why_not && about.state_shape.length < 4;
  byId("drawing").hidden = !can;
  byId("brush-row").hidden = about.state_shape.length !== 3;
  byId("state").setAttribute("aria-disabled", String(!can));
  const plane = about.state_shape.length === 3;
  byId("state-title").textContent = `${about.evolves ? "Initial state" : "Input"}: ${about.inputs[0]}`;
  byId("hint").textContent = !can
    ? about.why_not ?? "Choose a sample."
    : plane
      ? "Click, here or in a panel, to drop some; or move with the arrow keys and press Enter."
      : "Draw with mouse or finger; or move with ← → and pull with ↑ ↓.";
}

async function kernels() {
  try {
    await showKernels(about, asked.signal);
  } catch (error) {
    if (error.name !== "AbortError") byId("kernel-words").textContent = error.message;
  }
}

function chooseSample(seed) {
  const most = about.samples ?? 2 ** 24;
  Object.assign(state, { seed: ((seed % most) + most) % most, knots: null, drops: [] });
  byId("seed").value = state.seed;
  refresh();
}

function setFrame(frame) {
  state.frame = frame;
  byId("time").value = frame;
  showErrorNow();
  redraw();
}

function startPlaying() {
  if (playing || about.times.length < 2 || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  togglePlaying();
}

function stopPlaying() {
  if (playing) togglePlaying();
}

function togglePlaying() {
  const button = byId("play");
  if (playing) {
    clearInterval(playing);
    playing = 0;
    remember();
  } else {
    const frames = about.times.length;
    if (state.frame === frames - 1) setFrame(0);
    playing = setInterval(() => {
      if (state.frame < frames - 1) setFrame(state.frame + 1);
      else stopPlaying();
    }, Math.max(40, (1000 * PLAY_SECONDS) / frames));
  }
  button.textContent = playing ? "❚❚" : "▶";
  button.setAttribute("aria-label", playing ? "Pause" : "Play");
}

function wire() {
  byId("data").addEventListener("change", (e) => choose(models.find((m) => m.data === e.target.value).name));
  byId("model").addEventListener("change", (e) => choose(e.target.value));
  byId("previous").addEventListener("click", () => chooseSample(state.seed - 1));
  byId("next").addEventListener("click", () => chooseSample(state.seed + 1));
  byId("random").addEventListener("click", () => chooseSample(Math.floor(Math.random() * (about.samples ?? 10000))));
  byId("seed").addEventListener("change", (e) => chooseSample(Math.max(0, Math.floor(Number(e.target.value)) || 0)));
  byId("undo").addEventListener("click", () => chooseSample(state.seed));
  byId("time").addEventListener("input", (e) => {
    stopPlaying();
    setFrame(Number(e.target.value));
    remember();
  });
  byId("grid").addEventListener("input", (e) => {
    state.grid = Number(e.target.value);
    Object.assign(results, { truth: null, guess: null });
    refresh(true);
  });
  byId("slice").addEventListener("input", (e) => {
    state.slice = Number(e.target.value);
    remember();
    redraw();
  });
  byId("field").addEventListener("change", (e) => {
    state.field = Number(e.target.value);
    remember();
    redraw();
  });
  byId("play").addEventListener("click", togglePlaying);
  byId("kernel").addEventListener("toggle", () => byId("kernel").open && about && kernels());
  byId("layer").addEventListener("change", drawKernels);
  listen(byId("state"), page);
  for (const id of ["truth", "operator", "difference"]) {
    byId(id).addEventListener("click", (e) => dropAt(e, byId(id), results.boxes[id], page));
  }
  byId("share").addEventListener("click", share);
  byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark", true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(preferred()));
  window.addEventListener("hashchange", () => {
    const shared = fromHash(location.hash);
    choose(shared.model, shared);
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    redraw();
    drawKernels();
  });
}

async function share() {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    say("The address is copied; it shows this state again.");
  } catch {
    say("Copy the address from the bar; it shows this state again.");
  }
}

function preferred() {
  const kept = sessionStorage.getItem("theme");
  return kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function setTheme(theme, keep = false) {
  if (keep) sessionStorage.setItem("theme", theme);
  root.dataset.theme = theme;
  redraw();
  drawKernels();
}

async function begin() {
  setTheme(preferred());
  wire();
  try {
    models = await json("/api/models");
  } catch (error) {
    say(error.message, true);
    return;
  }
  const shared = fromHash(location.hash);
  await choose(shared.model, shared);
}

begin();
