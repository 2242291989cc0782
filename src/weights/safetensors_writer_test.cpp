#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "weights/safetensors.h"
#include "weights/test_files.h"

namespace sluice {
namespace {

using test::as_bytes;

// Makes every write past `bytes` fail with EFBIG for its lifetime, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &saved_);
    rlimit limit = saved_;
    limit.rlim_cur = bytes;
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit saved_{};
  void (*old_handler_)(int) = nullptr;
};

constexpr std::string_view kSixBytes = "\1\2\3\4\5\6";

TensorMap three_tensors() {
  return {{"b", {.dtype = DType::bf16, .shape = {3}, .bytes = as_bytes(kSixBytes)}},
          {"a \"quoted\"\n", {.dtype = DType::u8, .shape = {6, 1}, .bytes = as_bytes(kSixBytes)}},
          {"empty", {.dtype = DType::f32, .shape = {0}, .bytes = {}}}};
}

TEST(SafetensorsWriter, RoundTrips) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path path = directory / "model.safetensors";
  const TensorMap tensors = three_tensors();
  ASSERT_TRUE(write_safetensors(path, tensors).has_value());
  ASSERT_TRUE(write_safetensors(path, tensors).has_value());  // replaces
  EXPECT_EQ(directory.file_count(), 1U);
  const std::string image = test::read_file(path);
  const Result<TensorMap> read = parse_safetensors(as_bytes(image), "f");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), tensors.size());
  for (const auto& [name, view] : tensors) {
    const TensorView& back = read->at(name);
    EXPECT_EQ(back.dtype, view.dtype);
    EXPECT_EQ(back.shape, view.shape);
    EXPECT_TRUE(
        std::equal(back.bytes.begin(), back.bytes.end(), view.bytes.begin(), view.bytes.end()));
  }
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0600U, 0600U);
}

