// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/c_target.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/partitioner/bindings/all_or_nothing.h"
#include "shardcall/partitioner/bindings/c/c_callbacks.h"
#include "shardcall/partitioner/bindings/c/c_facts.h"
#include "shardcall/partitioner/bindings/c/c_handler.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/bindings/c/c_shapes.h"
#include "shardcall/partitioner/bindings/manifest/partial_op_names.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kFirstTargetSize = offsetof(Shardcall_Target, partitioner);  // in version 0.1
constexpr size_t kFirstRuleSize = offsetof(Shardcall_Rule, when);

// Lists in C end with a null entry. The limit, far above any real length, applies if it is missing.
constexpr int kLongestList = 1024;

struct Source {
  std::string source;
  TargetRegistry* targets;
  HandlerRegistry* handlers;
  std::shared_ptr<const void> library;
};

std::vector<const Shardcall_Factor*> Factors(const Shardcall_Factor* list) {
  std::vector<const Shardcall_Factor*> out;
  for (int i = 0; list != nullptr && i < kLongestList && list[i].name != nullptr; ++i) {
    out.push_back(&list[i]);
  }
  return out;
}

absl::Status Wrong(const Source& r, absl::string_view target, std::string expected,
                   std::string found) {
  return ToStatus({.code = "E146",
                   .message = absl::StrCat("the registration of target \"", target, "\" is wrong"),
                   .where = r.source,
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "see Shardcall_Target in shardcall_c_plugin.h"});
}

std::vector<std::string> Names(const char* const* list) {
  std::vector<std::string> out;
  for (int i = 0; list != nullptr && i < kLongestList && list[i] != nullptr; ++i) {
    out.emplace_back(list[i]);
  }
  return out;
}

