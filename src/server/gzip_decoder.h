// Takes the text out of a body that was sent with Content-Encoding: gzip, piece by piece and under
// a limit: a few bytes can stand for very many. The only file that knows zlib.
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;  // zlib

namespace sluice {

class GzipDecoder {
 public:
  enum class Outcome {
    ok,
    not_gzip,   // or damaged
    too_large,  // the text has more than bytes_max
  };

  GzipDecoder();
  ~GzipDecoder();
  GzipDecoder(GzipDecoder&&) noexcept;
  GzipDecoder& operator=(GzipDecoder&&) noexcept;

  // Appends the text of the next piece to `text`, which holds at most bytes_max then.
  Outcome decode(std::string_view piece, std::size_t bytes_max, std::string& text);

  // Whether what came so far is whole. (Several compressed texts in a row are one.)
  bool is_complete() const { return complete_; }

 private:
  std::unique_ptr<z_stream_s> stream_;
  bool complete_ = false;
};

}  // namespace sluice
