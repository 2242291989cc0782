#include "apps/version.h"

namespace sluice::apps {

const char* version() {
  return SLUICE_VERSION;
}

}  // namespace sluice::apps
