// SPDX-License-Identifier: Apache-2.0
// Common to the LAPACK targets: batches of matrices [.., m, n] in the column-major layout that
// their calls state, in place if the call aliases, and one status number `info` per matrix.
#ifndef SHARDCALL_KERNELS_HOST_LAPACK_CALL_H_
#define SHARDCALL_KERNELS_HOST_LAPACK_CALL_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall {
inline namespace internal {
namespace lapack {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <typename T>
using Real = typename RealOf<T>::type;
template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;
template <typename T>
constexpr ElementType TypeOf() {
  if (std::is_same_v<T, float>) return ElementType::kF32;
  if (std::is_same_v<T, double>) return ElementType::kF64;
  return sizeof(T) == 8 ? ElementType::kC64 : ElementType::kC128;
}

class Call {
 public:
  using Views = absl::Span<const BufferView>;
  using Names = absl::Span<const absl::string_view>;

  Call(const HandlerContext& context, Views operands, Views results, Names operand_names,
       Names result_names)
      : args_(context, operands, results, operand_names, result_names), context_(context) {}

  // Must be called first: checks counts and operand 0, a batch of matrices of this type.
  // `attributes` are the names that the call may have.
  absl::Status Begin(ElementType type, Names attributes);

  int64_t batch() const { return batch_; }
  int rows() const { return rows_; }  // of operand 0
  int columns() const { return columns_; }
  int least() const { return rows_ < columns_ ? rows_ : columns_; }
  absl::Status CheckSquare() const;
  // The dims of `place` must be the batch dimensions, then `inner`.
  absl::Status Check(ArgumentPlace place, ElementType type, absl::Span<const int64_t> inner) const;
  // A letter such as 'L' that is encoded as a number (76 : ui8); it must be among `allowed`.
  absl::StatusOr<char> Letter(absl::string_view name, absl::string_view allowed) const;
  absl::StatusOr<int> Int(absl::string_view name, int64_t fallback) const;
  absl::StatusOr<bool> Bool(absl::string_view name) const;

  const CallArguments& args() const { return args_; }
  // Copies operand k to result r, unless they are the same buffer.
  void CopyOperand(int k, int r) const;
  // Item `b` of the batch.
  template <typename T>
  T* At(ArgumentPlace place, int64_t b) const {
    const BufferView& view = args_.at(place);
    return static_cast<T*>(view.data) + b * (batch_ == 0 ? 0 : view.num_elements() / batch_);
  }

 private:
  CallArguments args_;
  const HandlerContext& context_;
  std::vector<int64_t> batch_dims_;
  int64_t batch_ = 1;
  int rows_ = 0, columns_ = 0;
};

// Sets every element of item `b` of a result.
template <typename T>
void Fill(const Call& call, ArgumentPlace place, int64_t b, T value) {
  T* to = call.At<T>(place, b);
  const int64_t n = call.batch() == 0 ? 0 : call.args().at(place).num_elements() / call.batch();
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// The size in the answer to a workspace query.
template <typename T>
int WorkSize(const T& answer) {
  const double size = static_cast<double>(std::real(answer));
  return size < 1 ? 1 : size > 2147483647.0 ? 2147483647 : static_cast<int>(size);
}

inline int AtLeastOne(int n) { return n < 1 ? 1 : n; }

template <typename T>
bool AllFinite(const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(std::real(x[i])) || !std::isfinite(std::imag(x[i]))) return false;
  }
  return true;
}

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_LAPACK_CALL_H_
