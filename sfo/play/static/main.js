// The page: what is chosen, what is asked of the server, and when things are drawn.

import { fields, json } from "./api.js";
import { fromHash, toHash } from "./address.js";
import { plain, short } from "./canvas.js";
import { addDrops, curveThrough, drawingRange } from "./drawn.js";
import { drawKernels, showKernels } from "./kernels.js";
import { dropAt, listen } from "./sketch.js";
import { drawState, drawViews, relativeErrors } from "./views.js";

const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const PLAY_SECONDS = 4;

const state = { data: null, model: null, seed: 0, knots: null, drops: [], frame: 0, grid: 0, field: 0, slice: null };
const results = { truth: null, guess: null, errors: null, boxes: {}, waiting: "" };
let models = [];
let about = null;
let sample = null;
let values = null;
let asked = new AbortController();
let previewing = new AbortController();
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
    if (finished) {
      redraw();
      refresh(true);
      return;
    }
    // What was asked for the state before must not stand beside the prediction of this one.
    forget();
    Object.assign(results, { truth: null, waiting: `${about.truth === "solver" ? "Solved" : "Compared"} when you let go` });
    measure();
    redraw();
    preview();
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

function forget() {
  asked.abort();
  asked = new AbortController();
  return ++round;
}

/** The errors of what is shown. */
function measure() {
  const { truth, guess } = results;
  const both = truth?.values.length && guess && truth.values.length === guess.values.length;
  results.errors = both ? relativeErrors(guess.values, truth.values, about) : null;
}

/** The operator's answer while a curve is being drawn; the solver's comes when it is done. */
async function preview() {
  if (predicting) return;
  predicting = true;
  try {
    const [mine, { signal }] = [choice, previewing];
    const guess = await ask("predict", signal);
    if (mine !== choice || signal.aborted) return;
    results.guess = guess;
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
  const mine = forget();
  const { signal } = asked;
  previewing.abort();
  previewing = new AbortController();
  root.dataset.busy = "true";
  results.waiting = "…";
  remember();
  try {
    if (!keepSample || !sample) {
      const name = encodeURIComponent(about.name);
      sample = (await fields(`/api/models/${name}/state?seed=${state.seed}`, signal)).values;
      if (mine !== round) return;
      compose();
    }
    say(results.guess ? "" : "Predicting …");
    results.guess = await ask("predict", signal);
    if (mine !== round) return;
    results.truth = null;
    results.waiting = about.truth === "solver" ? "Solving …" : "…";
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
    results.waiting = "–";
    showNumbers();
    redraw();
  } finally {
    if (mine === round) root.dataset.busy = "false";
  }
}

/** A hint that a drawn state is not what the model has seen, or lies far from it. */
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
  return "The model has learned from samples, not from drawings: its error may be far from the test error.";
}

function remember() {
  history.replaceState(null, "", toHash(state));
}

// ---- from numbers to the page

