// The program `sluice`: dispatches to one command (the files of the same names) and turns its
// Result into an exit code. 0 success, 1 error, 2 wrong usage, 130 interrupted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "apps/bench.h"
#include "apps/chat.h"
#include "apps/console.h"
#include "apps/generate.h"
#include "apps/inspect.h"
#include "apps/model_loader.h"
#include "apps/options.h"
#include "apps/pack.h"
#include "apps/score.h"
#include "apps/serve.h"
#include "apps/validate.h"
#include "apps/version.h"
#include "kernels/kernel_table.h"
#include "platform/cpu_features.h"

namespace sluice::apps {
namespace {

constexpr const char* kDescription =
    "Sluice runs the gated-delta hybrid language models (Qwen3.5, Qwen3.6) on CPUs.";
constexpr const char* kFooter =
    "Try:  sluice serve                          serve the small embedded model\n"
    "      sluice generate MODEL --chat 'Hello'  one answer\n"
    "      sluice validate MODEL                 is it right on this machine?\n"
    "      sluice COMMAND --help                 the options of a command\n"
    "SLUICE_FORCE_ISA=ref|avx2|avx512|amx chooses the kernels; the answers stay the same.";

int print_error(const Error& error) {
  print_note("sluice: error: {}\n", error.message);
  return kExitError;
}

int print_version() {
  fmt::print("sluice {}\n", version());
  const CpuFeatures cpu = detect_cpu_features();
  const Result<const kernels::KernelTable*> table = choose_kernels(cpu);
  if (!table) {
    return print_error(table.error());
  }
  fmt::print("{}\n", describe_machine(cpu, **table));
  const Result<void> flushed = flush_stdout();
  return flushed ? kExitSuccess : print_error(flushed.error());
}

int print_usage_error(const CLI::App& program, const CLI::ParseError& error) {
  std::string command = "sluice";
  for (const CLI::App* chosen : program.get_subcommands()) {
    command += " " + chosen->get_name();
  }
  print_note("sluice: error: {}\nTry: {} --help\n", error.what(), command);
  return kExitUsage;
}

int run(int argc, char** argv) {
  CLI::App program(kDescription, "sluice");
  program.footer(kFooter);
  program.require_subcommand(0, 1);
  bool show_version = false;
  program.add_flag("--version", show_version, "Version, CPU and kernels");
  Action action;
  add_serve_command(program, action);
  add_chat_command(program, action);
  add_generate_command(program, action);
  add_score_command(program, action);
  add_inspect_command(program, action);
  add_pack_command(program, action);
  add_validate_command(program, action);
  add_bench_command(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      fmt::print("{}", program.help());
      const Result<void> flushed = flush_stdout();
      return flushed ? kExitSuccess : print_error(flushed.error());
    }
    return print_usage_error(program, error);
  }
  if (show_version) {
    return print_version();
  }
  if (!action) {
    fmt::print("{}", program.help());
    return kExitUsage;
  }
  const Result<int> result = action();
  if (!result) {
    return print_error(result.error());
  }
  const Result<void> flushed = flush_stdout();
  return flushed || *result != kExitSuccess ? *result : print_error(flushed.error());
}

}  // namespace
}  // namespace sluice::apps

int main(int argc, char** argv) {
  sluice::apps::open_standard_streams();
  // Only libraries can still throw here: no memory at start, a stdout that breaks while printing.
  try {
    return sluice::apps::run(argc, argv);
  } catch (const std::exception& error) {
    sluice::apps::print_note("sluice: error: {}\n", error.what());
    return sluice::apps::kExitError;
  }
}
