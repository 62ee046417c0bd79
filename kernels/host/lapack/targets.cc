// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/lapack/targets.h"

#include <complex>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename T>
void AddType(absl::string_view letter, std::vector<std::pair<std::string, HostHandler>>* out) {
  constexpr bool kComplex = !std::is_floating_point_v<T>;
  auto add = [&](absl::string_view routine, HostHandler handler) {
    out->emplace_back(absl::StrCat("lapack_", letter, routine, "_ffi"), std::move(handler));
  };
  add("getrf", lapack::Getrf<T>);
  add("geqrf", lapack::Geqrf<T>);
  add("geqp3", lapack::Geqp3<T>);
  add(kComplex ? "ungqr" : "orgqr", lapack::Orgqr<T>);
  add(kComplex ? "unmqr" : "ormqr", lapack::Ormqr<T>);
  add("potrf", lapack::Potrf<T>);
  add("trsm", lapack::Trsm<T>);
  add("gtsv", lapack::Gtsv<T>);
  add(kComplex ? "heevd" : "syevd", lapack::Syevd<T>);
  add("geev", lapack::Geev<T>);
  add("gees", lapack::Gees<T>);
  add("gehrd", lapack::Gehrd<T>);
  add(kComplex ? "hetrd" : "sytrd", lapack::Sytrd<T>);
  add("gesdd", lapack::Gesdd<T>);
  add("gesvd", lapack::Gesvd<T>);
}

}  // namespace

std::vector<std::pair<std::string, HostHandler>> LapackTargets() {
  std::vector<std::pair<std::string, HostHandler>> targets;
  AddType<float>("s", &targets);
  AddType<double>("d", &targets);
  AddType<std::complex<float>>("c", &targets);
  AddType<std::complex<double>>("z", &targets);
  return targets;
}

}  // namespace internal
}  // namespace shardcall
