// Runs the cases of one file and says of each, in a line of JSON, whether it passed.
//   node FILE '{"modules": folder with node_modules, "main": url, "scripted": url, "strict": url, "busy": url}'
import { createRequire } from "node:module";
import path from "node:path";

const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.modules, "package.json"));

export const servers = given;
export const load = (name) => require(name);

export async function runCases(cases) {
  for (const [name, run] of Object.entries(cases)) {
    let error = null;
    try {
      await run();
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.stack : String(thrown);
    }
    console.log(JSON.stringify({ case: name, error }));
  }
}

// Of a server: how many sequences it computes.
export async function running(url) {
  return (await (await fetch(`${url}/health`)).json()).running;
}

// Whether a stream gets a ping while it waits for its turn; it is given up then.
export async function isPinged(url, path, body) {
  const asked = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...body, stream: true }) };
  const decoder = new TextDecoder();
  let received = "";
  for await (const bytes of (await fetch(url + path, asked)).body) {
    received += decoder.decode(bytes, { stream: true });
    if (received.includes("ping")) {
      return true;
    }
  }
  return false;
}

export async function eventually(condition) {
  for (let i = 0; i < 1000; ++i) {
    if (await condition()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it did not become so: ${condition}`);
}

// A copy without what differs from answer to answer.
export function withoutIds(value) {
  const random = new Set(["id", "call_id", "created", "created_at", "completed_at", "signature", "parsed", "parsed_arguments"]);
  if (Array.isArray(value)) {
    return value.map(withoutIds);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(Object.entries(value).filter(([key, part]) => !random.has(key) && part !== undefined)
    .map(([key, part]) => [key, withoutIds(part)]));
}
