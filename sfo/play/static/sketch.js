// Drawing the initial state: mouse, touch and pen by pointer events, and the keyboard.

import { KNOTS, MOST_DROPS } from "./address.js";
import { drawingRange, knotNumber, knotsOf, PLACES } from "./drawn.js";

const STEP = 1500;

/** Listen on a canvas, and say what was drawn.
 *
 * @param page { about(), state, sample(), box(), cursor, changed(finished), redraw() }
 */
export function listen(canvas, page) {
  let last = null;

  // A click, not a touch that begins: a finger may also scroll over a picture.
  canvas.addEventListener("click", (event) => dropAt(event, canvas, page.box(), page));
  canvas.addEventListener("pointerdown", (event) => {
    if (!canDraw(page) || !oneAxis(page)) return;
    canvas.setPointerCapture(event.pointerId);
    page.cursor = null;
    last = null;
    move(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons && canDraw(page) && canvas.hasPointerCapture(event.pointerId)) move(event);
  });
  // What was drawn until a gesture was taken away is solved too.
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => {
      if (last) page.changed(true);
      last = null;
    });
  }

  function move(event) {
    const place = inBox(event, canvas, page.box());
    const range = drawingRange(page.about().ranges[0]);
    const spot = { k: Math.min(KNOTS - 1, Math.floor(place.x * KNOTS)), number: knotNumber(range[0] + place.y * (range[1] - range[0]), range) };
    pull(page, last ?? spot, spot);
    last = spot;
    page.changed(false);
  }

  canvas.addEventListener("keydown", (event) => {
    if (!canDraw(page) || event.altKey || event.ctrlKey || event.metaKey) return;
    const used = oneAxis(page) ? keyOnCurve(event, page) : keyOnPlane(event, page);
    if (used) event.preventDefault();
  });
  canvas.addEventListener("blur", () => {
    page.cursor = null;
    page.redraw();
  });
}

/** A drop where a panel of two axes is clicked. */
export function dropAt(event, canvas, box, page) {
  if (!box || !canDraw(page) || oneAxis(page)) return;
  const place = inBox(event, canvas, box, false);
  if (!place) return;
  drop(page, place);
  page.changed(true);
}

const canDraw = (page) => page.about() && !page.about().why_not && page.about().state_shape.length < 4;
const oneAxis = (page) => page.about().state_shape.length === 2;

/** Where an event lies in the box of a picture, from 0 to 1 along both axes, y upwards. */
function inBox(event, canvas, box, clamp = true) {
  const frame = canvas.getBoundingClientRect();
  const x = (event.clientX - frame.left - box.x) / box.w;
  const y = 1 - (event.clientY - frame.top - box.y) / box.h;
  if (!clamp && (x < 0 || x > 1 || y < 0 || y > 1)) return null;
  return { x: Math.max(0, Math.min(1, x)), y: Math.max(0, Math.min(1, y)) };
}

/** Set the knots from one spot to the next, in a straight line. */
function pull(page, from, to) {
  const { state } = page;
  if (!state.knots) state.knots = knotsOf(page.sample(), drawingRange(page.about().ranges[0]));
  const steps = Math.max(1, Math.abs(to.k - from.k));
  for (let i = 0; i <= steps; i++) {
    const k = Math.round(from.k + ((to.k - from.k) * i) / steps);
    state.knots[k] = Math.round(from.number + ((to.number - from.number) * i) / steps);
  }
}

function drop(page, { x, y }) {
  const { state } = page;
  const place = (share) => Math.min(PLACES - 1, Math.floor(share * PLACES));
  const sign = Number(document.getElementById("brush").value);
  state.drops = [...state.drops, { x: place(x), y: place(y), sign }].slice(-MOST_DROPS);
}

function keyOnCurve(event, page) {
  const { state } = page;
  const cursor = (page.cursor ??= { x: KNOTS / 2 });
  const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (along) {
    cursor.x = (cursor.x + along * (event.shiftKey ? 8 : 1) + KNOTS) % KNOTS;
    page.redraw();
  } else if (up) {
    if (!state.knots) state.knots = knotsOf(page.sample(), drawingRange(page.about().ranges[0]));
    for (let k = -6; k <= 6; k++) {
      const near = (cursor.x + k + KNOTS) % KNOTS;
      if (!page.about().periodic && Math.abs(near - cursor.x) > 6) continue;
      const change = up * STEP * (event.shiftKey ? 4 : 1) * Math.exp((-k * k) / 8);
      state.knots[near] = Math.max(0, Math.min(65535, Math.round(state.knots[near] + change)));
    }
    page.changed(true);
  }
  return Boolean(along || up);
}

function keyOnPlane(event, page) {
  const cursor = (page.cursor ??= { x: 0.5, y: 0.5 });
  const step = event.shiftKey ? 0.1 : 0.025;
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
  if (dx || dy) {
    cursor.x = Math.max(0, Math.min(1, cursor.x + dx * step));
    cursor.y = Math.max(0, Math.min(1, cursor.y + dy * step));
    page.redraw();
  } else if (event.key === "Enter" || event.key === " ") {
    drop(page, cursor);
    page.changed(true);
  } else {
    return false;
  }
  return true;
}
