// Where the small model that comes with Sluice lies on this machine.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace sluice::apps {

// The directory of the embedded model: models/tiny of the source tree this program was built from,
// or share/sluice/models/tiny beside an installed program (PREFIX/bin/sluice). Does not depend on
// the environment or the working directory. Error not_found naming both places.
Result<std::filesystem::path> find_embedded_model();

}  // namespace sluice::apps
