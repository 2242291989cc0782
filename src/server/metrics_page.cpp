// Every metric is written at every scrape, zero or not: dashboards and alerts need no "absent".
// The names of vLLM are kept where the meaning is the same, so that its dashboards work.
#include "server/metrics_page.h"

#include <fmt/format.h>

#include "server/body_budget.h"
#include "server/metrics_text.h"
#include "server/server_metrics.h"

namespace sluice {
namespace {

struct Snapshot {
  EngineStatus engine;
  AnswerCounts answers;
  HttpRequestCounts http;
  Histogram grammar_seconds;
};

double fraction(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

MetricLabels with(MetricLabels labels, std::string_view key, std::string_view value) {
  labels.emplace_back(key, value);
  return labels;
}

void write_requests(MetricsText& text, const MetricLabels& labels, const Snapshot& now) {
  text.gauge({"vllm:num_requests_running", "Sequences being computed."}, labels,
             static_cast<double>(now.engine.running));
  text.gauge({"vllm:num_requests_waiting", "Sequences waiting to be computed."}, labels,
             static_cast<double>(now.engine.waiting));
  text.gauge({"vllm:kv_cache_usage_perc",
              "Share of the KV blocks for running sequences that they hold; 1 is all."},
             labels, fraction(now.engine.kv_blocks_running, now.engine.kv_blocks_max));
  const AnswerUsage& usage = now.answers.usage;
  text.counter({"vllm:prompt_tokens_total", "Prompt tokens as replies report them."}, labels,
               static_cast<double>(usage.prompt_tokens));
  text.counter({"vllm:generation_tokens_total", "Answer tokens as replies report them."}, labels,
               static_cast<double>(usage.completion_tokens));
  for (std::size_t i = 0; i < kAnswerOutcomes.size(); ++i) {
    text.counter({"vllm:request_success_total", "Answers that ended, by how."},
                 with(labels, "finished_reason", to_string(kAnswerOutcomes[i])),
                 static_cast<double>(now.answers.outcomes[i]));
  }
  text.counter({"vllm:num_preemptions_total", "Sequences that had to give up their place."}, labels,
               static_cast<double>(now.engine.preemptions));
  text.counter({"vllm:prefix_cache_queries_total",
                "Prompt tokens looked up in the prefix cache: all but the last of each prompt."},
               labels, static_cast<double>(now.engine.metrics.wanted_tokens));
  text.counter({"vllm:prefix_cache_hits_total", "Prompt tokens that were not computed again."},
               labels, static_cast<double>(now.engine.metrics.reused_tokens));
}

// Nothing is drafted yet; dashboards divide these by each other.
void write_speculation(MetricsText& text, const MetricLabels& labels) {
  text.counter({"vllm:spec_decode_num_drafts_total", "Drafts."}, labels, 0.0);
  text.counter({"vllm:spec_decode_num_draft_tokens_total", "Drafted tokens."}, labels, 0.0);
  text.counter({"vllm:spec_decode_num_accepted_tokens_total", "Drafted tokens that were right."},
               labels, 0.0);
  text.counter({"vllm:spec_decode_num_accepted_tokens_per_pos_total",
                "Drafted tokens that were right, by their place in the draft."},
               with(labels, "position", "0"), 0.0);
}

void write_latencies(MetricsText& text, const MetricLabels& labels, const Snapshot& now) {
  const EngineMetrics& engine = now.engine.metrics;
  text.histogram({"vllm:time_to_first_token_seconds", "From submission to the first token."},
                 labels, engine.first_token_seconds);
  text.histogram({"vllm:inter_token_latency_seconds", "Between two tokens of a sequence."}, labels,
                 engine.between_tokens_seconds);
  text.histogram({"vllm:request_time_per_output_token_seconds",
                  "Mean time per token of a sequence, after its first."},
                 labels, engine.per_token_seconds);
  text.histogram({"vllm:e2e_request_latency_seconds", "From submission to the end."}, labels,
                 engine.end_to_end_seconds);
  text.histogram({"vllm:request_queue_time_seconds", "From submission to admission."}, labels,
                 engine.queue_seconds);
  text.histogram({"vllm:request_prefill_time_seconds", "From admission to the first token."},
                 labels, engine.prefill_seconds);
  text.histogram({"vllm:request_decode_time_seconds", "From the first token to the end."}, labels,
                 engine.decode_seconds);
  text.histogram({"vllm:request_inference_time_seconds", "From admission to the end."}, labels,
                 engine.inference_seconds);
  text.histogram({"vllm:request_prompt_tokens", "Prompt tokens of a sequence."}, labels,
                 engine.prompt_tokens);
  text.histogram({"vllm:request_generation_tokens", "Answer tokens of a sequence."}, labels,
                 engine.answer_tokens);
  text.histogram({"vllm:request_params_max_tokens", "Longest answer a request may get."}, labels,
                 now.answers.tokens_max_asked);
  text.histogram({"vllm:request_params_n", "Answers a request asks for."}, labels,
                 now.answers.choices_asked);
  text.histogram({"vllm:iteration_tokens_total", "Tokens computed in one step."}, labels,
                 engine.step_tokens);
}

void write_engine(MetricsText& text, const Snapshot& now) {
  const EngineStatus& engine = now.engine;
  text.histogram({"server_step_seconds", "One step: plan, forward pass, sampling."}, {},
                 engine.metrics.step_seconds);
  constexpr MetricName kComputed{"server_computed_tokens_total", "Tokens computed, by phase."};
  text.counter(kComputed, {{"phase", "prefill"}},
               static_cast<double>(engine.metrics.prefilled_tokens));
  text.counter(kComputed, {{"phase", "decode"}},
               static_cast<double>(engine.metrics.decoded_tokens));
  text.counter({"server_cached_tokens_total", "Prompt tokens that replies report as cached."}, {},
               static_cast<double>(now.answers.usage.cached_tokens));
  constexpr MetricName kCalls{"server_tool_calls_total",
                              "Tool calls in answers, by how they ended."};
  const ToolCallCounts& calls = now.answers.calls;
  text.counter(kCalls, {{"outcome", "ok"}}, static_cast<double>(calls.ok));
  text.counter(kCalls, {{"outcome", "repaired"}}, static_cast<double>(calls.repaired));
  text.counter(kCalls, {{"outcome", "literal"}}, static_cast<double>(calls.literal));
  text.counter(kCalls, {{"outcome", "truncated"}}, static_cast<double>(calls.truncated));
  text.histogram({"server_schema_compile_seconds",
                  "Compiling a schema, another grammar, or the grammar of a request's tools."},
                 {}, now.grammar_seconds);
  text.counter({"server_reasoning_tokens_total", "Answer tokens that were reasoning."}, {},
               static_cast<double>(now.answers.usage.reasoning_tokens));
}

void write_cache(MetricsText& text, const EngineStatus& engine) {
  for (std::size_t i = 0; i < kReuseLimits.size(); ++i) {
    constexpr MetricName kLookups{"server_cache_lookups_total",
                                  "Prompts looked up in the prefix cache, by whether something was "
                                  "reused and why it was no more."};
    const std::string_view reason = to_string(kReuseLimits[i]);
    const PromptLookups& lookups = engine.metrics.lookups[i];
    text.counter(kLookups, {{"result", "hit"}, {"reason", reason}},
                 static_cast<double>(lookups.hits));
    text.counter(kLookups, {{"result", "miss"}, {"reason", reason}},
                 static_cast<double>(lookups.misses));
  }
  text.gauge({"server_cache_checkpoints", "Recurrent states kept for later requests."},
             {{"tier", "device"}}, static_cast<double>(engine.kept_checkpoints));
  text.gauge({"server_pinned_prefixes", "Prefixes that stay until they are unpinned."}, {},
             static_cast<double>(engine.pinned_prefixes));
  text.gauge({"server_cache_bytes", "Memory of kept prefixes."}, {{"tier", "device"}},
             static_cast<double>(engine.kept_bytes));
  constexpr MetricName kUsed{"server_memory_bytes",
                             "Memory of running sequences and kept prefixes, by kind."};
  text.gauge(kUsed, {{"kind", "kv"}}, static_cast<double>(engine.kv_bytes));
  text.gauge(kUsed, {{"kind", "state"}}, static_cast<double>(engine.cache_bytes - engine.kv_bytes));
  text.gauge({"server_memory_limit_bytes", "What both kinds may take together."}, {},
             static_cast<double>(engine.cache_bytes_max));
  constexpr MetricName kStates{"server_cache_evictions_total", "Kept recurrent states given up."};
  text.counter(kStates, {{"reason", "capacity"}}, static_cast<double>(engine.evicted_checkpoints));
  text.counter(kStates, {{"reason", "flush"}},
               static_cast<double>(engine.metrics.flushed_checkpoints));
  constexpr MetricName kBlocks{"server_cache_evicted_blocks_total", "Kept KV blocks given up."};
  text.counter(kBlocks, {{"reason", "capacity"}}, static_cast<double>(engine.evicted_blocks));
  text.counter(kBlocks, {{"reason", "flush"}}, static_cast<double>(engine.metrics.flushed_blocks));
  constexpr MetricName kPictures{"server_pictures_total",
                                 "Pictures and pairs of video frames that prompts needed."};
  text.counter(kPictures, {{"result", "encoded"}}, static_cast<double>(engine.pictures_encoded));
  text.counter(kPictures, {{"result", "reused"}}, static_cast<double>(engine.pictures_reused));
  text.gauge({"server_picture_bytes", "Memory of encoded pictures kept for later requests."}, {},
             static_cast<double>(engine.picture_bytes));
  constexpr MetricName kFiles{"server_cache_file_tokens_total",
                              "Tokens of kept prefixes written to files and read from them."};
  text.counter(kFiles, {{"operation", "save"}}, static_cast<double>(engine.metrics.saved_tokens));
  text.counter(kFiles, {{"operation", "load"}}, static_cast<double>(engine.metrics.loaded_tokens));
}

void write_http(MetricsText& text, const HttpRequestCounts& http, const BodyBudget& bodies) {
  text.gauge({"server_body_bytes", "Memory of request bodies that are arriving."}, {},
             static_cast<double>(bodies.bytes_used()));
  text.gauge({"server_body_limit_bytes", "What they may take together."}, {},
             static_cast<double>(bodies.bytes_max()));
  for (const auto& [key, count] : http.requests) {
    const auto& [handler, method, status] = key;
    const std::string code = fmt::format("{}", status);
    text.counter({"http_requests_total", "HTTP requests."},
                 {{"handler", handler}, {"method", method}, {"status", code}},
                 static_cast<double>(count));
  }
  for (const auto& [handler, seconds] : http.seconds) {
    text.histogram({"http_request_duration_seconds",
                    "From the first byte of a request to the last of its reply."},
                   {{"handler", handler}}, seconds);
  }
  text.counter(
      {"server_client_disconnects_total", "Connections that ended before the reply was complete."},
      {}, static_cast<double>(http.cut_off));
}

void write_constants(MetricsText& text, const MetricLabels& labels, const Backend& backend,
                     const EngineStatus& engine) {
  const std::string block_tokens = fmt::format("{}", kKvBlockTokens);
  const std::string block_count = fmt::format("{}", engine.kv_blocks_max);
  MetricLabels cache = labels;
  cache.emplace_back("block_size", block_tokens);
  cache.emplace_back("num_gpu_blocks", block_count);
  cache.emplace_back("enable_prefix_caching",
                     backend.engine->config().reuse_bytes > 0 ? "True" : "False");
  text.gauge({"vllm:cache_config_info", "How the KV cache is set up."}, cache, 1.0);
  const ServedModel& model = *backend.model;
  text.gauge({"server_build_info", "What runs here."},
             {{"version", model.version},
              {"build", model.build},
              {"quant", model.quantisation},
              {"fingerprint", model.fingerprint}},
             1.0);
}

}  // namespace

void handle_metrics(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const Snapshot now{.engine = backend.engine->status(),
                     .answers = backend.metrics->answers(),
                     .http = backend.metrics->http(),
                     .grammar_seconds = backend.metrics->grammar_seconds()};
  const MetricLabels labels{{"model_name", backend.model->id}, {"engine", "0"}};
  MetricsText text;
  write_requests(text, labels, now);
  write_speculation(text, labels);
  write_latencies(text, labels, now);
  write_engine(text, now);
  write_cache(text, now.engine);
  write_http(text, now.http, *backend.bodies);
  write_constants(text, labels, backend, now.engine);
  exchange->reply({.body = text.take(), .content_type = std::string(MetricsText::kContentType)});
}

}  // namespace sluice