TEST(SafetensorsWriter, RejectsViewsThatLie) {
  const test::TemporaryDirectory directory;
  const TensorView lie{.dtype = DType::f32, .shape = {2}, .bytes = as_bytes(kSixBytes)};
  EXPECT_ERROR(write_safetensors(directory / "f", {{"t", lie}}), ErrorCode::invalid_argument,
               {"tensor t", "want 8 bytes"});
  const TensorView good{.dtype = DType::u8, .shape = {6}, .bytes = as_bytes(kSixBytes)};
  for (const char* name : {"__metadata__", "\xff\xfe"}) {
    const Result<void> written = write_safetensors(directory / "f", {{name, good}});
    ASSERT_FALSE(written.has_value()) << name;
    EXPECT_EQ(written.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(directory.file_count(), 0U);
}

TEST(SafetensorsWriter, LeavesNothingBehindOnAFullDisk) {
  const test::TemporaryDirectory directory;
  const std::string old_content = "what was there before";
  test::write_file(directory / "f", old_content);
  const std::vector<std::byte> data(100'000);
  const TensorMap tensors{{"t", {.dtype = DType::u8, .shape = {100'000}, .bytes = data}}};
  for (const rlim_t bytes : {0UL, 100UL, 50'000UL}) {
    const FileSizeLimit limit(bytes);
    EXPECT_ERROR(write_safetensors(directory / "f", tensors), ErrorCode::io, {"cannot write", "f"});
  }
  EXPECT_EQ(directory.file_count(), 1U);
  EXPECT_EQ(test::read_file(directory / "f"), old_content);
}

TEST(SafetensorsWriter, RefusesOtherTargets) {
  const test::TemporaryDirectory directory;
  EXPECT_ERROR(write_safetensors(directory / "no/such/folder", {}), ErrorCode::io,
               {"cannot create", "no/such"});
  std::filesystem::create_directory(directory / "folder");
  EXPECT_ERROR(write_safetensors(directory / "folder", {}), ErrorCode::invalid_argument,
               {"not a regular file"});
  // Renaming over a device would destroy it.
  EXPECT_ERROR(write_safetensors("/dev/null", {}), ErrorCode::invalid_argument, {"/dev/null"});
  EXPECT_ERROR(write_safetensors("/proc/sluice.safetensors", {}), ErrorCode::io, {"/proc"});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

SafetensorsRowWriter::Options options(const std::filesystem::path& path) {
  return {.path = path, .tensor_name = "logits", .rows = 3, .columns = 2};
}

TEST(SafetensorsRowWriter, WritesPieceByPiece) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path path = directory / "out.safetensors";
  Result<SafetensorsRowWriter> created = SafetensorsRowWriter::create(options(path));
  ASSERT_TRUE(created.has_value()) << created.error().message;
  SafetensorsRowWriter writer = std::move(*created);
  const std::array<float, 6> values{1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(writer.append(std::span(values).first(2)).has_value());
  EXPECT_TRUE(writer.append({}).has_value());
  EXPECT_TRUE(writer.append(std::span(values).subspan(2)).has_value());
  EXPECT_FALSE(std::filesystem::exists(path)) << "visible before finish()";
  ASSERT_TRUE(writer.finish().has_value());
  const std::string image = test::read_file(path);
  const Result<TensorMap> read = parse_safetensors(as_bytes(image), "f");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->at("logits").shape, (Shape{3, 2}));
  EXPECT_EQ(std::memcmp(read->at("logits").bytes.data(), values.data(), sizeof(values)), 0);
  EXPECT_ERROR(writer.finish(), ErrorCode::invalid_argument, {"finished"});
  EXPECT_ERROR(writer.append({}), ErrorCode::invalid_argument, {"finished"});
}

TEST(SafetensorsRowWriter, RejectsWrongCounts) {
  const test::TemporaryDirectory directory;
  const std::array<float, 8> values{};
  {
    SafetensorsRowWriter writer = *SafetensorsRowWriter::create(options(directory / "f"));
    EXPECT_ERROR(writer.append(std::span(values).first(3)), ErrorCode::invalid_argument,
                 {"tensor logits", "3 more values"});
    EXPECT_ERROR(writer.append(values), ErrorCode::invalid_argument, {"[3, 2]"});
    EXPECT_ERROR(writer.finish(), ErrorCode::invalid_argument, {"0 rows written, want 3"});
    EXPECT_TRUE(writer.append(std::span(values).first(6)).has_value());
    EXPECT_ERROR(writer.append(std::span(values).first(2)), ErrorCode::invalid_argument, {"row 3"});
  }
  EXPECT_EQ(directory.file_count(), 0U) << "an unfinished file stayed";
  SafetensorsRowWriter::Options bad = options(directory / "f");
  bad.rows = -1;
  EXPECT_FALSE(SafetensorsRowWriter::create(bad).has_value());
  bad.rows = std::int64_t{1} << 62;
  EXPECT_FALSE(SafetensorsRowWriter::create(bad).has_value());
  bad = options(directory / "no/folder");
  EXPECT_ERROR(SafetensorsRowWriter::create(bad), ErrorCode::io, {"cannot create"});
}

TEST(SafetensorsRowWriter, FailsOnceAndForAllOnAFullDisk) {
  const test::TemporaryDirectory directory;
  SafetensorsRowWriter::Options large = options(directory / "f");
  large.rows = 10'000;
  SafetensorsRowWriter writer = *SafetensorsRowWriter::create(large);
  const std::vector<float> values(20'000);
  {
    const FileSizeLimit limit(4096);
    EXPECT_ERROR(writer.append(values), ErrorCode::io, {"cannot write"});
  }
  EXPECT_EQ(directory.file_count(), 0U);
  EXPECT_ERROR(writer.append(values), ErrorCode::invalid_argument, {"finished or failed"});
  EXPECT_ERROR(writer.finish(), ErrorCode::invalid_argument, {"finished or failed"});
}

}  // namespace
}  // namespace sluice
