// The kernel view: κ of the model on screen, and the sizes of its modes' coefficients.

import { fields } from "./api.js";
import { colour, drawLines, extent, prepare, short } from "./canvas.js";
import { errorScale, paint } from "./colours.js";

const byId = (id) => document.getElementById(id);
const STYLES = ["accent", "second", "third", "text"];
let shown = null;
let wanted = "";

/** Fetch the kernels of a model and draw them; a model without modes says so. */
export async function showKernels(about) {
  wanted = about.name;
  byId("kernel-body").hidden = !about.kernels;
  if (shown?.name === about.name) {
    drawKernels();
    return;
  }
  shown = null;
  byId("kernel-words").textContent = "Loading …";
  if (!about.kernels) {
    byId("kernel-words").textContent = "This model has no kernels that are mixtures of modes; those of SFO are.";
    return;
  }
  const { meta, values } = await fields(`/api/models/${encodeURIComponent(about.name)}/kernel`);
  // Another model may have been chosen meanwhile.
  if (wanted !== about.name || shown?.name === about.name) return;
  shown = { name: about.name, meta, values };
  const index = { tied: "", multi: ", one index per axis", separable: ", products over the axes" }[meta.index] ?? "";
  const axes = meta.shape.length > 1 ? ` per axis${index}` : "";
  byId("kernel-words").textContent =
    `κ = Σₗ Θₗ φₗ with ${meta.modes} modes of the basis ${meta.basis}${axes}; boundary: ${meta.boundary}. ` +
    "Gate and pointwise path are not part of κ.";
  const layer = byId("layer");
  layer.replaceChildren(...meta.sizes.map((_, i) => new Option(String(i + 1), String(i))));
  drawKernels();
}

export function drawKernels() {
  if (!shown || !byId("kernel").open) return;
  const { meta, values } = shown;
  const [layers, pairs, ...offsets] = meta.values;
  const layer = Math.min(Number(byId("layer").value) || 0, layers - 1);
  const size = offsets.reduce((a, b) => a * b, 1);
  const rows = Array.from({ length: pairs }, (_, p) => {
    const start = (layer * pairs + p) * size;
    return values.subarray(start, start + size);
  });
  const names = meta.titles[layer];
  const [far, half] = [reach(rows, offsets), Math.floor(offsets[0] / 2)];
  if (offsets.length === 1) {
    const near = (row) => Array.from(row.subarray(half - far, half + far + 1));
    const lines = rows.map((row, p) => ({ values: near(row), name: names[p].replaceAll(" ", ""), style: colour(STYLES[p]), width: 1.6 }));
    drawLines(byId("kappa"), lines, { x: [-far, far], y: extent(...rows), label: "offset x − x′ in points", ends: true });
  } else {
    drawImages(byId("kappa"), rows, names, offsets, far);
  }
  byId("kappa-words").textContent = `the four largest, in → out channel; ±${far} points`;
  byId("kappa").setAttribute("aria-label", `Learned kernels of layer ${layer + 1}, between channels ${names.join(", ")}`);
  const sizes = meta.sizes[layer];
  drawLines(byId("sizes"), [{ values: sizes, style: colour("accent") }], {
    x: [1, sizes.length], y: [0, 1.06 * Math.max(...sizes)], label: "order l of the mode", ends: true,
  });
  byId("sizes").setAttribute("aria-label", `Sizes of ${sizes.length} coefficients of layer ${layer + 1}, the largest ${short(Math.max(...sizes))}`);
}

const OUTSIDE = 0.1;

/** How far from offset 0, along one axis or two, all but a tenth of Σ κ² is reached. */
function reach(rows, offsets) {
  const [X, Y] = offsets.length > 1 ? offsets : [1, offsets[0]];
  const [cx, cy] = [Math.floor(X / 2), Math.floor(Y / 2)];
  const most = Math.min(...offsets.map((n) => n - 1 - Math.floor(n / 2)));
  let far = Math.min(offsets.length > 1 ? 4 : 8, most);
  for (const row of rows) {
    const rings = new Float64Array(Math.max(cx, cy) + 1);
    row.forEach((value, i) => (rings[Math.max(Math.abs(Math.floor(i / Y) - cx), Math.abs((i % Y) - cy))] += value * value));
    const all = rings.reduce((a, b) => a + b, 0);
    let left = rings.slice(far + 1).reduce((a, b) => a + b, 0);
    while (far < most && left > OUTSIDE * all) left -= rings[++far];
  }
  return far;
}

function drawImages(canvas, rows, names, [X, Y], far) {
  const [left, low, shown] = [Math.floor(X / 2) - far, Math.floor(Y / 2) - far, 2 * far + 1];
  const across = canvas.clientWidth < 420 ? 2 : 4;
  const gap = 10;
  const side = Math.floor((canvas.clientWidth - gap * (across - 1)) / across);
  const { context } = prepare(canvas, Math.ceil(rows.length / across) * (side + 42));
  rows.forEach((row, p) => {
    const image = paint(shown, shown, (c, r) => row[(left + c) * Y + low + shown - 1 - r], errorScale(row));
    const small = document.createElement("canvas");
    [small.width, small.height] = [shown, shown];
    small.getContext("2d").putImageData(image, 0, 0);
    const [x, y] = [(p % across) * (side + gap), Math.floor(p / across) * (side + 42)];
    context.imageSmoothingEnabled = false;
    context.drawImage(small, x, y + 18, side, side);
    context.fillText(names[p], x, y + 12);
    context.fillText(`up to ${short(errorScale(row).high)}`, x, y + side + 33);
  });
}
