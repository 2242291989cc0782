#include "server/gzip_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace sluice {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // the largest window; 16: the format is gzip

}  // namespace

GzipDecoder::GzipDecoder() : stream_(std::make_unique<z_stream>()) {
  if (inflateInit2(stream_.get(), kGzipWindowBits) != Z_OK) {
    throw std::bad_alloc();  // the only way this can fail
  }
}

GzipDecoder::~GzipDecoder() {
  if (stream_) {
    inflateEnd(stream_.get());
  }
}

GzipDecoder::GzipDecoder(GzipDecoder&&) noexcept = default;
GzipDecoder& GzipDecoder::operator=(GzipDecoder&& other) noexcept {
  std::swap(stream_, other.stream_);
  complete_ = other.complete_;
  return *this;
}

GzipDecoder::Outcome GzipDecoder::decode(std::string_view piece, std::size_t bytes_max,
                                         std::string& text) {
  std::array<char, 32768> out = {};
  // zlib does not write to its input, but for old compilers' sake does not say so.
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream_->avail_in = static_cast<uInt>(piece.size());
  bool more = !piece.empty();
  while (more) {
    if (complete_) {
      inflateReset(stream_.get());
      complete_ = false;
    }
    stream_->next_out = reinterpret_cast<Bytef*>(out.data());
    stream_->avail_out = static_cast<uInt>(out.size());
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      return Outcome::not_gzip;
    }
    const std::size_t size = out.size() - stream_->avail_out;
    if (size > bytes_max - std::min(bytes_max, text.size())) {
      return Outcome::too_large;
    }
    text.append(out.data(), size);
    complete_ = status == Z_STREAM_END;
    more = stream_->avail_in > 0 || (!complete_ && stream_->avail_out == 0);
  }
  return Outcome::ok;
}

}  // namespace sluice
