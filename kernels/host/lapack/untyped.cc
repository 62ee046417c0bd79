// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/lapack/untyped.h"

#include <complex>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/lapack/call.h"
#include "shardcall/kernels/host/lapack/targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Views = absl::Span<const BufferView>;
using TypedHandler = absl::Status (*)(const HandlerContext&, Views, Views);

struct Convention {
  // One letter per scalar operand. Sizes: b batch, m and n of the matrix, k of tau, l leading
  // dimension (at least n), h = n; w is ignored. Options: o lower, s left side, t transposition, d
  // unit diagonal, f full matrices, v vectors, L R V jobs of left, right and Schur vectors, S sort,
  // i first row, a alpha.
  absl::string_view scalars;
  // The number of operands after the scalars, and the one that has the sizes.
  int num_arrays, sized;
  // One digit or letter per result: a result of the typed target, i an info of zeros, _ a
  // workspace.
  absl::string_view results;
};

class UntypedCall {
 public:
  UntypedCall(const HandlerContext& context, const Convention& convention, Views operands,
              Views results)
      : context_(context), convention_(convention), operands_(operands), results_(results) {}

  absl::Status Run(TypedHandler handler) {
    const int scalars = static_cast<int>(convention_.scalars.size());
    if (static_cast<int>(operands_.size()) != scalars + convention_.num_arrays ||
        results_.size() != convention_.results.size()) {
      return Error(
          "E132", "has the wrong number of operands or results",
          absl::StrCat(scalars + convention_.num_arrays, " and ", convention_.results.size()),
          absl::StrCat(operands_.size(), " and ", results_.size()));
    }
    for (int k = 0; k < scalars; ++k) SHARDCALL_RETURN_IF_ERROR(ReadScalar(k));
    SHARDCALL_RETURN_IF_ERROR(AddMode());
    SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView attributes,
                               AttributeMapView::Parse(absl::StrCat("{", attributes_, "}")));
    std::vector<BufferView> typed_results;
    for (char c = '0'; c <= '9'; ++c) {
      const size_t at = convention_.results.find(c);
      if (at != absl::string_view::npos) typed_results.push_back(results_[at]);
    }
    HandlerContext context = context_;
    context.attributes = &attributes;
    SHARDCALL_RETURN_IF_ERROR(handler(context, operands_.subspan(scalars), typed_results));
    for (size_t r = 0; r < results_.size(); ++r) {
      const char role = convention_.results[r];
      if ((role == 'i' || role == '_') && results_[r].byte_size() > 0) {
        std::memset(results_[r].data, 0, static_cast<size_t>(results_[r].byte_size()));
      }
    }
    return absl::OkStatus();
  }
  const BufferView* alpha() const { return alpha_; }

 private:
  absl::Status Error(absl::string_view code, std::string what, std::string expected,
                     std::string found) const {
    return ToStatus({.code = std::string(code),
                     .message = absl::StrCat("target \"", context_.target, "\" (",
                                             context_.instruction, ") ", what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Pass the operands that the target has, in its order"});
  }

  absl::Status ReadScalar(int k) {
    const char role = convention_.scalars[k];
    const BufferView& view = operands_[k];
    if (view.rank() != 0 || view.data == nullptr) {
      return Error("E133", absl::StrCat("has no scalar as operand ", k), "a scalar",
                   view.ToString());
    }
    if (role == 'a') {  // has the matrix's type, which the typed target checks
      if (view.type != operands_.back().type) {
        return Error("E134", absl::StrCat("has alpha of another type than its matrices"),
                     std::string(ElementTypeName(operands_.back().type)), view.ToString());
      }
      alpha_ = &view;
      return absl::OkStatus();
    }
    const bool letter = absl::string_view("LRVS").find(role) != absl::string_view::npos;
    const ElementType type = letter ? ElementType::kU8 : ElementType::kS32;
    if (view.type != type) {
      return Error("E134", absl::StrCat("has operand ", k, " of another type"),
                   std::string(ElementTypeName(type)), view.ToString());
    }
    const int64_t value =
        letter ? *static_cast<const uint8_t*>(view.data) : *static_cast<const int32_t*>(view.data);
    return letter || absl::string_view("ostdfv").find(role) != absl::string_view::npos
               ? AddOption(k, role, value)
               : CheckSize(k, role, value);
  }

  absl::Status CheckSize(int k, char role, int64_t value) {
    const int scalars = static_cast<int>(convention_.scalars.size());
    const std::vector<int64_t>& dims = operands_[scalars + convention_.sized].dims;
    if (dims.size() < 2) return absl::OkStatus();  // the typed target reports it
    int64_t want = value;
    switch (role) {
      case 'b':
        want = 1;
        for (size_t d = 0; d + 2 < dims.size(); ++d) want *= dims[d];
        break;
      case 'm': want = dims[dims.size() - 2]; break;
      case 'n':
      case 'h': want = dims.back(); break;
      case 'k': {
        const std::vector<int64_t>& tau = operands_[scalars + 1].dims;
        if (!tau.empty()) want = tau.back();
        break;
      }
      case 'l': want = std::max<int64_t>(1, dims.back()); break;
      case 'i': want = 1; break;
      default: break;  // the size of a workspace is not checked
    }
    if (value == want) return absl::OkStatus();
    return Error("E133", absl::StrCat("has operand ", k, " that contradicts the shapes"),
                 absl::StrCat(want), absl::StrCat(value));
  }

  void Add(absl::string_view name, char letter) {
    absl::StrAppend(&attributes_, attributes_.empty() ? "" : ", ", name, " = ",
                    static_cast<int>(letter), " : ui8");
  }
  absl::Status AddOption(int k, char role, int64_t value) {
    auto bad = [&](absl::string_view allowed) {
      return Error("E131", absl::StrCat("has operand ", k, " that is no option"),
                   std::string(allowed), absl::StrCat(value));
    };
    if (role == 't') {
      if (value < 0 || value > 2) return bad("0 (N), 1 (T) or 2 (C)");
      Add("trans_x", "NTC"[value]);
    } else if (absl::string_view("ostdfv").find(role) != absl::string_view::npos) {
      if (value != 0 && value != 1) return bad("0 or 1");
      if (role == 'o') Add("uplo", value ? 'L' : 'U');
      if (role == 's') Add("side", value ? 'L' : 'R');
      if (role == 'd') Add("diag", value ? 'U' : 'N');
      if (role == 'f') full_ = value;
      if (role == 'v') vectors_ = value;
    } else {
      if (role == 'S' ? value != 'N' : value != 'V' && value != 'N') {
        return bad(role == 'S' ? "N (78)" : "V (86) or N (78)");
      }
      Add(role == 'L'   ? "compute_left"
          : role == 'R' ? "compute_right"
          : role == 'V' ? "mode"
                        : "sort",
          static_cast<char>(value));
    }
    return absl::OkStatus();
  }
  absl::Status AddMode() {
    // The symmetric routines always compute eigenvectors.
    if (convention_.scalars == "obn" && convention_.results.size() > 3) Add("mode", 'V');
    if (full_ >= 0) Add("mode", vectors_ == 0 ? 'N' : full_ == 1 ? 'A' : 'S');
    return absl::OkStatus();
  }

  const HandlerContext& context_;
  const Convention& convention_;
  Views operands_, results_;
  std::string attributes_;
  int64_t full_ = -1, vectors_ = -1;
  const BufferView* alpha_ = nullptr;
};

template <typename T>
void Scale(const BufferView& alpha, const BufferView& x) {
  const T factor = *static_cast<const T*>(alpha.data);
  if (factor == T(1)) return;
  T* to = static_cast<T*>(x.data);
  for (int64_t i = 0; i < x.num_elements(); ++i) to[i] *= factor;
}

template <typename T>
void AddType(absl::string_view letter, std::vector<std::pair<std::string, HostHandler>>* out) {
  constexpr bool kComplex = !std::is_floating_point_v<T>;
  auto add = [&](absl::string_view name, TypedHandler handler, Convention convention) {
    out->emplace_back(
        absl::StrCat("lapack_", letter, name),
        [handler, convention](const HandlerContext& context, Views operands, Views results) {
          return UntypedCall(context, convention, operands, results).Run(handler);
        });
  };
  add("getrf", lapack::Getrf<T>, {"bmn", 1, 0, "012"});
  add("geqrf", lapack::Geqrf<T>, {"bmnw", 1, 0, "01i_"});
  add("geqp3", lapack::Geqp3<T>, {"bmnw", 2, 0, kComplex ? "012i__" : "012i_"});
  add(kComplex ? "ungqr" : "orgqr", lapack::Orgqr<T>, {"bmnkw", 2, 0, "0i_"});
  add("potrf", lapack::Potrf<T>, {"obn", 1, 0, "01"});
  add(kComplex ? "heevd" : "syevd", lapack::Syevd<T>, {"obn", 1, 0, kComplex ? "012___" : "012__"});
  add("geev", lapack::Geev<T>, {"bnLR", 1, 0, kComplex ? "__0123" : "___01234"});
  add("gees", lapack::Gees<T>, {"bnVS", 1, 0, kComplex ? "0_2134" : "023145"});
  add("gehrd", lapack::Gehrd<T>, {"nihlbw", 1, 0, "012_"});
  add(kComplex ? "hetrd" : "sytrd", lapack::Sytrd<T>, {"nolbw", 1, 0, "01234_"});
  add("gesdd", lapack::Gesdd<T>, {"fvbmnw", 1, 0, kComplex ? "01234___" : "01234__"});

  out->emplace_back(absl::StrCat("blas_", letter, "trsm"),
                    [](const HandlerContext& context, Views operands, Views results) {
                      static constexpr Convention kConvention = {"sotdmnba", 2, 1, "0"};
                      UntypedCall call(context, kConvention, operands, results);
                      SHARDCALL_RETURN_IF_ERROR(call.Run(lapack::Trsm<T>));
                      Scale<T>(*call.alpha(), results[0]);
                      return absl::OkStatus();
                    });
}

absl::Status GetrfBatched(const HandlerContext& context, Views operands, Views results) {
  static constexpr Convention kConvention = {"", 1, 0, "012_"};
  const ElementType type = operands.empty() ? ElementType::kF32 : operands[0].type;
  const TypedHandler handler = type == ElementType::kF64    ? lapack::Getrf<double>
                               : type == ElementType::kC64  ? lapack::Getrf<std::complex<float>>
                               : type == ElementType::kC128 ? lapack::Getrf<std::complex<double>>
                                                            : lapack::Getrf<float>;
  return UntypedCall(context, kConvention, operands, results).Run(handler);
}

}  // namespace

std::vector<std::pair<std::string, HostHandler>> UntypedLapackTargets() {
  std::vector<std::pair<std::string, HostHandler>> targets;
  AddType<float>("s", &targets);
  AddType<double>("d", &targets);
  AddType<std::complex<float>>("c", &targets);
  AddType<std::complex<double>>("z", &targets);
  targets.emplace_back("cublas_getrf_batched", GetrfBatched);
  return targets;
}

}  // namespace internal
}  // namespace shardcall
