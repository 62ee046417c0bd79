// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/c_facts.h"

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/partitioner/bindings/c/c_attributes.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/bindings/c/c_shapes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int32_t kLongestList = 1024;

const char* OrEmpty(const char* text) { return text == nullptr ? "" : text; }

// The object behind a Shardcall_LoweringRequest.
struct Asked {
  const AttributeMapView* attributes;
  std::string message;
};
Asked& Of(const Shardcall_LoweringRequest* r) { return *static_cast<Asked*>(r->reserved); }

const AttributeMapView& AttributesOf(const Shardcall_LoweringRequest* r) {
  return *Of(r).attributes;
}
void SetMessage(const Shardcall_LoweringRequest* r, const char* message) {
  if (r != nullptr) Of(r).message = OrEmpty(message);
}

absl::Status WrongAnswer(const LoweringRequest& request, std::string expected, std::string found) {
  return ToStatus({.code = "E119",
                   .message = absl::StrCat("the lowering of \"", request.name, "\" for ",
                                           request.platform, " answers what cannot be"),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "see Shardcall_LoweredCall in shardcall_c_derived.h"});
}

absl::StatusOr<LoweredCall> ReadAnswer(const LoweringRequest& request,
                                       const Shardcall_LoweredCall& c) {
  LoweredCall out;
  out.target = c.target;
  out.api_version = c.api_version == 0 ? 4 : c.api_version;
  out.column_major = c.column_major != 0;
  out.backend_config =
      c.backend_config == nullptr ? std::string(request.attributes) : std::string(c.backend_config);
  if (out.api_version < 1 || out.api_version > 4) {
    return WrongAnswer(request, "an api_version of 1 to 4", absl::StrCat(c.api_version));
  }
  for (size_t k = 0; c.operand_types != nullptr && k < request.operands.size(); ++k) {
    const int32_t type = c.operand_types[k];
    if (!IsArrayTypeOfC(type)) {
      return WrongAnswer(request, absl::StrCat("an element type of operand ", k),
                         absl::StrCat(type));
    }
    out.operand_types.push_back(static_cast<ElementType>(type));
  }
  if (c.num_results < 0 || c.num_results > kLongestList ||
      (c.num_results > 0 && c.results == nullptr)) {
    return WrongAnswer(request, "as many results as are said", absl::StrCat(c.num_results));
  }
  for (int32_t k = 0; k < c.num_results; ++k) {
    const Shape* shape = ArrayOfC(c.results[k], request.context);
    if (shape == nullptr) {
      return WrongAnswer(request, absl::StrCat("an array as result ", k), "none");
    }
    out.results.push_back(shape);
  }
  for (size_t k = 0; c.take != nullptr && k < request.results.size(); ++k) {
    out.take.push_back(c.take[k]);
  }
  return out;
}

LoweringAnswer Ask(const Shardcall_Lowering& lowering, const LoweringRequest& request) {
  const AttributeMapView attributes = AttributesOrNone(request.attributes);
  Asked asked{&attributes, ""};
  const std::string name(request.name), version(request.version), text(request.attributes),
      platform(request.platform);
  const std::vector<Shardcall_Shape> operands = CShapes(request.operands),
                                     results = CShapes(request.results);
  Shardcall_LoweringRequest c = SHARDCALL_INIT(Shardcall_LoweringRequest);
  c.name = name.c_str();
  c.version = version.c_str();
  c.attributes = text.c_str();
  c.attributes_size = text.size();
  c.platform = platform.c_str();
  c.is_composite = request.composite;
  c.num_operands = static_cast<int32_t>(operands.size());
  c.num_results = static_cast<int32_t>(results.size());
  c.operands = operands.data();
  c.results = results.data();
  CAttributes<Shardcall_LoweringRequest, AttributesOf>::Fill(&c);
  c.set_message = SetMessage;
  c.reserved = &asked;
  Shardcall_LoweredCall answer = SHARDCALL_INIT(Shardcall_LoweredCall);
  const RunningCall running("the lowering", name);
  const int code = lowering.lower(&c, &answer, lowering.data);
  if (code != 0) return StatusOfC(code, asked.message);
  if (answer.target == nullptr) return Skip();
  SHARDCALL_ASSIGN_OR_RETURN(LoweredCall call, ReadAnswer(request, answer));
  return call;
}

}  // namespace

