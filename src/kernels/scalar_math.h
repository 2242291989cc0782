// Transcendental functions with the same bits on every CPU: plain IEEE operations in a fixed order,
// no libm table or ISA variant behind them. exp_f32 is the contract that every vector kernel
// reproduces lane by lane.
//
// Thread rule: pure. The float functions assume round-to-nearest; denormals may be flushed.
#pragma once

namespace sluice::kernels {

// e^x in fp32. exp_f32(0) == 1 exactly. 0 below -87, saturates at e^88, NaN stays NaN.
// Within 2 ulp of the true value in between.
float exp_f32(float x);

// Natural logarithm in fp32, correctly rounded but for rare ties. x > 0 and finite.
float log_f32(float x);

// log(1 + e^x), fp32 result from fp64 arithmetic. Any finite x.
float softplus_f32(float x);

// 1 / (1 + e^-x).
float sigmoid_f32(float x);

// x times the distribution function of the normal distribution, and its usual form with tanh.
// Finite x; within 2^-21 |x| of the true values.
float gelu_f32(float x);
float gelu_tanh_f32(float x);

struct SinCos {
  float sin;
  float cos;
};

// Of an angle in radians, |angle| < 2^21; fp64 arithmetic, rounded once to fp32.
SinCos sincos_f64(double angle);

// base^exponent, rounded once from fp64 to fp32. base > 0; the result must be in the fp32 range.
float power_f64(double base, double exponent);

}  // namespace sluice::kernels
