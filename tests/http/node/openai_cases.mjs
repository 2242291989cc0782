// The openai package for Node.
import assert from "node:assert/strict";

import { eventually, isPinged, load, runCases, running, servers, withoutIds } from "./cases.mjs";

const { default: OpenAI } = load("openai");
const { zodResponseFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const make = (url, key = "any", maxRetries = 0) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries });
const client = make(servers.main);
const ask = { model: "any", messages: [{ role: "user", content: "Tell me a story." }], temperature: 1, seed: 7, max_tokens: 40 };
const endless = { ...ask, max_tokens: 1900, ignore_eos: true };
const usageWithoutReuse = ({ prompt_tokens, completion_tokens, total_tokens }) => ({ prompt_tokens, completion_tokens, total_tokens });

async function streamEqualsWhole(fields) {
  const whole = await client.chat.completions.create({ ...ask, ...fields });
  const stream = client.chat.completions.stream({ ...ask, ...fields, stream_options: { include_usage: true } });
  const streamed = await stream.finalChatCompletion();
  const comparable = (reply) => reply.choices.map(({ index, message: { content, tool_calls }, finish_reason, logprobs }) =>
    withoutIds({ index, content: content ?? null, tool_calls: tool_calls ?? [], finish_reason, logprobs: logprobs?.content ?? null }));
  assert.deepEqual(comparable(streamed), comparable(whole));
  assert.deepEqual(usageWithoutReuse(streamed.usage), usageWithoutReuse(whole.usage));
  return whole;
}

const look = (found) => ({
  type: "function",
  function: {
    name: "look", description: "Looks around.", parse: JSON.parse,
    parameters: { type: "object", properties: { at: { type: "string" } }, required: ["at"] },
    function: (input) => { found.push(input); return "Nothing but dust."; },
  },
});

