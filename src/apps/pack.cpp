#include "apps/pack.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "apps/console.h"
#include "apps/progress_bar.h"
#include "apps/served_model_facts.h"
#include "base/clock.h"
#include "platform/thread_pool.h"
#include "weights/model_config.h"
#include "weights/pack_model.h"
#include "weights/safetensors.h"

namespace sluice::apps {
namespace {

struct Options {
  RuntimeOptions runtime;
  std::string out;
};

void print_report(const Manifest& manifest) {
  fmt::print("{:<64}{:>8}{:>14}{:>10}\n", "tensor", "form", "bytes", "error");
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.packed) {
      fmt::print("{:<64}{:>8}{:>14}{:>10.5f}\n", tensor.name, kernels::to_string(*tensor.packed),
                 tensor.bytes, tensor.error);
    }
  }
}

Result<int> run_pack(const Options& options) {
  const std::filesystem::path directory = options.runtime.model;
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const Checkpoint checkpoint = SLUICE_TRY(Checkpoint::open(directory));
  const WeightPreset preset = options.runtime.preset.value_or(WeightPreset::int8);
  const int threads =
      options.runtime.threads == 0 ? available_cpus() : static_cast<int>(options.runtime.threads);
  ThreadPool pool(threads);
  const SteadyClock clock;
  const Clock::TimePoint begin = clock.now();
  Manifest manifest;
  {
    ProgressBar bar("packing", "bytes", !options.runtime.quiet);
    manifest = SLUICE_TRY(
        pack_model(config, checkpoint,
                   {.out = options.out,
                    .preset = preset,
                    .source = model_fingerprint(checkpoint, WeightPreset::bf16)},
                   pool, [&](std::size_t done, std::size_t total) { bar.update(done, total); }));
  }
  print_report(manifest);
  fmt::print("{}: {} as {} in {:.1f} s; error: root mean square, relative to the weights\n",
             options.out, format_bytes(manifest.weight_bytes), to_string(preset),
             seconds_between(begin, clock.now()));
  return kExitSuccess;
}

}  // namespace

void add_pack_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "pack", "Write a directory that loads at once, in a narrower format (int8 without --preset)");
  add_runtime_options(*command, options->runtime, true);
  command->add_option("-o,--out", options->out, "The directory to make; must not exist")
      ->type_name("DIR")
      ->required();
  command->callback([options, &action] { action = [options] { return run_pack(*options); }; });
}

}  // namespace sluice::apps
