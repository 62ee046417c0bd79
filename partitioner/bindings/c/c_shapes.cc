// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/c_shapes.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/partitioner/bindings/c/c_attributes.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kLargestDim = int64_t{1} << 40;
constexpr size_t kMostResults = 1024;

// The object behind a Shardcall_ShapeRequest.
struct Asked {
  Context* context;
  AttributeMapView attributes;
  std::vector<const Shape*> results;
  std::string message;
  absl::Status first_error;  // of add_result, in case the function ignores its code
};
Asked& Of(const Shardcall_ShapeRequest* r) { return *static_cast<Asked*>(r->reserved); }
const AttributeMapView& AttributesOf(const Shardcall_ShapeRequest* r) { return Of(r).attributes; }

void SetMessage(const Shardcall_ShapeRequest* r, const char* message) {
  if (r != nullptr) Of(r).message = message == nullptr ? "" : message;
}

int AddResult(const Shardcall_ShapeRequest* r, int32_t type, int32_t rank, const int64_t* dims) {
  if (r == nullptr) return static_cast<int>(absl::StatusCode::kInvalidArgument);
  Asked& asked = Of(r);
  const size_t k = asked.results.size();
  Shardcall_Shape c = SHARDCALL_INIT(Shardcall_Shape);
  c.type = type;
  c.rank = rank;
  c.dims = dims;
  const bool token = type == static_cast<int32_t>(ElementType::kToken) && rank == 0;
  const Shape* shape = k == kMostResults ? nullptr
                       : token           ? asked.context->MakeToken()
                                         : ArrayOfC(c, asked.context);
  if (shape != nullptr) {
    asked.results.push_back(shape);
    return 0;
  }
  if (asked.first_error.ok()) {
    std::string found = absl::StrCat("type ", type, ", rank ", rank);
    if (rank > 0 && rank <= kMaxRank && dims != nullptr) {
      absl::StrAppend(&found, ", dims ", absl::StrJoin(absl::MakeConstSpan(dims, rank), ","));
    }
    asked.first_error = absl::InvalidArgumentError(
        k == kMostResults ? absl::StrCat("it adds more than ", kMostResults, " results")
                          : absl::StrCat("result ", k,
                                         " can be no shape: it needs an element type, a rank of 0 "
                                         "to ",
                                         kMaxRank, ", dims from 0 to 2^40; it has ", found));
  }
  return static_cast<int>(absl::StatusCode::kInvalidArgument);
}

absl::StatusOr<const Shape*> Ask(const Shardcall_ShapeFunction& function,
                                 const ShapeRequest& request) {
  Asked asked{request.context, AttributesOrNone(request.backend_config), {}, "", {}};
  const std::string target(request.target), config(request.backend_config);
  std::vector<const Shape*> leaves;
  for (const Shape* s : request.operands) {
    for (int k = 0; k < s->num_leaves(); ++k) leaves.push_back(s->leaf(k));
  }
  const std::vector<Shardcall_Shape> operands = CShapes(leaves);
  Shardcall_ShapeRequest c = SHARDCALL_INIT(Shardcall_ShapeRequest);
  c.target = target.c_str();
  c.backend_config = config.c_str();
  c.backend_config_size = config.size();
  c.num_operands = static_cast<int32_t>(operands.size());
  c.operands = operands.data();
  CAttributes<Shardcall_ShapeRequest, AttributesOf>::Fill(&c);
  c.set_message = SetMessage;
  c.add_result = AddResult;
  c.reserved = &asked;
  const RunningCall running("the shape function", target);
  const int code = function.infer(&c, function.data);
  if (!asked.first_error.ok()) return asked.first_error;
  if (code != 0) return StatusOfC(code, asked.message);
  if (asked.results.empty()) return absl::InternalError("it adds no result");
  if (asked.results.size() == 1 && function.tuple == 0) return asked.results[0];
  return request.context->MakeTuple(asked.results);
}

}  // namespace

std::vector<Shardcall_Shape> CShapes(absl::Span<const Shape* const> shapes) {
  std::vector<Shardcall_Shape> out;
  for (const Shape* s : shapes) {
    Shardcall_Shape c = SHARDCALL_INIT(Shardcall_Shape);
    c.type = static_cast<int32_t>(s->element_type());
    c.rank = s->rank();
    c.dims = s->dims().data();
    if (s->has_layout()) c.minor_to_major = s->minor_to_major().data();
    out.push_back(c);
  }
  return out;
}

bool IsArrayTypeOfC(int32_t type) {
  return type > 0 && type < kNumElementTypes && IsArrayType(static_cast<ElementType>(type));
}

const Shape* ArrayOfC(const Shardcall_Shape& shape, Context* context) {
  if (!IsArrayTypeOfC(shape.type) || shape.rank < 0 || shape.rank > kMaxRank ||
      (shape.rank > 0 && shape.dims == nullptr)) {
    return nullptr;
  }
  const auto dims = absl::MakeConstSpan(shape.dims, shape.rank);
  for (int64_t d : dims) {
    if (d < 0 || d >= kLargestDim) return nullptr;
  }
  return context->MakeArray(static_cast<ElementType>(shape.type), dims);
}

absl::Status RegisterCShapes(absl::string_view target, const Shardcall_ShapeFunction* function,
                             TargetRegistry* targets, absl::string_view source,
                             std::shared_ptr<const void> library) {
  constexpr char kWhat[] = "a Shardcall_ShapeFunction";
  Shardcall_ShapeFunction c;
  SHARDCALL_RETURN_IF_ERROR(ReadStruct(kWhat, function, sizeof(c), &c));
  SHARDCALL_RETURN_IF_ERROR(NotNull(kWhat, "infer", reinterpret_cast<const void*>(c.infer)));
  return targets->RegisterShapeInference(
      std::string(target),
      [c, library = std::move(library)](const ShapeRequest& request) { return Ask(c, request); },
      {reinterpret_cast<const void*>(c.infer), c.data,
       reinterpret_cast<const void*>(static_cast<uintptr_t>(c.tuple != 0))},
      std::string(source));
}

}  // namespace internal
}  // namespace shardcall
