// How much memory the machine has left and how much this process has held. Linux (/proc,
// getrusage).
#pragma once

#include <cstddef>
#include <optional>

namespace sluice {

// Bytes that can be taken without swapping (MemAvailable). A smaller limit of a container is not
// seen. Empty where the system does not say.
std::optional<std::size_t> available_memory();

// The most bytes of this process that were resident at once, so far.
std::size_t peak_resident_bytes();

}  // namespace sluice
