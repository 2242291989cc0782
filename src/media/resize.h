// Bicubic resampling of 8-bit pictures, bit for bit that of Pillow (`Image.resize`, BICUBIC), which
// the reference's processor uses: a = -0.5, support widened when shrinking, columns first, and
// 8-bit results between the two passes.
#pragma once

#include "media/picture.h"

namespace sluice {

// Sides of both sizes are from 1 to kPictureSideMax (checked). Class: exact.
// Takes 3 * width * source.height bytes beside the two pictures.
Picture resize(const Picture& source, PictureSize size);

}  // namespace sluice
