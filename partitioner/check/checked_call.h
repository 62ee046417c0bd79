// SPDX-License-Identifier: Apache-2.0
// A custom call whose factors can be given any sizes. The rule checker makes programs of it.
#ifndef SHARDCALL_PARTITIONER_CHECK_CHECKED_CALL_H_
#define SHARDCALL_PARTITIONER_CHECK_CHECKED_CALL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall SHARDCALL_PUBLIC {

// The size of a factor that is not given; the checker finds one that the handler takes.
inline constexpr int64_t kOpenSize = -1;

struct CheckedCall {
  std::string target;
  int64_t api_version = 4;     // 1 to 4, as in HLO
  std::string backend_config;  // as in HLO; empty: none
  bool tuple_result = false;
  bool of_program = false;  // as a program states it, in the sizes of its factors
  bool own_rule = false;    // the rule is that of the program
  // The rule ends in "->", which is a scalar result or, if the handler wants it so, none.
  bool may_lack_result = false;
  // How the program states the call beside that. The layouts of operands, then of results, minor to
  // major; none: row-major.
  std::vector<std::vector<int64_t>> layouts = {};
  std::string aliasing = {};  // output_to_operand_aliasing, "{{}: (0, {})}"
  bool has_side_effect = false;
  // Attributes that follow the sizes, with their formulas; see RuleAlternative.
  std::vector<std::pair<std::string, std::string>> attributes = {};
  std::vector<int> scratch = {};                          // results that have no meaning
  std::vector<ElementType> types;                         // operands, then results
  std::vector<std::vector<ElementType>> type_tries = {};  // alternatives; empty: any
  int num_operands = 0;
  // The dimensions of every tensor as factors, with the kinds of factors. Sizes are those of the
  // call that it was made of (may be 0), or kOpenSize.
  ShardingRule rule;
  bool callbacks = false;  // partitioned by callbacks; all factors need replication
  // A factor whose size is determined by another's: times * size(of) + plus.
  struct Related {
    int factor = 0;
    int64_t times = 1;
    int of = 0;
    int64_t plus = 0;
  };
  std::vector<Related> related = {};
  // The range of an operand's elements: at least `low`, below `high`. Each bound is times *
  // size(of) + plus, or only plus if `of` is -1.
  struct Range {
    int operand = 0;
    Related low, high;
  };
  std::vector<Range> ranges = {};

  // Makes it the call without results that the rule also stands for.
  void DropResult();

  // Computes the sizes of factors that are determined by others.
  void Relate(std::vector<int64_t>* sizes) const;

  int num_tensors() const { return static_cast<int>(types.size()); }
  std::vector<int64_t> Dims(int tensor, absl::Span<const int64_t> sizes) const;
  std::string ShapeText(int tensor, absl::Span<const int64_t> sizes) const;  // "f32[4,8]"
  bool IsScratch(size_t result) const;
  // backend_config with the attributes that calls in these sizes have. E125 if there are none.
  absl::StatusOr<std::string> ConfigAt(absl::Span<const int64_t> sizes) const;
  // "(f32[4,8], f32[8]) -> f32[4,8]"
  std::string SignatureText(absl::Span<const int64_t> sizes) const;
  // The rule as a user writes it, with sizes for factors that are in compound dimensions only.
  RuleText Text(absl::Span<const int64_t> sizes) const;
  std::string RuleLine(absl::Span<const int64_t> sizes) const;  // the same on one line

  // The number of shards by tensor and dimension; empty: nothing is sharded.
  struct Mesh {
    std::vector<std::pair<std::string, int64_t>> axes;
    std::vector<std::vector<std::string>> dims;  // tensor -> axis name by dim, "" for none
  };
  // A module whose entry calls the target once, and whose outputs are the results that are not
  // scratch, or all of them. ConfigAt has a value for these sizes.
  std::string Hlo(absl::Span<const int64_t> sizes, const Mesh& mesh,
                  bool with_scratch = false) const;
  // The result that output `k` of that module is.
  int ResultOf(int output) const;
};

// One call for each registered signature whose rule determines its dimensions. Errors: E101 for an
// unknown target, E191 if the registration does not determine any (batch dims, callbacks), so that
// a program is needed.
absl::StatusOr<std::vector<CheckedCall>> CallsOfTarget(const std::string& target,
                                                       const TargetRegistry& targets,
                                                       const HandlerRegistry& handlers);
// The distinct calls of the target in a program. E191 if there is none.
absl::StatusOr<std::vector<CheckedCall>> CallsOfModule(const std::string& target,
                                                       const TargetRegistry& targets,
                                                       const Module& module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECKED_CALL_H_
