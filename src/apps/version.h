// The version of this program, as the build system states it ("0.1.0").
#pragma once

namespace sluice::apps {

const char* version();

}  // namespace sluice::apps