// Reads the rule of a Shardcall_Target or a Shardcall_Rule.
template <typename T>
absl::StatusOr<RuleText> ReadRule(const Source& r, absl::string_view target, const T& from) {
  RuleText text;
  text.rule = from.rule;
  text.need_replication = Names(from.need_replication);
  text.permutation = Names(from.permutation);
  text.blocked = Names(from.blocked);
  for (const Shardcall_Factor* f : Factors(from.reduction)) {
    PartialOp op;
    if (f->op == nullptr || !PartialOpFromName(f->op, &op)) {
      return Wrong(r, target, kPartialOpNames, f->op == nullptr ? "no op" : f->op);
    }
    text.reduction.push_back({f->name, op});
  }
  for (const Shardcall_Factor* f : Factors(from.pad)) {
    text.pad.push_back({f->name, f->value});
  }
  for (const Shardcall_Factor* f : Factors(from.sizes)) {
    if (!(f->value >= 0 && f->value < 1e15) || f->value != std::floor(f->value)) {
      return Wrong(r, target, absl::StrCat("a whole number as the size of factor ", f->name),
                   absl::StrCat(f->value));
    }
    text.sizes.push_back({f->name, static_cast<int64_t>(f->value)});
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> Attributes(const Shardcall_Attribute* list) {
  std::vector<std::pair<std::string, std::string>> out;
  for (int i = 0; list != nullptr && i < kLongestList && list[i].name != nullptr; ++i) {
    out.emplace_back(list[i].name, list[i].formula == nullptr ? "" : list[i].formula);
  }
  return out;
}

absl::Status RegisterTheRules(const Source& r, const Shardcall_Target& t, std::string config) {
  std::vector<RuleAlternative> alternatives;
  for (int k = 0; k < kLongestList && t.rules[k] != nullptr; ++k) {
    Shardcall_Rule rule;
    SHARDCALL_RETURN_IF_ERROR(ReadStruct("a Shardcall_Rule", t.rules[k], kFirstRuleSize, &rule));
    if (rule.rule == nullptr) return Wrong(r, t.name, "a rule string in every rule", "null");
    RuleAlternative& a = alternatives.emplace_back();
    SHARDCALL_ASSIGN_OR_RETURN(a.text, ReadRule(r, t.name, rule));
    if (rule.types != nullptr) a.types = rule.types;
    if (rule.when != nullptr) {
      SHARDCALL_ASSIGN_OR_RETURN(a.when, AttributeConditionsOf(rule.when));
    }
    a.attributes = Attributes(rule.attributes);
  }
  if (alternatives.empty()) return Wrong(r, t.name, "one rule or more in `rules`", "none");
  return r.targets->RegisterRules(t.name, std::move(alternatives), std::move(config), r.source);
}

absl::Status RegisterTheRule(const Source& r, const Shardcall_Target& t) {
  const std::string config = t.backend_config == nullptr ? "" : t.backend_config;
  const int kinds = (t.rule != nullptr) + (t.has_batch_dims != 0) + (t.batch_dims_of_call != 0) +
                    (t.partitioner != nullptr) + (t.reference != nullptr) + (t.rules != nullptr);
  if (kinds > 1) {
    return Wrong(r, t.name,
                 "one of rule, rules, batch_dims, batch_dims_of_call, partitioner and reference",
                 absl::StrCat(kinds, " of them"));
  }
  const bool factors = t.need_replication != nullptr || t.permutation != nullptr ||
                       t.blocked != nullptr || t.reduction != nullptr || t.pad != nullptr ||
                       t.sizes != nullptr || t.attributes != nullptr;
  if (factors && t.rule == nullptr) {
    return Wrong(r, t.name, "special factors beside the `rule` that they are of", "no rule there");
  }
  if (t.rules != nullptr) return RegisterTheRules(r, t, config);
  if (t.reference != nullptr) {
    if (!config.empty()) {
      return Wrong(r, t.name, "a reference for every call", "a backend_config beside it");
    }
    return In(RegisterPartitionLike(t.name, t.reference, r.targets, r.source),
              absl::StrCat("the reference of target \"", t.name, "\""));
  }
  if (t.partitioner != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(PartitionerCallbacks callbacks,
                               MakeCCallbacks(*t.partitioner, r.library));
    return r.targets->RegisterCustomCallPartitioner(t.name, std::move(callbacks), config, r.source);
  }
  if (t.batch_dims_of_call != 0) {
    return r.targets->RegisterBatchPartitionable(t.name, kBatchDimsOfCall, config, r.source);
  }
  if (t.rule == nullptr) {
    if (t.has_batch_dims == 0) return absl::OkStatus();
    if (t.batch_dims < 0 || t.batch_dims > 64) {
      return Wrong(r, t.name, "a number of batch dims", absl::StrCat(t.batch_dims));
    }
    return r.targets->RegisterBatchPartitionable(t.name, t.batch_dims, config, r.source);
  }
  std::vector<RuleAlternative> one(1);
  SHARDCALL_ASSIGN_OR_RETURN(one[0].text, ReadRule(r, t.name, t));
  one[0].attributes = Attributes(t.attributes);
  return r.targets->RegisterRules(t.name, std::move(one), config, r.source);
}

absl::Status RegisterTheHandler(const Source& r, const Shardcall_Target& t) {
  const bool typed = t.ffi_execute != nullptr || t.ffi_initialize != nullptr ||
                     t.ffi_prepare != nullptr || t.ffi_instantiate != nullptr;
  const int kinds = (t.handler != nullptr) + typed + (t.untyped != nullptr);
  if (kinds == 0 && t.rule == nullptr && t.has_batch_dims == 0 && t.batch_dims_of_call == 0 &&
      t.partitioner == nullptr && t.reference == nullptr && t.rules == nullptr) {
    return Wrong(r, t.name, "a rule, rules, batch_dims, a partitioner, a reference or a handler",
                 "none");
  }
  if (kinds > 1) return Wrong(r, t.name, "one kind of handler", absl::StrCat(kinds));
  if (kinds == 0 || r.handlers == nullptr) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(const std::string platform,
                             PlatformFromName(t.platform == nullptr ? "Host" : t.platform));
  if (t.handler != nullptr) {
    return r.handlers->Register(
        MakeCEntry(t.name, platform, t.handler, t.handler_data, r.source, r.library));
  }
  if (t.untyped != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(
        HandlerEntry entry,
        MakeUntypedEntry(t.name, platform, t.untyped, t.untyped_api_version, r.source, r.library));
    return r.handlers->Register(std::move(entry));
  }
  const auto stage = [](void* f) { return reinterpret_cast<abi::Handler*>(f); };
  SHARDCALL_ASSIGN_OR_RETURN(HandlerEntry entry,
                             MakeTypedEntry(t.name, platform,
                                            {stage(t.ffi_instantiate), stage(t.ffi_prepare),
                                             stage(t.ffi_initialize), stage(t.ffi_execute)},
                                            r.source, r.library));
  return r.handlers->Register(std::move(entry));
}

}  // namespace

absl::Status RegisterCTarget(const Shardcall_Target* target, absl::string_view source,
                             TargetRegistry* targets, HandlerRegistry* handlers,
                             std::shared_ptr<const void> library) {
  const Source s{std::string(source), targets, handlers, std::move(library)};
  Shardcall_Target t;
  const bool read = ReadStruct("register_target", target, kFirstTargetSize, &t).ok();
  if (!read || t.name == nullptr || t.name[0] == '\0') {
    return Wrong(s, !read || t.name == nullptr ? "" : t.name, "a target with struct_size and name",
                 target == nullptr ? "null" : absl::StrCat("struct_size ", target->struct_size));
  }
  return AllOrNothing(targets, handlers, nullptr, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(RegisterTheRule(s, t));
    if (t.shapes != nullptr) {
      SHARDCALL_RETURN_IF_ERROR(RegisterCShapes(t.name, t.shapes, targets, s.source, s.library));
    }
    if (t.vjp != nullptr) SHARDCALL_RETURN_IF_ERROR(RegisterCVjp(t.name, t.vjp, targets));
    if (t.limits != nullptr) SHARDCALL_RETURN_IF_ERROR(RegisterCLimits(t.name, t.limits, targets));
    if (t.batching != nullptr) {
      SHARDCALL_RETURN_IF_ERROR(RegisterCBatching(t.name, t.batching, targets));
    }
    // Last, since this notifies whoever handles the platform's targets.
    return RegisterTheHandler(s, t);
  });
}

}  // namespace internal
}  // namespace shardcall