const percent = (value) => (Number.isFinite(value) ? `${plain(100 * value)} %` : "–");
const milliseconds = (value) => (value == null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`);
const many = (shape) => shape.map((n) => n.toLocaleString("en")).join(" × ");

function put(id, words, value) {
  byId(id).textContent = words;
  byId(id).dataset.value = value ?? "";
}

function showNumbers() {
  measure();
  const { truth, guess, errors } = results;
  put("error", errors ? percent(errors.whole) : "–", errors?.whole);
  showErrorNow();
  const solver = truth?.meta.milliseconds;
  const operator = guess?.meta.milliseconds;
  put("solver-ms", milliseconds(solver), solver);
  put("operator-ms", milliseconds(operator), operator);
  const ratio = solver && operator ? solver / operator : null;
  byId("ratio-title").textContent = ratio && ratio < 1 ? "Operator is slower by" : "Operator is faster by";
  put("ratio", ratio ? `${plain(Number(Math.max(ratio, 1 / ratio).toPrecision(2)))} ×` : "–", ratio);
  byId("solver-note").textContent = about.truth === "solver" ? `on ${many(about.solver_grid)} points` : "not known";
  byId("operator-note").textContent = `on ${many(about.grids[state.grid])} points`;
  byId("error-note").textContent = about.times.length > 1 ? "over all times" : "of the solution";
  byId("truth-title").textContent = about.truth === "solver" ? "Solver" : "Truth";
  byId("minus").textContent = about.truth === "solver" ? "solver" : "truth";
  byId("truth-words").textContent = truth?.meta.shape ? truth.meta.words.replace(/^solver /, "") : "";
  byId("truth-box").hidden = byId("difference-box").hidden = about.truth === "none";
}

function showErrorNow() {
  const now = results.errors?.frames[state.frame];
  put("error-now", now === undefined ? "–" : percent(now), now);
  byId("error-now-note").textContent = `t = ${short(about.times[state.frame])}`;
}

function redraw() {
  if (!about) return;
  page.place = drawState(byId("state"), about, state, values, page.cursor);
  byId("undo").disabled = !isDrawn();
  byId("previous").disabled = !about.samples && state.seed === 0;
  byId("time-value").textContent = `t = ${short(about.times[state.frame])}`;
  byId("grid-value").textContent = `${many(about.grids[state.grid])} points${state.grid === about.home ? ", as trained" : ""}`;
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
  root.dataset.busy = root.dataset.stale = "true";
  fillChoices(entry);
  say("Loading the model …");
  let told;
  try {
    told = await json(`/api/models/${encodeURIComponent(entry.name)}`);
  } catch (error) {
    if (mine !== choice) return;
    say(`${entry.title} on ${entry.data_title} cannot be shown: ${error.message}`, true);
    if (about) fillChoices(models.find((model) => model.name === about.name));
    root.dataset.busy = "false";
    if (about) root.dataset.stale = "false";
    return;
  }
  // A model that was chosen since goes first, whichever answer comes first.
  if (mine !== choice) return;
  about = told;
  root.dataset.stale = "false";
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
  Object.assign(results, { truth: null, guess: null, errors: null, boxes: {}, waiting: "…" });
  sample = values = null;
  page.cursor = null;
  setUp(entry, last);
  showNumbers();
  redraw();
  await refresh();
  if (byId("kernel").open) await kernels();
}

function fillChoices(entry) {
  const problems = [...new Map(models.map((model) => [model.data, model.data_title]))];
  fill(byId("data"), problems, entry.data);
  fill(byId("model"), models.filter((m) => m.data === entry.data).map((m) => [m.name, m.title]), entry.name);
}

/** The plane of a grid of three axes that is as far along as the one before. */
function fitSlice(before) {
  if (state.slice === null) return;
  const depth = about.grids[state.grid][2];
  state.slice = Math.min(depth - 1, Math.floor((state.slice * depth) / before));
  byId("slice").max = depth - 1;
  byId("slice").value = state.slice;
}

function setUp(entry, last) {
  // An interval stays on one line.
  byId("equation").textContent = about.equation.replace(/\(([^(), ]+), ([^(), ]+)\)/g, "($1,\u00a0$2)");
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
  byId("other-rows").hidden = ["grid", "slice", "field"].every((name) => byId(`${name}-row`).hidden);
  byId("sliders").hidden = byId("other-rows").hidden && byId("time-row").hidden;
  if (state.slice !== null) {
    byId("slice").max = about.grids[state.grid][2] - 1;
    byId("slice").value = state.slice;
  }
  byId("seed").value = state.seed;
  byId("seed").max = (about.samples ?? 2 ** 24) - 1;
  byId("operator-words").textContent = entry.title;
  const can = !about.why_not && about.state_shape.length < 4;
  byId("undo").hidden = !can;
  byId("brush-row").hidden = !can || about.state_shape.length !== 3;
  byId("state").setAttribute("aria-disabled", String(!can));
  const plane = about.state_shape.length === 3;
  byId("state").dataset.axes = about.state_shape.length - 1;
  byId("state-title").textContent = `${about.evolves ? "Initial state" : "Input"}: ${about.inputs[0]}`;
  byId("hint").textContent = !can
    ? about.why_not ?? "Choose a sample."
    : plane
      ? `Click or tap, here or in a panel, to raise or lower ${about.inputs[0]} there; or move with the arrow keys and press Enter.`
      : "Draw with mouse or finger; or move with ← → and pull with ↑ ↓.";
}

async function kernels() {
  try {
    await showKernels(about);
  } catch (error) {
    byId("kernel-words").textContent = error.message;
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
  // Until the first model is there, nothing else can be chosen.
  const on = (id, kind, act) => byId(id).addEventListener(kind, (e) => about && act(e));
  on("previous", "click", () => chooseSample(state.seed - 1));
  on("next", "click", () => chooseSample(state.seed + 1));
  on("random", "click", () => chooseSample(Math.floor(Math.random() * (about.samples ?? 10000))));
  on("seed", "change", (e) => chooseSample(Math.max(0, Math.min(e.target.max, Math.floor(Number(e.target.value)) || 0))));
  on("undo", "click", () => chooseSample(state.seed));
  on("time", "input", (e) => {
    stopPlaying();
    setFrame(Number(e.target.value));
    remember();
  });
  on("grid", "input", (e) => {
    const before = about.grids[state.grid][2];
    state.grid = Number(e.target.value);
    fitSlice(before);
    Object.assign(results, { truth: null, guess: null, errors: null });
    refresh(true);
  });
  on("slice", "input", (e) => {
    state.slice = Number(e.target.value);
    remember();
    redraw();
  });
  on("field", "change", (e) => {
    state.field = Number(e.target.value);
    remember();
    redraw();
  });
  on("play", "click", togglePlaying);
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
