// Requests to the server: JSON, and fields as float32 behind a JSON text.

const TRIES = 5;

/** Fetch an address; a busy server is asked again, any other refusal is an error in its words. */
async function ask(path, options = {}) {
  for (let tries = 0; ; tries++) {
    const answer = await fetch(path, options).catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer. Is `sfo play` still running in its terminal?");
    });
    if (answer.ok) return answer;
    const { error } = await answer.json().catch(() => ({ error: `The server said ${answer.status}.` }));
    if (answer.status !== 503 || tries >= TRIES) throw new Error(error);
    const seconds = Number(answer.headers.get("retry-after")) || 1;
    await new Promise((go) => setTimeout(go, 1000 * seconds));
  }
}

export async function json(path, signal) {
  return (await ask(path, { signal })).json();
}

/** Numbers and what is said about them: `{ meta, values }`. */
export async function fields(path, signal, body = null) {
  const options = body ? { method: "POST", body, signal } : { signal };
  const bytes = await (await ask(path, options)).arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const meta = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const values = new Float32Array(bytes, 4 + length);
  return { meta, values };
}
