// The AI SDK of Vercel, over its OpenAI-compatible and Anthropic providers.
import assert from "node:assert/strict";

import { eventually, load, runCases, running, servers } from "./cases.mjs";

const { APICallError, generateObject, generateText, stepCountIs, streamText, tool } = load("ai");
const { createOpenAICompatible } = load("@ai-sdk/openai-compatible");
const { createAnthropic } = load("@ai-sdk/anthropic");
const { z } = load("zod");

globalThis.AI_SDK_LOG_WARNINGS = false; // they go to the standard output
const thinking = { anthropic: { thinking: { type: "enabled", budgetTokens: 10 } } };
const providers = {
  compatible: (url, apiKey = "any") => createOpenAICompatible({
    name: "sluice", baseURL: `${url}/v1`, apiKey, includeUsage: true, supportsStructuredOutputs: true })("any"),
  anthropic: (url, apiKey = "any") => createAnthropic({ baseURL: `${url}/v1`, apiKey })("any"),
};
const ask = { prompt: "Tell me a story.", maxOutputTokens: 60, maxRetries: 0, providerOptions: thinking };
const direct = { sluice: { reasoningEffort: "none" } };  // Anthropic's provider does not ask for thinking by itself

async function partsOf(stream) {
  const parts = { text: "", reasoning: "", calls: [], results: 0 };
  for await (const part of stream.fullStream) {
    if (part.type === "error") {
      throw part.error;
    }
    parts.text += part.type === "text-delta" ? part.text : "";
    parts.reasoning += part.type === "reasoning-delta" ? part.text : "";
    parts.calls.push(...(part.type === "tool-call" ? [[part.toolName, part.input]] : []));
    parts.results += part.type === "tool-result" ? 1 : 0;
  }
  return parts;
}

async function streamIsWhole(make) {
  const whole = await generateText({ ...ask, model: make(servers.main), seed: 7 });
  const stream = streamText({ ...ask, model: make(servers.main), seed: 7 });
  const { text, reasoning } = await partsOf(stream);
  const usage = await stream.usage;
  if (make === providers.compatible) {  // Anthropic's API has no seed, and with thinking no temperature
    assert.equal(text, whole.text);
    assert.equal(reasoning, whole.reasoningText ?? "");
    assert.equal(usage.outputTokens, whole.usage.outputTokens);
  }
  assert.ok(reasoning.length > 0 && whole.reasoningText.length > 0);
  assert.equal(usage.inputTokens, whole.usage.inputTokens);
  assert.ok(usage.reasoningTokens > 0);
}

async function callsAreRun(make) {
  const seen = [];
  const look = tool({ description: "Looks around.", inputSchema: z.object({ at: z.string() }),
                      execute: async (input) => { seen.push(input); return "Nothing but dust."; } });
  const { calls, results } = await partsOf(streamText({
    model: make(servers.scripted), prompt: "Look.", tools: { look }, temperature: 0, maxOutputTokens: 200, maxRetries: 0,
    providerOptions: direct, stopWhen: stepCountIs(2) }));
  assert.deepEqual(calls, [["look", { at: "Room 7" }], ["look", { at: "Room 7" }]]);
  assert.deepEqual([seen.length, results], [2, 2]);
}

async function objectsFollow(make) {
  const schema = z.object({ sky: z.enum(["blue", "grey"]), wind: z.boolean() });
  const { object } = await generateObject({ model: make(servers.main), schema, prompt: "How is it?", maxOutputTokens: 400,
                                          maxRetries: 0, providerOptions: direct });
  schema.parse(object);
}

async function errorsAreFinal(make) {
  for (const [url, key, prompt, status] of [[servers.main, "any", "long ".repeat(5000), 400], [servers.strict, "wrong", "Hi", 401]]) {
    await assert.rejects(generateText({ model: make(url, key), prompt }), (error) => {
      assert.ok(APICallError.isInstance(error), error.name);
      assert.deepEqual([error.statusCode, error.isRetryable], [status, false]);
      return true;
    });
  }
}

async function abortCancels(make) {
  const controller = new AbortController();
  const stream = streamText({ model: make(servers.busy), prompt: "Go on.", maxOutputTokens: 1900, maxRetries: 0,
                              abortSignal: controller.signal });
  for await (const part of stream.fullStream) {
    if (part.type.endsWith("-delta")) {
      controller.abort();
    }
  }
  await eventually(async () => (await running(servers.busy)) === 0);
}

const { compatible, anthropic } = providers;

await runCases({
  "compatible: a stream is the whole answer, with reasoning and counts": async () => streamIsWhole(compatible),
  "anthropic: a stream is the whole answer, with reasoning and counts": async () => streamIsWhole(anthropic),
  "compatible: calls are made and their results sent": async () => callsAreRun(compatible),
  "anthropic: calls are made and their results sent": async () => callsAreRun(anthropic),
  "compatible: objects follow their schema": async () => objectsFollow(compatible),
  "anthropic: objects follow their schema": async () => objectsFollow(anthropic),
  "compatible: errors are not repeated": async () => errorsAreFinal(compatible),
  "anthropic: errors are not repeated": async () => errorsAreFinal(anthropic),
  "compatible: an abort cancels": async () => abortCancels(compatible),
  "anthropic: an abort cancels": async () => abortCancels(anthropic),
});
