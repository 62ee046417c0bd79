// SPDX-License-Identifier: Apache-2.0
// Complex functions of two arguments whose plain formulas lose precision. They are computed with
// at least twice the digits (for double: in 128-bit floats, if the C library has them) and rounded
// once. The error is within one unit in the last place of the result's absolute value.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_COMPLEX_FUNCTIONS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_COMPLEX_FUNCTIONS_H_

#include <complex>

namespace shardcall {
inline namespace internal {

// exp(y log x) on the principal branch. x^0 is 1; 0^y is 0 if y's real part is
// positive, else NaN.
std::complex<float> ComplexPower(std::complex<float> x, std::complex<float> y);
std::complex<double> ComplexPower(std::complex<double> x, std::complex<double> y);

// The angle of y over x: -i log((x + iy) / sqrt(x^2 + y^2)).
std::complex<float> ComplexAtan2(std::complex<float> y, std::complex<float> x);
std::complex<double> ComplexAtan2(std::complex<double> y, std::complex<double> x);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_COMPLEX_FUNCTIONS_H_
