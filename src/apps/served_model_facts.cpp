#include "apps/served_model_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "apps/version.h"
#include "kernels/layout.h"
#include "platform/mapped_file.h"
#include "weights/packed_model.h"

namespace sluice::apps {
namespace {

namespace fs = std::filesystem;

// FNV-1a, 64 bits: names a configuration, defends against nobody.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    }
    hash_ = (hash_ ^ 0xffU) * 0x100000001b3ULL;  // "ab","c" differs from "a","bc"
  }

  std::string to_string() const { return fmt::format("fp_{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

void add_files(Fingerprint& fingerprint, const fs::path& directory,
               std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Result<MappedFile> file = MappedFile::open(directory / name);
    if (file) {
      fingerprint.add({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    }
  }
}

constexpr std::size_t kSampleBytes = 64;
constexpr std::size_t kSamplesPerTensor = 8;

void add_samples(Fingerprint& fingerprint, std::span<const std::byte> bytes) {
  const std::size_t stride = std::max(bytes.size() / kSamplesPerTensor, kSampleBytes);
  for (std::size_t at = 0; at < bytes.size(); at += stride) {
    const std::span<const std::byte> sample =
        bytes.subspan(at, std::min(kSampleBytes, bytes.size() - at));
    fingerprint.add({reinterpret_cast<const char*>(sample.data()), sample.size()});
  }
}

void add_tensors(Fingerprint& fingerprint, const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    fingerprint.add(name);
    fingerprint.add(dtype_name(tensor.dtype));
    fingerprint.add(sluice::to_string(tensor.shape));
    add_samples(fingerprint, tensor.bytes);
  }
  if (checkpoint.packed() == nullptr) {
    return;
  }
  for (const auto& [name, tensor] : checkpoint.packed()->tensors()) {
    fingerprint.add(name);
    fingerprint.add(kernels::to_string(tensor.format));
    fingerprint.add(sluice::to_string(tensor.shape));
    add_samples(fingerprint, tensor.bytes);
  }
}

std::string files_fingerprint(const fs::path& directory, std::initializer_list<const char*> names) {
  Fingerprint fingerprint;
  add_files(fingerprint, directory, names);
  return fingerprint.to_string();
}

}  // namespace

std::string model_name(const fs::path& directory) {
  std::error_code ignored;
  fs::path whole = fs::weakly_canonical(directory, ignored);
  if (!whole.has_filename()) {
    whole = whole.parent_path();
  }
  const std::string name = whole.filename().string();
  return name.empty() ? "model" : name;
}

std::int64_t model_created(const fs::path& directory) {
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(directory / "config.json", error);
  if (error) {
    return 0;
  }
  const auto since_epoch = fs::file_time_type::clock::to_sys(changed).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
}

std::string model_fingerprint(const Checkpoint& checkpoint, WeightPreset preset) {
  Fingerprint fingerprint;
  fingerprint.add(version());
  fingerprint.add(fmt::format("{}", kernels::kNumericsVersion));
  add_files(fingerprint, checkpoint.directory(),
            {"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
             "generation_config.json"});
  fingerprint.add(sluice::to_string(preset));
  add_tensors(fingerprint, checkpoint);
  return fingerprint.to_string();
}

CacheIdentity cache_identity(const Checkpoint& checkpoint, WeightPreset preset,
                             std::string_view kernels) {
  const fs::path& directory = checkpoint.directory();
  Fingerprint weights;
  add_files(weights, directory, {"config.json"});
  weights.add(sluice::to_string(preset));
  add_tensors(weights, checkpoint);
  return {{"weights", weights.to_string()},
          {"tokenizer", files_fingerprint(directory, {"tokenizer.json", "tokenizer_config.json"})},
          {"chat template",
           files_fingerprint(directory, {"chat_template.jinja", "tokenizer_config.json"})},
          {"numerics", fmt::format("{}", kernels::kNumericsVersion)},
          {"kernels", std::string(kernels)}};
}

}  // namespace sluice::apps
