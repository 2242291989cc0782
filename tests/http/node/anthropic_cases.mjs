// The @anthropic-ai/sdk package for Node.
import assert from "node:assert/strict";

import { eventually, isPinged, load, runCases, running, servers, withoutIds } from "./cases.mjs";

const { default: Anthropic } = load("@anthropic-ai/sdk");
const { betaTool } = load("@anthropic-ai/sdk/helpers/beta/json-schema");

const make = (url, key = "any", maxRetries = 0) => new Anthropic({ baseURL: url, apiKey: key, maxRetries });
const client = make(servers.main);
const ask = { model: "any", messages: [{ role: "user", content: "Tell me a story." }], max_tokens: 40, temperature: 1, seed: 7 };
const endless = { ...ask, max_tokens: 1900, ignore_eos: true };

async function streamEqualsWhole(fields) {
  const whole = await client.messages.create({ ...ask, ...fields });
  const stream = client.messages.stream({ ...ask, ...fields });
  let text = "";
  stream.on("text", (delta) => { text += delta; });
  const streamed = await stream.finalMessage();
  assert.deepEqual(withoutIds(streamed.content), withoutIds(whole.content));
  assert.equal(streamed.stop_reason, whole.stop_reason);
  assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(text, whole.content.filter((block) => block.type === "text").map((block) => block.text).join(""));
  return whole;
}

const look = (found) => betaTool({
  name: "look", description: "Looks around.",
  inputSchema: { type: "object", properties: { at: { type: "string" } }, required: ["at"] },
  run: (input) => { found.push(input); return "Nothing but dust."; },
});

await runCases({
  "a stream that waits for its turn takes pings": async () => {
    const busy = make(servers.busy);
    const alone = await busy.messages.create(ask);
    const blockers = new AbortController();
    for (let i = 0; i < 8; ++i) {
      busy.messages.create(endless, { signal: blockers.signal }).catch(() => {});
    }
    await eventually(async () => (await running(servers.busy)) === 1);
    const waiting = busy.messages.stream(ask).finalMessage();
    assert.ok(await isPinged(servers.busy, "/v1/messages", ask));
    blockers.abort();
    assert.deepEqual(withoutIds((await waiting).content), withoutIds(alone.content));
  },
  "models": async () => {
    const models = await client.models.list();
    assert.equal(models.data.length, 1);
    assert.equal((await client.models.retrieve(models.data[0].id)).type, "model");
  },
  "message stream helper equals the whole message": async () => {
    const whole = await streamEqualsWhole({});
    assert.equal(whole.content[0].type, "text");
  },
  "message stream helper with thinking": async () => {
    const whole = await streamEqualsWhole({ thinking: { type: "enabled", budget_tokens: 8 }, max_tokens: 80 });
    assert.deepEqual(whole.content.map((block) => block.type), ["thinking", "text"]);
    assert.ok(whole.content[0].signature.length > 0);
  },
  "message stream helper accumulates calls": async () => {
    const whole = await streamEqualsWhole({
      tools: [{ name: "look", strict: true, input_schema: { type: "object", properties: { at: { enum: ["sea", "sky"] } }, required: ["at"] } }],
      tool_choice: { type: "any", disable_parallel_tool_use: true }, max_tokens: 300 });
    assert.equal(whole.stop_reason, "tool_use");
    assert.ok(["sea", "sky"].includes(whole.content.at(-1).input.at));
  },
  "tool runner runs the calls": async () => {
    const found = [];
    const runner = make(servers.scripted).beta.messages.toolRunner({ ...ask, temperature: 0, tools: [look(found)], max_iterations: 3 });
    const stops = [];
    for await (const message of runner) {
      stops.push(message.stop_reason);
    }
    assert.deepEqual(stops, ["tool_use", "tool_use", "tool_use"]);
    assert.ok(found.length >= 2);
    found.forEach((input) => assert.deepEqual(input, { at: "Room 7" }));
    const results = runner.params.messages.filter((message) => message.role === "user").flatMap((message) => message.content)
      .filter((block) => block.type === "tool_result");
    assert.ok(results.length >= 2);
  },
  "streaming tool runner runs the calls": async () => {
    const found = [];
    const runner = make(servers.scripted).beta.messages.toolRunner({
      ...ask, temperature: 0, tools: [look(found)], max_iterations: 2, stream: true });
    let calls = 0;
    for await (const stream of runner) {
      for await (const event of stream) {
        calls += event.type === "content_block_start" && event.content_block.type === "tool_use" ? 1 : 0;
      }
    }
    assert.equal(calls, 2);
    found.forEach((input) => assert.deepEqual(input, { at: "Room 7" }));
  },
  "token counts": async () => {
    const counted = await client.messages.countTokens({ model: "any", messages: ask.messages });
    const { usage } = await client.messages.create(ask);
    assert.equal(usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens, counted.input_tokens);
  },
  "abort of a helper's stream cancels": async () => {
    const stream = client.messages.stream(endless);
    await new Promise((resolve, reject) => { stream.once("text", resolve); stream.once("error", reject); });
    await eventually(async () => (await running(servers.main)) === 1);
    stream.abort();
    await assert.rejects(stream.done(), Anthropic.APIUserAbortError);
    await eventually(async () => (await running(servers.main)) === 0);
  },
  "leaving the loop over a stream cancels": async () => {
    for await (const event of await client.messages.create({ ...endless, stream: true })) {
      if (event.type === "content_block_delta") {
        break;
      }
    }
    await eventually(async () => (await running(servers.main)) === 0);
  },
  "errors have the client's types": async () => {
    await assert.rejects(client.messages.create({ ...ask, temperature: 9 }), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.equal(error.error.error.type, "invalid_request_error");
      assert.equal(error.error.request_id, error.requestID);
      return true;
    });
    await assert.rejects(make(servers.strict, "wrong").messages.create(ask), Anthropic.AuthenticationError);
    await assert.rejects(make(servers.strict, "K").messages.create(ask), Anthropic.NotFoundError);
  },
  "a full queue is a rate limit, and retries get through": async () => {
    const strict = make(servers.strict, "K");
    const own = { ...endless, model: servers.model };
    const streams = [];
    const fill = async () => { streams.push(await strict.messages.create({ ...own, stream: true })); };
    await assert.rejects(async () => { for (let i = 0; i < 9; ++i) { await fill(); } }, Anthropic.RateLimitError);
    const patient = make(servers.strict, "K", 20).messages.create({ ...own, max_tokens: 2 });
    streams.forEach((stream) => stream.controller.abort());
    assert.equal((await patient).usage.output_tokens, 2);
  },
});
