// SPDX-License-Identifier: Apache-2.0
// Instantiates rules for given shapes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/rule/rule_template.h"

namespace shardcall {
namespace {

std::string TensorName(bool is_result, size_t index) {
  return absl::StrCat(is_result ? "result " : "operand ", index);
}

class Instantiation {
 public:
  explicit Instantiation(const RuleTemplate& rule)
      : rule_(rule),
        index_(rule.factors.size(), -1),
        batch_(rule.ellipses.size()),
        batch_known_(rule.ellipses.size(), false) {}

  absl::StatusOr<ShardingRule> Run(absl::Span<const Shape* const> operands,
                                   absl::Span<const Shape* const> results) {
    out_.custom = true;
    SHARDCALL_RETURN_IF_ERROR(Side(rule_.operands, operands, false, &out_.operands));
    SHARDCALL_RETURN_IF_ERROR(Side(rule_.results, results, true, &out_.results));
    SolveCompounds(operands, results);
    SHARDCALL_RETURN_IF_ERROR(Compounds(operands, false));
    SHARDCALL_RETURN_IF_ERROR(Compounds(results, true));
    return std::move(out_);
  }

 private:
  absl::Status Error(std::string message, std::string expected, std::string found,
                     std::string fix) const {
    return ToStatus({.code = "E111",
                     .message = std::move(message),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = std::move(fix),
                     .excerpt = absl::StrCat("  ", rule_.rule)});
  }

  absl::Status Side(const std::vector<RuleTemplate::Value>& values,
                    absl::Span<const Shape* const> shapes, bool is_result,
                    std::vector<TensorFactors>* out) {
    // An empty side of the rule means one scalar; it also fits a call without values on that side.
    const bool empty_side = values.size() == 1 && values[0].dims.empty() && values[0].ellipsis < 0;
    if (shapes.empty() && empty_side) return absl::OkStatus();
    if (values.size() != shapes.size()) {
      return Error(
          absl::StrCat("a rule does not fit the number of ", is_result ? "results" : "operands"),
          absl::StrCat(shapes.size(), " values"), absl::StrCat(values.size()),
          "write one value per operand and per result, separated by ','");
    }
    for (size_t t = 0; t < values.size(); ++t) {
      SHARDCALL_RETURN_IF_ERROR(
          Tensor(values[t], *shapes[t], TensorName(is_result, t), &out->emplace_back()));
    }
    return absl::OkStatus();
  }

  absl::Status Tensor(const RuleTemplate::Value& value, const Shape& shape, const std::string& name,
                      TensorFactors* out) {
    const int written = static_cast<int>(value.dims.size());
    const int rank = shape.rank();
    if (value.ellipsis < 0 ? rank != written : rank < written) {
      return Error(absl::StrCat("a rule does not fit the rank of ", name),
                   absl::StrCat(shape.ToString(false), " needs ", rank, " dimensions"),
                   absl::StrCat(value.ellipsis < 0 ? "" : "at least ", written),
                   "write one factor or compound per dimension, or '...' for leading ones");
    }
    int dim = 0;
    if (value.ellipsis >= 0) {
      SHARDCALL_RETURN_IF_ERROR(Ellipsis(value.ellipsis, shape, rank - written, name, out));
      dim = rank - written;
    }
    for (const std::vector<int>& factors : value.dims) {
      FactorList& list = out->dims.emplace_back();
      for (int f : factors) list.push_back(Use(f));
      if (factors.size() == 1) {
        SHARDCALL_RETURN_IF_ERROR(SetSize(list[0], shape.dim(dim), name, dim));
      }
      ++dim;
    }
    return absl::OkStatus();
  }

  absl::Status Ellipsis(int group, const Shape& shape, int rank, const std::string& name,
                        TensorFactors* out) {
    std::vector<int>& batch = batch_[group];
    if (!batch_known_[group]) {
      batch_known_[group] = true;
      for (int i = 0; i < rank; ++i) {
        batch.push_back(static_cast<int>(out_.factors.size()));
        out_.factors.push_back({.size = 0, .name = BatchName()});
      }
    }
    if (static_cast<int>(batch.size()) != rank) {
      return Error(absl::StrCat("the ellipsis ", rule_.ellipses[group],
                                " stands for different numbers of dimensions"),
                   absl::StrCat(batch.size()), absl::StrCat(rank, " in ", name),
                   "number ellipses that differ: ...1, ...2");
    }
    for (int i = 0; i < rank; ++i) {
      out->dims.push_back({batch[i]});
      SHARDCALL_RETURN_IF_ERROR(SetSize(batch[i], shape.dim(i), name, i));
    }
    return absl::OkStatus();
  }

