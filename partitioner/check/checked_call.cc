// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/checked_call.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/custom_call/attribute_formulas.h"
#include "shardcall/partitioner/ir/text/lex/literal_text.h"
#include "shardcall/sharding/rule/rule_sizes.h"

namespace shardcall {
namespace {

constexpr absl::string_view kVersionNames[] = {
    "", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

}  // namespace

std::vector<int64_t> CheckedCall::Dims(int tensor, absl::Span<const int64_t> sizes) const {
  std::vector<int64_t> dims;
  for (const FactorList& dim : rule.tensor(tensor).dims) {
    int64_t size = 1;
    for (int f : dim) size *= sizes[f];
    dims.push_back(size);
  }
  return dims;
}

void CheckedCall::DropResult() {
  rule.results.clear();
  types.resize(num_operands);
  for (std::vector<ElementType>& tried : type_tries) tried.resize(num_operands);
  tuple_result = true;
  has_side_effect = true;  // or nothing would call it
  may_lack_result = false;
}

void CheckedCall::Relate(std::vector<int64_t>* sizes) const {
  for (const Related& r : related) (*sizes)[r.factor] = r.times * (*sizes)[r.of] + r.plus;
}

std::string CheckedCall::ShapeText(int tensor, absl::Span<const int64_t> sizes) const {
  return absl::StrCat(ElementTypeName(types[tensor]), "[", absl::StrJoin(Dims(tensor, sizes), ","),
                      "]");
}

bool CheckedCall::IsScratch(size_t result) const {
  return std::count(scratch.begin(), scratch.end(), static_cast<int>(result)) > 0;
}

absl::StatusOr<std::string> CheckedCall::ConfigAt(absl::Span<const int64_t> sizes) const {
  if (attributes.empty()) return backend_config;
  return ConfigOfSizes(attributes, target, backend_config, rule, sizes);
}

std::string CheckedCall::SignatureText(absl::Span<const int64_t> sizes) const {
  std::vector<std::string> operands, results;
  for (int t = 0; t < num_tensors(); ++t) {
    (t < num_operands ? operands : results).push_back(ShapeText(t, sizes));
  }
  return absl::StrCat("(", absl::StrJoin(operands, ", "), ") -> ",
                      results.empty() ? "()" : absl::StrJoin(results, ", "));
}

RuleText CheckedCall::Text(absl::Span<const int64_t> sizes) const {
  RuleText text;
  std::vector<bool> used(rule.factors.size(), false);
  const auto value = [&](const TensorFactors& tensor) {
    return absl::StrJoin(tensor.dims, " ", [&](std::string* out, const FactorList& dim) {
      std::vector<std::string> names;
      for (int f : dim) {
        names.push_back(rule.factors[f].name);
        used[f] = true;
      }
      const std::string factors = absl::StrJoin(names, " ");
      absl::StrAppend(out, dim.size() == 1 ? factors : absl::StrCat("(", factors, ")"));
    });
  };
  const auto side = [&](const std::vector<TensorFactors>& tensors) {
    return absl::StrJoin(tensors, ", ", [&](std::string* out, const TensorFactors& tensor) {
      absl::StrAppend(out, value(tensor));
    });
  };
  text.rule = absl::StrCat(side(rule.operands), " -> ", side(rule.results));
  const std::vector<bool> follows = SizesFollow(rule);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    if (!used[f]) continue;
    if (factor.kind == FactorKind::kNeedReplication) text.need_replication.push_back(factor.name);
    if (factor.kind == FactorKind::kPermutation) text.permutation.push_back(factor.name);
    if (factor.kind == FactorKind::kReduction) {
      text.reduction.emplace_back(factor.name, factor.reduction);
    }
    if (factor.blocked) text.blocked.push_back(factor.name);
    if (factor.has_pad) text.pad.emplace_back(factor.name, factor.pad);
    if (!follows[f]) text.sizes.emplace_back(factor.name, sizes[f]);
  }
  return text;
}

std::string CheckedCall::RuleLine(absl::Span<const int64_t> sizes) const {
  ShardingRule sized = rule;
  for (size_t f = 0; f < sizes.size(); ++f) sized.factors[f].size = sizes[f];
  return RuleAsWritten(sized);
}

int CheckedCall::ResultOf(int output) const {
  int result = -1;
  for (int k = 0; k <= output; ++k) {
    do ++result;
    while (IsScratch(result));
  }
  return result;
}

std::string CheckedCall::Hlo(absl::Span<const int64_t> sizes, const Mesh& mesh,
                             bool with_scratch) const {
  int64_t devices = 1;
  std::string axes;
  for (const auto& [name, size] : mesh.axes) {
    devices *= size;
    absl::StrAppend(&axes, axes.empty() ? "" : ",", "'", name, "'=", size);
  }
  // "{mesh['x'=2], [{'x'}, {}]}"
  auto sharding = [&](int tensor) {
    std::string out = absl::StrCat("{mesh[", axes, "], [");
    const auto& dims = mesh.dims[tensor];
    for (size_t d = 0; d < dims.size(); ++d) {
      absl::StrAppend(&out, d ? ", {" : "{", dims[d].empty() ? "" : absl::StrCat("'", dims[d], "'"),
                      "}");
    }
    return out + "]}";
  };
  const bool sharded = devices > 1;
  std::string text =
      absl::StrCat("HloModule check", sharded ? absl::StrCat(", num_partitions=", devices) : "",
                   "\n\nENTRY main {\n");
  // "f32[4,8]{0,1}"
  auto laid_out = [&](int tensor) {
    return absl::StrCat(ShapeText(tensor, sizes),
                        layouts.empty() || layouts[tensor].empty()
                            ? ""
                            : absl::StrCat("{", absl::StrJoin(layouts[tensor], ","), "}"));
  };
  std::vector<std::string> operands, results, result_shardings, operand_layouts;
  for (int t = 0; t < num_operands; ++t) {
    absl::StrAppend(&text, "  p", t, " = ", ShapeText(t, sizes), " parameter(", t, ")",
                    sharded ? absl::StrCat(", sharding=", sharding(t)) : "", "\n");
    operands.push_back(absl::StrCat("p", t));
    operand_layouts.push_back(laid_out(t));
  }
  for (int t = num_operands; t < num_tensors(); ++t) {
    results.push_back(laid_out(t));
    if (sharded) result_shardings.push_back(sharding(t));
  }
  const std::string result = absl::StrJoin(results, ", ");
  const bool chosen = !with_scratch && !scratch.empty();
  absl::StrAppend(&text, chosen ? "  c = " : "  ROOT c = ",
                  tuple_result ? absl::StrCat("(", result, ")") : result, " custom-call(",
                  absl::StrJoin(operands, ", "), "), custom_call_target=\"", target,
                  "\", api_version=", kVersionNames[api_version]);
  if (!layouts.empty()) {
    absl::StrAppend(&text, ", operand_layout_constraints={", absl::StrJoin(operand_layouts, ", "),
                    "}");
  }
  if (has_side_effect) text += ", custom_call_has_side_effect=true";
  if (!aliasing.empty()) absl::StrAppend(&text, ", output_to_operand_aliasing=", aliasing);
  const absl::StatusOr<std::string> sized = ConfigAt(sizes);
  const std::string config = sized.ok() ? *sized : backend_config;
  if (!config.empty()) {
    absl::StrAppend(
        &text, ", backend_config=", absl::StartsWith(config, "{") ? config : StringText(config));
  }
  if (sharded) {
    const std::string all = absl::StrJoin(result_shardings, ", ");
    absl::StrAppend(&text, ", sharding=", tuple_result ? absl::StrCat("{", all, "}") : all);
  }
  if (!chosen) return text + "\n}\n";
  std::vector<std::string> outputs, shapes;
  for (size_t k = 0; k < results.size(); ++k) {
    if (IsScratch(k)) continue;
    outputs.push_back(absl::StrCat("r", k));
    shapes.push_back(results[k]);
    absl::StrAppend(&text, "\n  r", k, " = ", results[k], " get-tuple-element(c), index=", k);
  }
  return absl::StrCat(text, "\n  ROOT r = (", absl::StrJoin(shapes, ", "), ") tuple(",
                      absl::StrJoin(outputs, ", "), ")\n}\n");
}

}  // namespace shardcall
