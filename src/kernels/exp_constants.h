// The constants of exp_f32, shared by the scalar function and the 16-lane one so that both are one
// contract. Range reduction x = n ln2 + r with ln2 split in two, then a degree-7 polynomial of r
// (minimax coefficients of the Cephes library's expf).
#pragma once

namespace sluice::kernels {

inline constexpr float kExpFlushBelow = -87.0F;  // the result would leave the normal range
inline constexpr float kExpSaturateAt = 88.0F;
inline constexpr float kLog2E = 1.44269504088896341F;
inline constexpr float kLn2High = 0.693359375F;  // 9 significant bits: n * kLn2High is exact
inline constexpr float kLn2Low = -2.12194440e-4F;
inline constexpr float kExpPoly[6] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                      4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};

}  // namespace sluice::kernels