  // Factors are numbered by first use, as Shardy demands of its text.
  int Use(int f) {
    if (index_[f] < 0) {
      index_[f] = static_cast<int>(out_.factors.size());
      out_.factors.push_back(rule_.factors[f].factor);
    }
    return index_[f];
  }

  std::string BatchName() {
    while (true) {
      std::string name = absl::StrCat("b", next_batch_++);
      const bool taken =
          std::any_of(rule_.factors.begin(), rule_.factors.end(),
                      [&](const RuleTemplate::NamedFactor& f) { return f.factor.name == name; });
      if (!taken) return name;
    }
  }

  absl::Status SetSize(int factor, int64_t size, const std::string& name, int dim) {
    Factor& f = out_.factors[factor];
    const bool known = factor < static_cast<int>(sized_.size()) && sized_[factor];
    if (known && f.size != size) {
      return Error(absl::StrCat("factor ", f.name, " has two sizes"), absl::StrCat(f.size),
                   absl::StrCat(size, " in dimension ", dim, " of ", name),
                   "use one factor for dimensions of one size, or name them apart");
    }
    f.size = size;
    sized_.resize(std::max<size_t>(sized_.size(), factor + 1), false);
    sized_[factor] = true;
    return absl::OkStatus();
  }

  // Gives factors that neither the text nor a dimension of their own gives a size the one that a
  // compound dimension leaves for them: in "b (k g), b k -> b (k g)" the size of g is that of the
  // dimension divided by that of k. A remainder is found by Compounds.
  void SolveCompounds(absl::Span<const Shape* const> operands,
                      absl::Span<const Shape* const> results) {
    for (bool found = true; found;) {
      found = false;
      for (int t = 0; t < out_.num_tensors(); ++t) {
        const size_t result = t - out_.operands.size();
        const Shape& shape =
            *(t < static_cast<int>(out_.operands.size()) ? operands[t] : results[result]);
        for (size_t d = 0; d < out_.tensor(t).dims.size(); ++d) {
          found = Solve(out_.tensor(t).dims[d], shape.dim(static_cast<int>(d))) || found;
        }
      }
    }
  }

  // Whether all factors but one had a size, and that one has one now.
  bool Solve(const FactorList& compound, int64_t size) {
    int open = -1;
    int64_t product = 1;
    for (int f : compound) {
      if (out_.factors[f].size >= 0) {
        if (__builtin_mul_overflow(product, out_.factors[f].size, &product)) product = -1;
      } else if (open >= 0) {
        return false;
      } else {
        open = f;
      }
    }
    if (open < 0) return false;
    out_.factors[open].size = product > 0 ? size / product : 1;
    return true;
  }

  absl::Status Compounds(absl::Span<const Shape* const> shapes, bool is_result) {
    const std::vector<TensorFactors>& tensors = is_result ? out_.results : out_.operands;
    for (size_t t = 0; t < tensors.size(); ++t) {
      for (size_t d = 0; d < tensors[t].dims.size(); ++d) {
        const FactorList& list = tensors[t].dims[d];
        if (list.size() < 2) continue;
        int64_t product = 1;
        std::string text;
        for (int f : list) {
          if (__builtin_mul_overflow(product, out_.factors[f].size, &product)) product = -1;
          absl::StrAppend(&text, text.empty() ? "" : " x ", out_.factors[f].name, "=",
                          out_.factors[f].size);
        }
        if (product == shapes[t]->dim(static_cast<int>(d))) continue;
        return Error(absl::StrCat("a compound does not give the size of dimension ", d, " of ",
                                  TensorName(is_result, t)),
                     absl::StrCat(shapes[t]->dim(static_cast<int>(d))), text,
                     "correct the sizes of the compound's factors");
      }
    }
    return absl::OkStatus();
  }

