#include "weights/safetensors.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "weights/packed_model.h"
#include "weights/safetensors_header.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// Tensor name -> shard file name.
using ShardIndex = std::map<std::string, std::string, std::less<>>;

Result<ShardIndex> parse_index(std::string_view text, const std::string& where) {
  const json::value document = SLUICE_TRY(parse_strict_json(text, where));
  const auto reject = [&](std::string_view reason) {
    return fail(ErrorCode::corrupt_data, fmt::format("{}: {}", where, reason), where);
  };
  const json::object* root = document.if_object();
  const json::value* weight_map = root == nullptr ? nullptr : root->if_contains("weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) {
    return reject("weight_map is missing or not an object");
  }
  ShardIndex index;
  for (const auto& member : weight_map->get_object()) {
    const std::string name(member.key().data(), member.key().size());
    const json::string* file = member.value().if_string();
    if (file == nullptr) {
      return reject(fmt::format("weight_map.{} is not a file name", printable(name)));
    }
    const std::string_view shard(file->data(), file->size());
    // Only plain names: an index must not reach outside its directory.
    if (shard.empty() || shard == "." || shard == ".." ||
        shard.find_first_of(std::string_view("/\\\0", 3)) != std::string_view::npos) {
      return reject(fmt::format("weight_map.{} is \"{}\", want a file name without directories",
                                printable(name), printable(shard)));
    }
    index.emplace(name, std::string(shard));
  }
  return index;
}

}  // namespace

Result<TensorMap> parse_safetensors(std::span<const std::byte> file, std::string_view where) {
  const auto reject = [&](std::string_view reason) {
    return fail(ErrorCode::corrupt_data, fmt::format("{}: {}", where, reason), std::string(where));
  };
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof(header_bytes)) {
    return reject(fmt::format("{} bytes, too short for a safetensors file", file.size()));
  }
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const std::span<const std::byte> rest = file.subspan(sizeof(header_bytes));
  if (header_bytes > kSafetensorsHeaderBytesMax) {
    return reject(fmt::format("header of {} bytes, the limit is {}", header_bytes,
                              kSafetensorsHeaderBytesMax));
  }
  if (header_bytes > rest.size()) {
    return reject(fmt::format("header of {} bytes, but only {} follow its size (truncated file?)",
                              header_bytes, rest.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), header_bytes);
  const std::span<const std::byte> data = rest.subspan(header_bytes);
  SafetensorsHeader header = SLUICE_TRY(parse_safetensors_header(text, data.size(), where));
  TensorMap tensors;
  for (auto& [name, entry] : header) {
    tensors.emplace_hint(tensors.end(), name,
                         TensorView{.dtype = entry.dtype,
                                    .shape = std::move(entry.shape),
                                    .bytes = data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return tensors;
}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& model_directory) {
  std::error_code code;
  if (!std::filesystem::is_directory(model_directory, code)) {
    return fail(ErrorCode::not_found,
                fmt::format("{} is not a model directory", model_directory.string()),
                model_directory.string());
  }
  const std::filesystem::path single = model_directory / kSingleFile;
  const std::filesystem::path index = model_directory / kIndexFile;
  Checkpoint checkpoint;
  checkpoint.directory_ = model_directory;
  if (PackedModel::is_there(model_directory)) {
    checkpoint.packed_ = SLUICE_TRY(PackedModel::open(model_directory));
    checkpoint.tensors_ = checkpoint.packed_->plain_tensors();
  } else if (std::filesystem::exists(index, code)) {
    SLUICE_TRY(checkpoint.open_index(index));
  } else if (std::filesystem::exists(single, code)) {
    checkpoint.tensors_ = SLUICE_TRY(checkpoint.map_file(single));
  } else {
    return fail(ErrorCode::not_found,
                fmt::format("{}: neither {} nor {} is there", model_directory.string(), kSingleFile,
                            kIndexFile),
                model_directory.string());
  }
  return checkpoint;
}

Checkpoint Checkpoint::in_memory(TensorMap tensors, RepeatedMapping memory) {
  Checkpoint checkpoint;
  checkpoint.tensors_ = std::move(tensors);
  checkpoint.memory_ = std::move(memory);
  return checkpoint;
}

Result<void> Checkpoint::open_index(const std::filesystem::path& index_path) {
  const std::string where = index_path.string();
  const auto reject = [&](std::string reason) {
    return fail(ErrorCode::corrupt_data, fmt::format("{}: {}", where, reason), where);
  };
  const std::string text = SLUICE_TRY(read_text_file(index_path, kShardIndexBytesMax));
  const ShardIndex index = SLUICE_TRY(parse_index(text, where));
  std::set<std::string, std::less<>> shards;
  for (const auto& [name, shard] : index) {
    shards.insert(shard);
  }
  if (shards.size() > kShardsMax) {
    return reject(fmt::format("{} shards, the limit is {}", shards.size(), kShardsMax));
  }
  std::error_code code;
  if (!shards.contains(kSingleFile) && std::filesystem::exists(directory_ / kSingleFile, code)) {
    return reject(
        fmt::format("does not name the {} beside it; remove one of the two", kSingleFile));
  }
  for (const std::string& shard : shards) {
    const TensorMap tensors = SLUICE_TRY(map_file(directory_ / shard));
    for (const auto& [name, view] : tensors) {
      const auto listed = index.find(name);
      if (listed == index.end()) {
        return reject(fmt::format("shard {} holds tensor {}, which the index does not list", shard,
                                  printable(name)));
      }
      if (listed->second != shard) {
        return reject(fmt::format("shard {} holds tensor {}, which the index puts into {}", shard,
                                  printable(name), listed->second));
      }
      tensors_.emplace(name, view);
    }
  }
  for (const auto& [name, shard] : index) {
    if (!tensors_.contains(name)) {
      return reject(fmt::format("tensor {} is not in its shard {}", printable(name), shard));
    }
  }
  return {};
}

Result<TensorMap> Checkpoint::map_file(const std::filesystem::path& path) {
  MappedFile file = SLUICE_TRY(MappedFile::open(path));
  TensorMap tensors = SLUICE_TRY(parse_safetensors(file.bytes(), path.string()));
  files_.push_back(std::move(file));
  return tensors;
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto position = tensors_.find(name);
  return position == tensors_.end() ? nullptr : &position->second;
}

std::size_t Checkpoint::file_bytes() const {
  std::size_t bytes = packed_ == nullptr ? 0 : packed_->file_bytes();
  for (const MappedFile& file : files_) {
    bytes += file.bytes().size();
  }
  return bytes;
}

}  // namespace sluice
