// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/rules/rule_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {

bool HasIdentities(const RuleArgs& args, PartialOp op, int first) {
  for (int t = first; t < args.num_tensors(); ++t) {
    const Shape* shape = args.tensor(t);
    if (shape->IsArray() && !HasIdentity(op, shape->element_type())) return false;
  }
  return true;
}

RuleBuilder::RuleBuilder(const RuleArgs& args) : args_(args) {
  rule_.factors.reserve(4);
  rule_.operands.resize(args.operands.size());
  rule_.results.resize(args.results.size());
  for (int t = 0; t < args.num_tensors(); ++t) Tensor(t).dims.resize(args.rank(t));
}

TensorFactors& RuleBuilder::Tensor(int t) {
  return t < args_.num_operands() ? rule_.operands[t] : rule_.results[t - args_.num_operands()];
}

int RuleBuilder::Add(int64_t size, FactorKind kind, PartialOp reduction) {
  Factor f;
  f.size = size;
  f.kind = kind == FactorKind::kReduction && !HasIdentities(args_, reduction)
               ? FactorKind::kNeedReplication
               : kind;
  f.reduction = reduction;
  rule_.factors.push_back(std::move(f));
  return static_cast<int>(rule_.factors.size()) - 1;
}

void RuleBuilder::Map(int tensor, int dim, int factor, int64_t extent) {
  Tensor(tensor).dims[dim].push_back(factor);
  if (extent >= 0 && extent != rule_.factors[factor].size) {
    rule_.extents.push_back({{tensor, factor}, extent});
  }
}

void RuleBuilder::MapWhole(int tensor, int dim, int factor) {
  Map(tensor, dim, factor, args_.tensor(tensor)->dim(dim));
}

int RuleBuilder::AddFor(int tensor, int dim, FactorKind kind, PartialOp reduction) {
  const int f = Add(args_.tensor(tensor)->dim(dim), kind, reduction);
  Map(tensor, dim, f);
  return f;
}

void RuleBuilder::SetPad(int factor, double pad) {
  rule_.factors[factor].has_pad = true;
  rule_.factors[factor].pad = pad;
}

std::string FactorName(int index) {
  if (index < 26) return std::string(1, "ijklmnopqrstuvwxyzabcdefgh"[index]);
  return absl::StrCat("f", index);
}

ShardingRule RuleBuilder::Build() {
  for (int t = 0; t < args_.num_tensors(); ++t) {
    TensorFactors& tensor = Tensor(t);
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (tensor.dims[d].empty() && args_.tensor(t)->dim(d) != 1) {
        AddFor(t, d, FactorKind::kNeedReplication);
      }
    }
  }
  NumberFactors();
  for (int f = 0; f < static_cast<int>(rule_.factors.size()); ++f) {
    rule_.factors[f].name = FactorName(f);
  }
  if (rule_.extents.size() > 1) std::sort(rule_.extents.begin(), rule_.extents.end());
  return std::move(rule_);
}

// Factors in the order in which the tensors have them, without those that none has.
void RuleBuilder::NumberFactors() {
  const int added = static_cast<int>(rule_.factors.size());
  const auto each = [&](const auto& visit) {
    for (int t = 0; t < args_.num_tensors(); ++t) {
      for (FactorList& dim : Tensor(t).dims) {
        for (int& f : dim) visit(f);
      }
    }
  };
  int used = 0;
  bool in_order = true;  // so far, those that were met are the first ones
  each([&](int f) {
    in_order = in_order && f <= used;
    used += f == used;
  });
  if (in_order && used == added) return;
  absl::InlinedVector<int, 16> number(added, -1);
  used = 0;
  each([&](int& f) {
    if (number[f] < 0) number[f] = used++;
    f = number[f];
  });
  std::vector<Factor> ordered(used);
  for (int f = 0; f < added; ++f) {
    if (number[f] >= 0) ordered[number[f]] = std::move(rule_.factors[f]);
  }
  rule_.factors = std::move(ordered);
  for (auto& [place, extent] : rule_.extents) place.second = number[place.second];
}

bool ContainsDim(Ints dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

ShardingRule NeedReplicationRule(const RuleArgs& args) { return RuleBuilder(args).Build(); }

ShardingRule PointwiseRule(const RuleArgs& args) { return PointwiseRuleExcept(args, {}); }

ShardingRule PointwiseRuleExcept(const RuleArgs& args, absl::Span<const int64_t> whole) {
  RuleBuilder b(args);
  int rank = 0;
  for (int t = 0; t < args.num_tensors(); ++t) rank = std::max(rank, args.rank(t));
  for (int d = 0; d < rank; ++d) {
    int factor = -1;
    for (int t = 0; t < args.num_tensors(); ++t) {
      if (args.rank(t) != rank) continue;
      if (factor < 0) {
        factor = b.AddFor(
            t, d, ContainsDim(whole, d) ? FactorKind::kNeedReplication : FactorKind::kPassThrough);
      } else {
        b.MapWhole(t, d, factor);
      }
    }
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
