// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/derive/lowering.h"

#include <algorithm>
#include <exception>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::Status LoweringRegistry::Register(std::string name, std::string platform,
                                        LoweringFunction function, std::string source) {
  if (function == nullptr) {
    return ToStatus({.code = "E105",
                     .message = absl::StrCat("the lowering of \"", name, "\" has no function"),
                     .fix = "Give one"});
  }
  const auto functions = functions_.Lock();
  (*functions)[{std::move(name), absl::AsciiStrToLower(platform)}].push_back(
      std::make_shared<const Known>(
          Known{std::move(function), std::move(platform), std::move(source)}));
  return absl::OkStatus();
}

std::vector<LoweringRegistry::Entry> LoweringRegistry::List() const {
  std::vector<Entry> out;
  const auto functions = functions_.Lock();
  for (const auto& [key, known] : *functions) {
    for (const auto& k : known) out.push_back({key.first, k->platform, k->source});
  }
  return out;
}

bool LoweringRegistry::Knows(absl::string_view name) const {
  const auto functions = functions_.Lock();
  const auto it = functions->lower_bound({std::string(name), ""});
  return !name.empty() && it != functions->end() && it->first.first == name;
}

LoweringAnswer LoweringRegistry::Ask(const LoweringRequest& call) const {
  const std::string name(call.name), platform = absl::AsciiStrToLower(call.platform);
  for (const auto& key :
       {std::make_pair(name, platform), std::make_pair(name, std::string()),
        std::make_pair(std::string(), platform), std::make_pair(std::string(), std::string())}) {
    std::vector<std::shared_ptr<const Known>> asked;
    {
      const auto functions = functions_.Lock();
      const auto it = functions->find(key);
      if (it != functions->end()) asked = it->second;
    }
    for (const auto& known : asked) {
      std::string what;
      absl::StatusCode code = absl::StatusCode::kInternal;
      try {  // user code may throw
        LoweringAnswer answer = known->function(call);
        if (answer.ok() && !answer->has_value()) continue;
        if (answer.ok() || !DiagnosticCode(answer.status()).empty()) return answer;
        code = answer.status().code();
        what = FailedText(answer.status().message());
      } catch (const std::exception& e) {
        what = absl::StrCat("threw: ", e.what());
      } catch (...) {
        what = "threw";
      }
      return ToStatus(
          {.code = "E121",
           .message = absl::StrCat("the lowering of \"", name, "\" for ", call.platform, " ", what),
           .fix = "Correct the lowering, or let it skip what it cannot do"},
          code);
    }
  }
  return Skip();
}

namespace {

// The type in which LAPACK computes; kInvalid for types that it does not support.
ElementType LapackType(ElementType type) {
  if (type == ElementType::kBF16 || type == ElementType::kF16) return ElementType::kF32;
  const bool has = type == ElementType::kF32 || type == ElementType::kF64 || IsComplex(type);
  return has ? type : ElementType::kInvalid;
}

std::string LapackName(ElementType type, absl::string_view real, absl::string_view complex) {
  const char* letter = type == ElementType::kF32   ? "s"
                       : type == ElementType::kF64 ? "d"
                       : type == ElementType::kC64 ? "c"
                                                   : "z";
  return absl::StrCat("lapack_", letter, IsComplex(type) ? complex : real, "_ffi");
}

bool IsMatrix(const Shape* s) { return s->IsArray() && s->rank() >= 2; }

std::vector<const Shape*> WithTypes(const LoweringRequest& call,
                                    const std::vector<ElementType>& types) {
  std::vector<const Shape*> out;
  for (size_t k = 0; k < types.size(); ++k) {
    out.push_back(call.context->MakeArray(types[k], call.results[k]->dims()));
  }
  return out;
}

// a -> (the packed factors, tau).
LoweringAnswer LowerQr(const LoweringRequest& call) {
  if (call.operands.size() != 1 || call.results.size() != 2 || !IsMatrix(call.operands[0])) {
    return Skip();
  }
  const ElementType type = LapackType(call.operands[0]->element_type());
  if (type == ElementType::kInvalid) return Skip();
  return LoweredCall{.target = LapackName(type, "geqrf", "geqrf"),
                     .operand_types = {type},
                     .results = WithTypes(call, {type, type}),
                     .column_major = true};
}

// (factors, tau) -> Q.
LoweringAnswer LowerReflectors(const LoweringRequest& call) {
  if (call.operands.size() != 2 || call.results.size() != 1 || !IsMatrix(call.operands[0])) {
    return Skip();
  }
  const ElementType type = LapackType(call.operands[0]->element_type());
  if (type == ElementType::kInvalid) return Skip();
  return LoweredCall{.target = LapackName(type, "orgqr", "ungqr"),
                     .operand_types = {type, type},
                     .results = WithTypes(call, {type}),
                     .column_major = true};
}

// a -> (eigenvectors, eigenvalues); the attributes are "LOWER,SORT,ITERATIONS,TOLERANCE". LAPACK
// always sorts, which is also one of the orders allowed without SORT.
LoweringAnswer LowerEigh(const LoweringRequest& call) {
  if (call.operands.size() != 1 || call.results.size() != 2 || !IsMatrix(call.operands[0])) {
    return Skip();
  }
  const ElementType type = LapackType(call.operands[0]->element_type());
  if (type == ElementType::kInvalid) return Skip();
  const bool lower = !absl::StartsWith(call.attributes, "0");
  LoweredCall out{
      .target = LapackName(type, "syevd", "heevd"),
      .backend_config = absl::StrCat("{mode = 86 : ui8, uplo = ", lower ? 76 : 85, " : ui8}"),
      .operand_types = {type},
      .results = WithTypes(call, {type, RealPartType(type)}),
      .take = {0, 1},
      .column_major = true};
  const auto dims = call.operands[0]->dims();
  out.results.push_back(
      call.context->MakeArray(ElementType::kS32, dims.subspan(0, dims.size() - 2)));  // info
  return out;
}

}  // namespace

absl::Status RegisterBuiltinLowerings(LoweringRegistry& registry) {
  SHARDCALL_RETURN_IF_ERROR(registry.Register("Qr", "Host", LowerQr, "built in"));
  SHARDCALL_RETURN_IF_ERROR(registry.Register("ProductOfElementaryHouseholderReflectors", "Host",
                                              LowerReflectors, "built in"));
  return registry.Register("Eigh", "Host", LowerEigh, "built in");
}

}  // namespace shardcall
