// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <memory>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/kernels/host/gemm.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status ReadOp(const HandlerContext& context, const CallArguments& args,
                    absl::string_view name, BlasOp* op) {
  const Attribute* attribute = context.attribute_map().Find(name);
  if (attribute == nullptr) return absl::OkStatus();
  if (!absl::holds_alternative<std::string>(attribute->value)) {
    SHARDCALL_ASSIGN_ATTRIBUTE(const bool transpose, args,
                               context.attribute_map().GetBool(name, false));
    *op = transpose ? BlasOp::kTranspose : BlasOp::kNone;
    return absl::OkStatus();
  }
  const std::string& text = absl::get<std::string>(attribute->value);
  if (text == "N")
    *op = BlasOp::kNone;
  else if (text == "T")
    *op = BlasOp::kTranspose;
  else if (text == "C")
    *op = BlasOp::kAdjoint;
  else
    return args.AttributeError(name, "\"N\", \"T\" or \"C\"", absl::StrCat("\"", text, "\""));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GemmCall> CheckGemm(const HandlerContext& context, const CallArguments& args,
                                   absl::Span<const ElementType> types, const GemmPlaces& places) {
  const bool has_c = places.has_c;
  GemmCall call;
  const AttributeMapView& attributes = context.attribute_map();
  SHARDCALL_RETURN_IF_ERROR(
      args.Located(attributes.OnlyKnown({"alpha", "beta", "transa", "transb"})));
  SHARDCALL_RETURN_IF_ERROR(ReadOp(context, args, "transa", &call.op_a));
  SHARDCALL_RETURN_IF_ERROR(ReadOp(context, args, "transb", &call.op_b));
  SHARDCALL_ASSIGN_ATTRIBUTE(call.alpha, args, attributes.GetFloat("alpha", 1));
  SHARDCALL_ASSIGN_ATTRIBUTE(call.beta, args, attributes.GetFloat("beta", has_c ? 1 : 0));
  if (!has_c && call.beta != 0) {
    return args.AttributeError("beta", "0, because there is no operand c", absl::StrCat(call.beta));
  }

  const ArgumentPlace a = places.a, b = places.b, d = places.d;
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(a, types));
  const ElementType type = args.at(a).type;
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(b, {type}));
  const ElementType result_types[] = {type, ElementType::kF32};
  SHARDCALL_RETURN_IF_ERROR(
      args.CheckType(d, absl::MakeConstSpan(result_types, ElementTypeBytes(type) == 2 ? 2 : 1)));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(a, 2));
  SHARDCALL_RETURN_IF_ERROR(args.CheckRank(b, args.at(a).rank()));

  const int lead = args.at(a).rank() - 2;
  const auto &ad = args.at(a).dims, &bd = args.at(b).dims;
  const bool ta = call.op_a != BlasOp::kNone, tb = call.op_b != BlasOp::kNone;
  call.m = ad[lead + ta];
  call.k = ad[lead + !ta];
  call.n = bd[lead + !tb];
  std::vector<int64_t> want_b(ad.begin(), ad.begin() + lead), want_d = want_b;
  for (int64_t extent : want_b) call.batch *= extent;
  want_b.insert(want_b.end(), {tb ? call.n : call.k, tb ? call.k : call.n});
  want_d.insert(want_d.end(), {call.m, call.n});
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(b, want_b));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(d, want_d));
  if (has_c) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(places.c, {args.at(d).type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(places.c, want_d));
  }
  for (int64_t extent : {call.m, call.n, call.k}) {
    if (extent > kMostBlasExtent) {
      return args.ShapeError(a, absl::StrCat("extents of at most ", kMostBlasExtent));
    }
  }
  return call;
}

namespace {

template <typename T>
void Run(const GemmCall& call, absl::Span<const BufferView> operands, const BufferView& d) {
  const BufferView &a = operands[0], &b = operands[1];
  const int64_t m = call.m, n = call.n, k = call.k;
  std::unique_ptr<T[]> am(new T[m * k + 1]), bm(new T[k * n + 1]), dm(new T[m * n + 1]);
  auto at = [](const BufferView& buffer, int64_t element) {
    return static_cast<char*>(buffer.data) + element * ElementTypeBytes(buffer.type);
  };
  for (int64_t i = 0; i < call.batch; ++i) {
    LoadElements(a.type, at(a, i * m * k), m * k, am.get());
    LoadElements(b.type, at(b, i * k * n), k * n, bm.get());
    // With beta = 0, c is not read, as in cuBLAS, so its NaNs have no effect.
    if (call.beta != 0) {
      LoadElements(operands[2].type, at(operands[2], i * m * n), m * n, dm.get());
    }
    BlasGemm(call.op_a, call.op_b, m, n, k, T(call.alpha), am.get(),
             call.op_a == BlasOp::kNone ? k : m, bm.get(), call.op_b == BlasOp::kNone ? n : k,
             T(call.beta), dm.get(), n);
    StoreElements(d.type, dm.get(), m * n, at(d, i * m * n));
  }
}

}  // namespace

absl::Status CublasGemm(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"a", "b", "c"}, {"d"}, 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  const GemmPlaces places = {Operand(0), Operand(1), Operand(2), Result(0), operands.size() > 2};
  SHARDCALL_ASSIGN_OR_RETURN(const GemmCall call, CheckGemm(context, args, kGemmTypes, places));
  switch (operands[0].type) {
    case ElementType::kF64: Run<double>(call, operands, results[0]); break;
    case ElementType::kC64: Run<std::complex<float>>(call, operands, results[0]); break;
    case ElementType::kC128: Run<std::complex<double>>(call, operands, results[0]); break;
    default: Run<float>(call, operands, results[0]);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