absl::Status RegisterCVjp(absl::string_view target, const Shardcall_Vjp* vjp,
                          TargetRegistry* targets) {
  constexpr char kWhat[] = "a Shardcall_Vjp";
  Shardcall_Vjp c;
  constexpr size_t kFirstSize = offsetof(Shardcall_Vjp, skip_absent_operands);
  SHARDCALL_RETURN_IF_ERROR(ReadStruct(kWhat, vjp, kFirstSize, &c));
  for (const auto& [what, n, list] :
       {std::make_tuple("arguments", c.num_arguments, static_cast<const void*>(c.arguments)),
        std::make_tuple("gradients", c.num_gradients, static_cast<const void*>(c.gradients))}) {
    if (n > 0 && n <= kLongestList && list != nullptr) continue;
    return BadArgument(kWhat, absl::StrCat("a list of ", what),
                       list == nullptr ? "null" : absl::StrCat(n));
  }
  VjpSpec spec;
  spec.target = OrEmpty(c.target);
  spec.computation = OrEmpty(c.computation);
  for (int32_t k = 0; k < c.num_arguments; ++k) {
    const Shardcall_VjpArgument& a = c.arguments[k];
    if (a.kind < SHARDCALL_OPERAND || a.kind > SHARDCALL_COTANGENT) {
      return BadArgument(kWhat, "an argument that is an operand, result or cotangent",
                         absl::StrCat("kind ", a.kind));
    }
    spec.arguments.push_back({static_cast<VjpArgument::Kind>(a.kind), a.index});
  }
  spec.gradients.assign(c.gradients, c.gradients + c.num_gradients);
  if (c.backend_config != nullptr) spec.backend_config = c.backend_config;
  spec.skip_absent_operands = c.skip_absent_operands != 0;
  for (int32_t k = 0; c.pad != nullptr && k < kLongestList && c.pad[k].name != nullptr; ++k) {
    spec.pad.emplace_back(c.pad[k].name, c.pad[k].value);
  }
  return targets->RegisterVjp(std::string(target), std::move(spec));
}

absl::Status RegisterCBatching(absl::string_view target, const Shardcall_Batching* batching,
                               TargetRegistry* targets) {
  constexpr char kWhat[] = "a Shardcall_Batching";
  Shardcall_Batching c;
  SHARDCALL_RETURN_IF_ERROR(ReadStruct(kWhat, batching, sizeof(c), &c));
  if (c.kind < SHARDCALL_BATCH_LEADING || c.kind > SHARDCALL_BATCH_LOOP) {
    return BadArgument(kWhat, "a kind of 0 to 3", absl::StrCat(c.kind));
  }
  return targets->RegisterBatching(std::string(target),
                                   {static_cast<BatchingSpec::Kind>(c.kind), OrEmpty(c.target)});
}

absl::Status RegisterCLimits(absl::string_view target, const Shardcall_CallLimits* limits,
                             TargetRegistry* targets) {
  constexpr char kWhat[] = "a Shardcall_CallLimits";
  constexpr int32_t kMost = 1 << 16;
  Shardcall_CallLimits c;
  SHARDCALL_RETURN_IF_ERROR(ReadStruct(kWhat, limits, offsetof(Shardcall_CallLimits, scratch), &c));
  for (const auto& [what, n, list] :
       {std::make_tuple("sizes", c.num_sizes, static_cast<const void*>(c.sizes)),
        std::make_tuple("ranges", c.num_ranges, static_cast<const void*>(c.ranges)),
        std::make_tuple("scratch results", c.num_scratch, static_cast<const void*>(c.scratch))}) {
    if (n == 0 || (n > 0 && n <= kMost && list != nullptr)) continue;
    return BadArgument(kWhat, absl::StrCat("as many ", what, " as it says"), absl::StrCat(n));
  }
  CallLimits out;
  for (int32_t k = 0; k < c.num_sizes; ++k) {
    out.sizes.emplace_back(OrEmpty(c.sizes[k].factor), OrEmpty(c.sizes[k].size));
  }
  for (int32_t k = 0; k < c.num_ranges; ++k) {
    const Shardcall_Range& range = c.ranges[k];
    out.ranges.push_back({.operand = range.operand,
                          .low = range.low == nullptr ? "0" : range.low,
                          .high = OrEmpty(range.high)});
  }
  if (c.num_scratch > 0) out.scratch.assign(c.scratch, c.scratch + c.num_scratch);
  return targets->RegisterCallLimits(std::string(target), std::move(out));
}

absl::Status RegisterCLowering(const Shardcall_Lowering* lowering, absl::string_view source,
                               LoweringRegistry* lowerings, std::shared_ptr<const void> library) {
  constexpr char kWhat[] = "a Shardcall_Lowering";
  Shardcall_Lowering c;
  SHARDCALL_RETURN_IF_ERROR(ReadStruct(kWhat, lowering, sizeof(c), &c));
  SHARDCALL_RETURN_IF_ERROR(NotNull(kWhat, "lower", reinterpret_cast<const void*>(c.lower)));
  std::string name = OrEmpty(c.name), platform = OrEmpty(c.platform);
  if (!platform.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(platform, PlatformFromName(platform));
  }
  c.name = c.platform = nullptr;
  return lowerings->Register(
      std::move(name), std::move(platform),
      [c, library = std::move(library)](const LoweringRequest& request) { return Ask(c, request); },
      std::string(source));
}

}  // namespace internal
}  // namespace shardcall
