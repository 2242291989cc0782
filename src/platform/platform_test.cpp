#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "platform/aligned_buffer.h"
#include "platform/atomic_file.h"
#include "platform/cpu_features.h"
#include "platform/float_mode.h"
#include "platform/mapped_file.h"
#include "platform/positioned_file.h"
#include "platform/thread_pool.h"

namespace sluice {
namespace {

TEST(FloatModeTest, FlushesWhileAliveAndRestores) {
  volatile float tiny = 1e-38F;
  volatile float scale = 0.1F;
  EXPECT_FALSE(flushes_denormals());
  EXPECT_NE(tiny * scale, 0.0F);
  {
    const FlushDenormals mode;
    EXPECT_TRUE(flushes_denormals());
    EXPECT_EQ(tiny * scale, 0.0F);
  }
  EXPECT_FALSE(flushes_denormals());
}

TEST(ThreadPoolTest, EveryWorkerRunsOncePerRegion) {
  for (const int size : {1, 2, 5}) {
    ThreadPool pool(size);
    std::vector<int> calls(static_cast<std::size_t>(size), 0);
    for (int region = 0; region < 2000; ++region) {
      pool.run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
    }
    for (const int count : calls) {
      EXPECT_EQ(count, 2000);
    }
  }
}

TEST(ThreadPoolTest, WakesAfterSleep) {
  ThreadPool pool(3);
  std::atomic<int> sum = 0;
  for (int region = 0; region < 5; ++region) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool.run([&](int worker) { sum += worker + 1; });
  }
  EXPECT_EQ(sum, 5 * (1 + 2 + 3));
}

TEST(ThreadPoolTest, WorkersFlushDenormals) {
  ThreadPool pool(3);
  std::atomic<int> flushing = 0;
  pool.run([&](int) { flushing += flushes_denormals() ? 1 : 0; });
  EXPECT_EQ(flushing, 3);
  EXPECT_FALSE(flushes_denormals());
}

TEST(ThreadPoolTest, RangesCoverOnceOnGrainBoundaries) {
  for (const int size : {1, 2, 3, 7}) {
    ThreadPool pool(size);
    for (const std::int64_t count : {0, 1, 5, 16, 17, 100}) {
      for (const std::int64_t grain : {1, 4, 16}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        std::atomic<bool> aligned = true;
        pool.for_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
          if (begin % grain != 0 || (end % grain != 0 && end != count)) {
            aligned = false;
          }
          for (std::int64_t i = begin; i < end; ++i) {
            ++seen[static_cast<std::size_t>(i)];
          }
        });
        EXPECT_TRUE(aligned);
        for (const std::atomic<int>& times : seen) {
          EXPECT_EQ(times, 1);
        }
      }
    }
  }
}

TEST(AlignedBufferTest, IsZeroAlignedAndMovable) {
  Result<AlignedBuffer> buffer = AlignedBuffer::allocate(3 << 20);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096, 0U);
  for (std::size_t i = 0; i < buffer->size(); i += 4093) {
    EXPECT_EQ(buffer->as<unsigned char>()[i], 0);
  }
  std::memset(buffer->data(), 7, buffer->size());
  const AlignedBuffer moved = std::move(*buffer);
  EXPECT_EQ(moved.size(), std::size_t{3} << 20);
  EXPECT_EQ(moved.as<unsigned char>()[100], 7);
  EXPECT_EQ(AlignedBuffer::allocate(0)->size(), 0U);
}

TEST(AlignedBufferTest, RefusalNamesTheSize) {
  const Result<AlignedBuffer> refused = AlignedBuffer::allocate(std::size_t{1} << 60);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("1152921504606846976"), std::string::npos);
}

class FileTest : public testing::Test {
 protected:
  FileTest() { std::filesystem::create_directory(directory_); }
  ~FileTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
    return directory_ / name;
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("sluice_platform_test_" + std::to_string(getpid()));
};

TEST_F(FileTest, MapsContent) {
  const Result<MappedFile> file = MappedFile::open(write("a", std::string("x\0y", 3)));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(std::memcmp(file->bytes().data(), "x\0y", 3), 0);
  EXPECT_EQ(file->bytes().size(), 3U);
  EXPECT_TRUE(MappedFile::open(write("empty", ""))->bytes().empty());
}

TEST_F(FileTest, ErrorsNameThePath) {
  const Result<MappedFile> missing = MappedFile::open(directory_ / "missing");
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
  const Result<MappedFile> folder = MappedFile::open(directory_);
  EXPECT_EQ(folder.error().code, ErrorCode::io);
  EXPECT_NE(folder.error().message.find("not a regular file"), std::string::npos);
  const std::filesystem::path fifo = directory_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(fifo).error().code, ErrorCode::io);  // and does not wait for a writer
}

TEST_F(FileTest, TextFilesAreBounded) {
  const std::filesystem::path path = write("text", "hello");
  EXPECT_EQ(*read_text_file(path, 5), "hello");
  const Result<std::string> refused = read_text_file(path, 4);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("5 bytes, the limit is 4"), std::string::npos);
}

TEST_F(FileTest, ReadsAtPositions) {
  const Result<PositionedFile> file = PositionedFile::open(write("a", "hello"));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->size(), 5U);
  std::array<char, 3> bytes{};
  ASSERT_TRUE(file->read(2, std::as_writable_bytes(std::span(bytes))).has_value());
  EXPECT_EQ(std::string(bytes.data(), 3), "llo");
  const Result<void> beyond = file->read(3, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(beyond.error().code, ErrorCode::corrupt_data);
  EXPECT_EQ(PositionedFile::open(directory_ / "missing").error().code, ErrorCode::not_found);
  EXPECT_EQ(PositionedFile::open(directory_).error().code, ErrorCode::invalid_argument);
}

TEST_F(FileTest, AnAtomicFileMayBeItsOwnersAlone) {
  const std::filesystem::path path = write("a", "old");
  {
    const auto dropped = AtomicFile::create(path);
    ASSERT_TRUE((*dropped)->write(std::as_bytes(std::span("new", 3))).has_value());
  }
  EXPECT_EQ(*read_text_file(path, 10), "old");
  const auto file = AtomicFile::create(path, FileReaders::owner);
  ASSERT_TRUE((*file)->write(std::as_bytes(std::span("new", 3))).has_value());
  ASSERT_TRUE((*file)->commit().has_value());
  EXPECT_EQ(*read_text_file(path, 10), "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
}

TEST(CpuFeaturesTest, HigherSetsImplyLowerOnes) {
  const CpuFeatures cpu = detect_cpu_features();
  EXPECT_FALSE(cpu.vendor_model.empty());
  EXPECT_TRUE(!cpu.avx512 || cpu.avx2);
  EXPECT_TRUE(!cpu.amx_bf16 || cpu.avx512);
  EXPECT_GE(available_cpus(), 1);
}

}  // namespace
}  // namespace sluice
