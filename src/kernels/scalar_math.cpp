#include "kernels/scalar_math.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/exp_constants.h"
#include "kernels/gelu_constants.h"

namespace sluice::kernels {
namespace {

// Nearest integer, ties to even, for |x| < 2^22.
float round_even(float x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: its ulp is 1
  return (x + kMagic) - kMagic;
}

// log1p on [0, 1] as 2 atanh(y / (2 + y)); s <= 1/3, so 16 terms leave less than 1e-17.
double log1p_unit(double y) {
  const double s = y / (2.0 + y);
  const double s2 = s * s;
  double sum = 0.0;
  for (int k = 16; k >= 0; --k) {
    sum = sum * s2 + 1.0 / (2 * k + 1);
  }
  return 2.0 * s * sum;
}

// e^x in fp64 for x < 700: the same reduction with a Taylor polynomial. 0 below -700.
double exp_f64(double x) {
  if (x < -700.0) {
    return 0.0;
  }
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  const double n = (x * 1.4426950408889634 + kMagic) - kMagic;
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double sum = 1.0;
  for (int k = 14; k >= 1; --k) {
    sum = 1.0 + sum * r / k;
  }
  const auto exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023);
  return sum * std::bit_cast<double>(exponent << 52);
}

// Natural logarithm in fp64 as 2 atanh((m - 1) / (m + 1)) + e ln2, m in [sqrt(1/2), sqrt(2)).
double log_f64(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2.0;
    --exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);  // |s| < 0.172
  const double s2 = s * s;
  double sum = 0.0;
  for (int k = 11; k >= 0; --k) {
    sum = sum * s2 + 1.0 / (2 * k + 1);
  }
  return 2.0 * s * sum + exponent * 0.69314718055994530942;
}

}  // namespace

float exp_f32(float x) {
  if (x != x) {
    return x;
  }
  if (x < kExpFlushBelow) {
    return 0.0F;
  }
  x = kExpSaturateAt < x ? kExpSaturateAt : x;
  const float n = round_even(x * kLog2E);
  float r = std::fma(-n, kLn2High, x);
  r = std::fma(-n, kLn2Low, r);
  float p = kExpPoly[0];
  for (int i = 1; i < 6; ++i) {
    p = std::fma(p, r, kExpPoly[i]);
  }
  p = std::fma(p, r * r, r);
  p = p + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127);
  return p * std::bit_cast<float>(exponent << 23);
}

float log_f32(float x) {
  return static_cast<float>(log_f64(x));
}

float power_f64(double base, double exponent) {
  return static_cast<float>(exp_f64(exponent * log_f64(base)));
}

float softplus_f32(float x) {
  const double wide = x;
  const double magnitude = wide < 0.0 ? -wide : wide;
  return static_cast<float>((wide > 0.0 ? wide : 0.0) + log1p_unit(exp_f64(-magnitude)));
}

float sigmoid_f32(float x) {
  return 1.0F / (1.0F + exp_f32(-x));
}

float gelu_f32(float x) {
  const float a = x < 0.0F ? -x : x;
  const float t = 1.0F / std::fma(a, kGeluTailScale, 1.0F);
  float p = kGeluTailPoly[0];
  for (int i = 1; i < 9; ++i) {
    p = std::fma(p, t, kGeluTailPoly[i]);
  }
  const float tail = exp_f32((a * -0.5F) * a) * (t * p);
  return std::fma(-a, tail, x > 0.0F ? x : 0.0F);
}

float gelu_tanh_f32(float x) {
  const float z = x * std::fma(x * x, kGeluTanhCubic, kGeluTanhLinear);
  return x / (1.0F + exp_f32(-z));
}

SinCos sincos_f64(double angle) {
  // pi/2 = kHigh + kLow; kHigh has 33 significant bits, so quarter * kHigh is exact below 2^20.
  constexpr double kHigh = 1.57079632673412561417;
  constexpr double kLow = 6.07710050650619224932e-11;
  constexpr double kMagic = 6755399441055744.0;
  const double quarter = (angle * 0.63661977236758134308 + kMagic) - kMagic;
  const double r = (angle - quarter * kHigh) - quarter * kLow;  // |r| <= pi/4
  const double r2 = r * r;
  double sine = 1.0;
  double cosine = 1.0;
  for (int k = 16; k >= 2; k -= 2) {  // Taylor series, innermost term first
    sine = 1.0 - sine * r2 / (k * (k + 1));
    cosine = 1.0 - cosine * r2 / (k * (k - 1));
  }
  sine *= r;
  switch (static_cast<std::int64_t>(quarter) & 3) {
    case 0:
      return {static_cast<float>(sine), static_cast<float>(cosine)};
    case 1:
      return {static_cast<float>(cosine), static_cast<float>(-sine)};
    case 2:
      return {static_cast<float>(-sine), static_cast<float>(-cosine)};
    default:
      return {static_cast<float>(-cosine), static_cast<float>(sine)};
  }
}

}  // namespace sluice::kernels