  const RuleTemplate& rule_;
  ShardingRule out_;
  std::vector<int> index_;               // template factor -> factor
  std::vector<std::vector<int>> batch_;  // factors per ellipsis
  std::vector<bool> batch_known_, sized_;
  int next_batch_ = 0;
};

}  // namespace

IndexSet OpenFactors(const ShardingRule& rule, absl::Span<const Shape* const> results) {
  IndexSet open;
  if (std::none_of(results.begin(), results.end(), [](const Shape* s) { return s->IsArray(); })) {
    return open;
  }
  auto each = [](const std::vector<TensorFactors>& tensors, const auto& visit) {
    for (const TensorFactors& tensor : tensors) {
      for (const FactorList& dim : tensor.dims) {
        for (int f : dim) visit(f);
      }
    }
  };
  each(rule.operands, [&](int f) {
    const Factor& factor = rule.factors[f];
    if (factor.kind == FactorKind::kPassThrough && !factor.blocked) open.Insert(f);
  });
  each(rule.results, [&](int f) { open.Erase(f); });
  return open;
}

absl::Status internal::CheckShapes(absl::Span<const Shape* const> operands,
                                   absl::Span<const Shape* const> results) {
  for (const absl::Span<const Shape* const> shapes : {operands, results}) {
    const auto null = std::find(shapes.begin(), shapes.end(), nullptr);
    if (null == shapes.end()) continue;
    return ToStatus({.code = "E111",
                     .message = "a rule is put against a shape that is null",
                     .expected = "a shape for each operand and result",
                     .found = absl::StrCat(
                         "null as ", shapes.data() == operands.data() ? "operand " : "result ",
                         null - shapes.begin()),
                     .fix = "give the shapes of the leaves"});
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardingRule> InstantiateRule(const RuleTemplate& rule,
                                             absl::Span<const Shape* const> operands,
                                             absl::Span<const Shape* const> results) {
  SHARDCALL_RETURN_IF_ERROR(CheckShapes(operands, results));
  return Instantiation(rule).Run(operands, results);
}

absl::StatusOr<ShardingRule> BatchRule(int k, absl::Span<const Shape* const> operands,
                                       absl::Span<const Shape* const> results) {
  if (k < 0) {
    return ToStatus({.code = "E110",
                     .message = "batch_dims must not be negative",
                     .found = absl::StrCat(k),
                     .fix = "give the number of leading independent dimensions"});
  }
  SHARDCALL_RETURN_IF_ERROR(CheckShapes(operands, results));
  int rank = -1;
  for (const auto& shapes : {operands, results}) {
    for (const Shape* shape : shapes) rank = std::max(rank, shape->rank());
  }
  if (rank >= 0 && rank < k) {
    return ToStatus({.code = "E111",
                     .message = "no operand or result has as many dimensions as are a batch",
                     .expected = absl::StrCat("rank ", k, " or more"),
                     .found = absl::StrCat("rank ", rank, " at most"),
                     .fix = "declare fewer batch dimensions"});
  }
  ShardingRule out;
  out.custom = true;
  std::vector<int> batch;  // factor per batch dim, as far as some tensor has it
  int other = 0;
  for (bool is_result : {false, true}) {
    const absl::Span<const Shape* const> shapes = is_result ? results : operands;
    for (size_t t = 0; t < shapes.size(); ++t) {
      const Shape& shape = *shapes[t];
      TensorFactors& tensor = (is_result ? out.results : out.operands).emplace_back();
      for (int d = 0; d < shape.rank(); ++d) {
        int factor;
        if (d < k && d < static_cast<int>(batch.size())) {
          factor = batch[d];
          if (out.factors[factor].size != shape.dim(d)) {
            return ToStatus({.code = "E111",
                             .message = absl::StrCat("batch dimension ", d, " has two sizes"),
                             .expected = absl::StrCat(out.factors[factor].size),
                             .found = absl::StrCat(shape.dim(d), " in ", TensorName(is_result, t)),
                             .fix = "declare fewer batch dimensions, or write a rule"});
          }
        } else {
          factor = static_cast<int>(out.factors.size());
          Factor& f = out.factors.emplace_back();
          f.size = shape.dim(d);
          if (d < k) {
            f.name = absl::StrCat("b", d);
            batch.push_back(factor);
          } else {
            f.name = absl::StrCat("d", other++);
            f.kind = FactorKind::kNeedReplication;
          }
        }
        tensor.dims.push_back({factor});
      }
    }
  }
  const IndexSet open = OpenFactors(out, results);
  for (int f : batch) {
    if (open.Contains(f)) out.factors[f].kind = FactorKind::kNeedReplication;
  }
  return out;
}

}  // namespace shardcall
