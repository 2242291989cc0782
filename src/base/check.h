// SLUICE_CHECK: a broken invariant of ours ends the process with file, line and condition.
// Never reached by user input: that is an Error (base/result.h). SLUICE_DCHECK is the same for
// inner loops and vanishes in release builds.
#pragma once

namespace sluice {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace sluice

#define SLUICE_CHECK(condition)                               \
  do {                                                        \
    if (!(condition)) [[unlikely]] {                          \
      ::sluice::check_failed(#condition, __FILE__, __LINE__); \
    }                                                         \
  } while (false)

#ifdef NDEBUG
#define SLUICE_DCHECK(condition) \
  do {                           \
  } while (false && (condition))
#else
#define SLUICE_DCHECK(condition) SLUICE_CHECK(condition)
#endif
