// States that are drawn: a curve through knots on one axis, drops on a sample on two.

import { KNOTS } from "./address.js";

const TOP = 65535;
export const PLACES = 4096;
const WIDTH = 0.06;
const HEIGHT = 0.35;

/** The values between which a curve can be drawn, by those of the samples. */
export function drawingRange([low, high]) {
  const span = high - low || Math.abs(high) || 1;
  return [low >= 0 ? 0 : low - 0.25 * span, high + 0.25 * span];
}

export function knotValue(number, [low, high]) {
  return low + ((high - low) * number) / TOP;
}

export function knotNumber(value, [low, high]) {
  return Math.max(0, Math.min(TOP, Math.round((TOP * (value - low)) / (high - low))));
}

/** Knots along a field of one axis. */
export function knotsOf(values, range) {
  const n = values.length;
  return Array.from({ length: KNOTS }, (_, k) => {
    const place = (k * n) / KNOTS;
    const j = Math.floor(place);
    const share = place - j;
    const next = values[Math.min(j + 1, n - 1)];
    return knotNumber((1 - share) * values[j] + share * next, range);
  });
}

/** A smooth curve through knots, at n points (Catmull and Rom's). */
export function curveThrough(knots, n, range, periodic) {
  const at = (k) => {
    const index = periodic ? (k + KNOTS) % KNOTS : Math.max(0, Math.min(KNOTS - 1, k));
    return knotValue(knots[index], range);
  };
  return Float32Array.from({ length: n }, (_, j) => {
    const place = (j * KNOTS) / n;
    const k = Math.floor(place);
    const s = place - k;
    const [a, b, c, d] = [at(k - 1), at(k), at(k + 1), at(k + 2)];
    return b + 0.5 * s * (c - a + s * (2 * a - 5 * b + 4 * c - d + s * (3 * (b - c) + d - a)));
  });
}

/** Add drops to the first channel of a field `(channel, X, Y)`, in place. */
export function addDrops(values, [, X, Y], drops, [low, high], periodic) {
  for (const { x, y, sign } of drops) {
    const [cx, cy] = [x / PLACES, y / PLACES];
    const height = sign * HEIGHT * (high - low || 1);
    for (let i = 0; i < X; i++) {
      for (let j = 0; j < Y; j++) {
        let dx = Math.abs((i + 0.5) / X - cx);
        let dy = Math.abs((j + 0.5) / Y - cy);
        if (periodic) [dx, dy] = [Math.min(dx, 1 - dx), Math.min(dy, 1 - dy)];
        const bump = height * Math.exp(-(dx * dx + dy * dy) / (2 * WIDTH * WIDTH));
        const value = values[i * Y + j] + bump;
        // What is never negative, such as a depth, is not lowered beyond what was seen.
        values[i * Y + j] = low >= 0 && sign < 0 ? Math.max(Math.min(low, values[i * Y + j]), value) : value;
      }
    }
  }
  return values;
}
