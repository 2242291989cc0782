// The constants of gelu_f32 and gelu_tanh_f32, shared by the scalar functions and the 16-lane ones.
// The tail of the normal distribution is e^(-x^2 / 2) t R(t), t = 1 / (1 + x / 4), with R fitted
// for the least relative error over x in [0, 14] (6e-8; iteratively reweighted least squares in
// fp64).
#pragma once

namespace sluice::kernels {

inline constexpr float kGeluTailScale = 0.25F;
inline constexpr float kGeluTailPoly[9] = {0.0257236641F,  -0.1528101712F, 0.2961235642F,
                                           -0.2057852447F, 0.2017597407F,  0.0329272449F,
                                           0.1037468687F,  0.0985168144F,  0.0997974798F};

// 1 + tanh(u) = 2 / (1 + e^-2u) with 2u = x (kGeluTanhLinear + kGeluTanhCubic x^2).
inline constexpr float kGeluTanhLinear = 1.5957691216F;  // 2 sqrt(2 / pi)
inline constexpr float kGeluTanhCubic = 0.0713548163F;   // 0.044715 times that

}  // namespace sluice::kernels
