// What is on screen, as text behind the # of the address, and back.

export const KNOTS = 64;
export const MOST_DROPS = 64;

function encode(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function decode(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** The text of a state; a curve is 64 numbers of 16 bits, a drop four bytes. */
export function toHash(state) {
  const parts = new URLSearchParams({ b: state.data, m: state.model, s: state.seed });
  if (state.knots) parts.set("k", encode(new Uint8Array(Uint16Array.from(state.knots).buffer)));
  if (state.drops.length) {
    const bytes = state.drops.flatMap(({ x, y, sign }) => [x >> 4, ((x & 15) << 4) | (y >> 8), y & 255, sign > 0 ? 1 : 0]);
    parts.set("d", encode(bytes));
  }
  parts.set("t", state.frame);
  parts.set("g", state.grid);
  if (state.field) parts.set("f", state.field);
  if (state.slice !== null) parts.set("z", state.slice);
  return `#${parts}`;
}

/** What a text says; what it does not, or not rightly, is left out. */
export function fromHash(text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const state = { data: parts.get("b"), model: parts.get("m"), knots: null, drops: [] };
  for (const [key, name] of [["s", "seed"], ["t", "frame"], ["g", "grid"], ["f", "field"], ["z", "slice"]]) {
    const value = parts.get(key);
    if (value !== null && /^\d{1,8}$/.test(value)) state[name] = Number(value);
  }
  try {
    const knots = decode(parts.get("k") ?? "");
    if (knots.length === 2 * KNOTS) state.knots = Array.from(new Uint16Array(knots.buffer));
    const drops = decode(parts.get("d") ?? "");
    for (let i = 0; i + 3 < drops.length && i < 4 * MOST_DROPS; i += 4) {
      const [a, b, c, sign] = drops.slice(i, i + 4);
      state.drops.push({ x: (a << 4) | (b >> 4), y: ((b & 15) << 8) | c, sign: sign ? 1 : -1 });
    }
  } catch {
    // An address that was cut off shows the sample itself.
  }
  return state;
}
