// The terminal side of a command: notes on stderr, and what must hold for the standard streams.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/result.h"

namespace sluice::apps {

// Prints to stderr. A stderr that cannot be written to (closed, full) loses the note, not the work.
template <typename... T>
void print_note(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

// Points closed standard streams at /dev/null, so that no file of ours takes their numbers.
void open_standard_streams();

// Error io when anything written to stdout did not arrive (a full disk, a closed pipe).
Result<void> flush_stdout();

}  // namespace sluice::apps