await runCases({
  "a stream that waits for its turn takes pings": async () => {
    const busy = make(servers.busy);
    const alone = await busy.chat.completions.create({ ...ask, enable_thinking: false });
    const blockers = new AbortController();
    busy.chat.completions.create({ ...endless, n: 8 }, { signal: blockers.signal }).catch(() => {});
    await eventually(async () => (await running(servers.busy)) === 1);
    const waiting = busy.chat.completions.stream({ ...ask, enable_thinking: false }).finalChatCompletion();
    assert.ok(await isPinged(servers.busy, "/v1/chat/completions", ask));
    blockers.abort();
    assert.equal((await waiting).choices[0].message.content, alone.choices[0].message.content);
  },
  "models": async () => {
    const models = await client.models.list();
    assert.equal(models.data.length, 1);
    assert.equal((await client.models.retrieve(models.data[0].id)).object, "model");
  },
  "chat stream helper equals the whole reply": async () => {
    const whole = await streamEqualsWhole({ enable_thinking: false });
    assert.ok(whole.choices[0].message.content.length > 0);
  },
  "chat stream helper with several choices and logprobs": async () => {
    await streamEqualsWhole({ n: 3, logprobs: true, top_logprobs: 2, enable_thinking: false });
  },
  "chat stream helper accumulates calls": async () => {
    const { type, function: { name, parameters } } = look([]);
    const whole = await streamEqualsWhole({
      tools: [{ type, function: { name, parameters } }], tool_choice: "required", thinking_budget: 4, max_tokens: 300 });
    assert.equal(whole.choices[0].message.tool_calls[0].function.name, "look");
  },
  "chat stream gives both keys of reasoning": async () => {
    let reasoning = "";
    for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
      const delta = chunk.choices[0].delta;
      assert.equal(delta.reasoning, delta.reasoning_content);
      reasoning += delta.reasoning_content ?? "";
    }
    assert.ok(reasoning.length > 0);
  },
  "parse follows a zod schema": async () => {
    const schema = z.object({ yes: z.boolean(), colour: z.enum(["red", "blue"]) });
    const reply = await client.chat.completions.parse({
      ...ask, max_tokens: 200, enable_thinking: false, response_format: zodResponseFormat(schema, "answer") });
    assert.ok(["red", "blue"].includes(reply.choices[0].message.parsed.colour));
    assert.equal(typeof reply.choices[0].message.parsed.yes, "boolean");
  },
  "completions": async () => {
    const body = { model: "any", prompt: "Once", max_tokens: 20, temperature: 0 };
    const whole = await client.completions.create(body);
    let text = "";
    for await (const chunk of await client.completions.create({ ...body, stream: true })) {
      text += chunk.choices[0].text;
    }
    assert.equal(text, whole.choices[0].text);
  },
  "responses stream helper equals the whole response": async () => {
    const body = { model: "any", input: "Tell me a story.", max_output_tokens: 60, temperature: 1, seed: 7, thinking_budget: 4 };
    const whole = await client.responses.create(body);
    const stream = client.responses.stream(body);
    let text = "";
    stream.on("response.output_text.delta", (event) => { text += event.delta; });
    const streamed = await stream.finalResponse();
    assert.deepEqual(withoutIds(streamed.output), withoutIds(whole.output));
    assert.equal(streamed.status, whole.status);
    assert.equal(streamed.output_text, whole.output_text);
    assert.equal(text, whole.output_text);
    assert.equal((await client.responses.retrieve(streamed.id)).id, streamed.id);
    const next = await client.responses.create({ ...body, input: "And then?", previous_response_id: streamed.id });
    assert.ok(next.usage.input_tokens > streamed.usage.input_tokens);
    const items = await client.responses.inputItems.list(next.id);
    assert.ok(items.data.length > 0);
    await client.responses.delete(streamed.id);
  },
  "tool runner runs the calls": async () => {
    const found = [];
    const scripted = make(servers.scripted);
    const runner = scripted.chat.completions.runTools({
      model: "any", messages: ask.messages, temperature: 0, chat_template_kwargs: { enable_thinking: false }, tools: [look(found)],
    }, { maxChatCompletions: 3 });
    await runner.done();
    assert.deepEqual(found, [{ at: "Room 7" }, { at: "Room 7" }, { at: "Room 7" }]);
    const roles = runner.messages.map((message) => message.role);
    assert.deepEqual(roles.slice(0, 5), ["user", "assistant", "tool", "assistant", "tool"]);
  },
  "streaming tool runner runs the calls": async () => {
    const found = [];
    const runner = make(servers.scripted).chat.completions.runTools({
      model: "any", stream: true, messages: ask.messages, temperature: 0, chat_template_kwargs: { enable_thinking: false },
      tools: [look(found)],
    }, { maxChatCompletions: 2 });
    await runner.done();
    assert.deepEqual(found, [{ at: "Room 7" }, { at: "Room 7" }]);
  },
  "abort of a helper's stream cancels": async () => {
    const stream = client.chat.completions.stream(endless);
    await new Promise((resolve, reject) => { stream.once("chunk", resolve); stream.once("error", reject); });
    await eventually(async () => (await running(servers.main)) === 1);
    stream.abort();
    await assert.rejects(stream.done(), OpenAI.APIUserAbortError);
    await eventually(async () => (await running(servers.main)) === 0);
  },
  "leaving the loop over a stream cancels": async () => {
    for await (const chunk of await client.chat.completions.create({ ...endless, stream: true })) {
      assert.ok(chunk.id);
      break;
    }
    await eventually(async () => (await running(servers.main)) === 0);
  },
  "abort of a whole reply cancels": async () => {
    const controller = new AbortController();
    const reply = client.chat.completions.create(endless, { signal: controller.signal });
    await eventually(async () => (await running(servers.main)) === 1);
    controller.abort();
    await assert.rejects(reply, OpenAI.APIUserAbortError);
    await eventually(async () => (await running(servers.main)) === 0);
  },
  "errors have the client's types": async () => {
    await assert.rejects(client.chat.completions.create({ ...ask, temperature: 9 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, "temperature");
      assert.equal(error.code, "invalid_value");
      assert.match(error.requestID, /^req_/);
      return true;
    });
    await assert.rejects(make(servers.strict, "wrong").models.list(), OpenAI.AuthenticationError);
    await assert.rejects(make(servers.strict, "K").chat.completions.create(ask), OpenAI.NotFoundError);
    await assert.rejects(client.embeddings.create({ model: "any", input: "x" }), OpenAI.BadRequestError);
  },
  "a full queue is a rate limit, and retries get through": async () => {
    const strict = make(servers.strict, "K");
    const own = { ...endless, model: servers.model };
    const streams = [];
    const fill = async () => { streams.push(await strict.chat.completions.create({ ...own, stream: true })); };
    await assert.rejects(async () => { for (let i = 0; i < 9; ++i) { await fill(); } }, OpenAI.RateLimitError);
    const patient = make(servers.strict, "K", 20).chat.completions.create({ ...own, max_tokens: 2 });
    streams.forEach((stream) => stream.controller.abort());
    assert.equal((await patient).usage.completion_tokens, 2);
  },
});
