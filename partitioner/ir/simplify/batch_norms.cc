// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/batch_norms.h"

#include <cstdint>
#include <vector>

namespace shardcall {
inline namespace internal {
namespace {

// Arithmetic on arrays of x's shape, and on those of a number for each feature.
class Norm {
 public:
  Norm(GraphBuilder& b, const BatchNormAttrs& attrs, InstrId x)
      : b_(b),
        feature_(attrs.feature_index),
        type_(b.type(x)),
        wide_(ElementTypeBits(type_) < 32 ? ElementType::kF32 : type_),
        dims_(b.shape(x)->dims().begin(), b.shape(x)->dims().end()),
        epsilon_(b.ConstantDouble(wide_, attrs.epsilon)) {
    int64_t count = 1;
    for (int64_t d = 0; d < static_cast<int64_t>(dims_.size()); ++d) {
      if (d == feature_) continue;
      summed_.push_back(d);
      count *= dims_[d];
    }
    count_ = b.ConstantDouble(wide_, static_cast<double>(count));
  }

  InstrId Widened(InstrId x) { return b_.Convert(x, wide_); }
  InstrId Narrowed(InstrId x) { return b_.Convert(x, type_); }
  InstrId ForAll(InstrId of_feature) { return b_.Broadcast(of_feature, dims_, {feature_}); }
  InstrId Sum(InstrId x) { return b_.Reduce(x, b_.Zero(wide_), summed_, Opcode::kAdd); }
  InstrId Mean(InstrId x) { return Divide(Sum(x), Like(count_)); }
  // The square root of the variance and epsilon; both for each feature.
  InstrId Deviation(InstrId variance) { return b_.Unary(Opcode::kSqrt, Shifted(variance)); }
  InstrId Shifted(InstrId variance) { return Add(variance, Like(epsilon_)); }
  InstrId count() { return Like(count_); }

  InstrId Add(InstrId x, InstrId y) { return b_.Binary(Opcode::kAdd, x, y); }
  InstrId Subtract(InstrId x, InstrId y) { return b_.Binary(Opcode::kSubtract, x, y); }
  InstrId Multiply(InstrId x, InstrId y) { return b_.Binary(Opcode::kMultiply, x, y); }
  InstrId Divide(InstrId x, InstrId y) { return b_.Binary(Opcode::kDivide, x, y); }

 private:
  InstrId Like(InstrId scalar) { return b_.Broadcast(scalar, {dims_[feature_]}, {}); }

  GraphBuilder& b_;
  const int64_t feature_;
  const ElementType type_, wide_;
  const std::vector<int64_t> dims_;
  std::vector<int64_t> summed_;
  const InstrId epsilon_;
  InstrId count_;
};

std::vector<InstrId> Train(const BatchNormAttrs& attrs, GraphBuilder& b,
                           absl::Span<const InstrId> given) {
  Norm n(b, attrs, given[0]);
  const InstrId x = n.Widened(given[0]), scale = n.Widened(given[1]), offset = n.Widened(given[2]);
  const InstrId mean = n.Mean(x);
  const InstrId centered = n.Subtract(x, n.ForAll(mean));
  const InstrId variance = n.Mean(n.Multiply(centered, centered));
  const InstrId normal = n.Divide(centered, n.ForAll(n.Deviation(variance)));
  const InstrId y = n.Add(n.Multiply(normal, n.ForAll(scale)), n.ForAll(offset));
  return {n.Narrowed(y), n.Narrowed(mean), n.Narrowed(variance)};
}

// With s = sqrt(variance + epsilon), and sums over the batch of N elements:
//   scale's  sum(g (x - mean)) / s,   offset's  sum(g)
//   x's      scale / s / N * (N g - sum(g) - (x - mean) / s^2 * sum(g (x - mean)))
std::vector<InstrId> Gradients(const BatchNormAttrs& attrs, GraphBuilder& b,
                               absl::Span<const InstrId> given) {
  Norm n(b, attrs, given[0]);
  const InstrId x = n.Widened(given[0]), scale = n.Widened(given[1]), mean = n.Widened(given[2]),
                variance = n.Widened(given[3]), g = n.Widened(given[4]);
  const InstrId centered = n.Subtract(x, n.ForAll(mean));
  const InstrId sum = n.Sum(g), with_x = n.Sum(n.Multiply(g, centered));
  const InstrId deviation = n.Deviation(variance);
  const InstrId slope = n.Divide(with_x, n.Shifted(variance));
  const InstrId rest = n.Subtract(n.Subtract(n.Multiply(g, n.ForAll(n.count())), n.ForAll(sum)),
                                  n.Multiply(centered, n.ForAll(slope)));
  const InstrId factor = n.Divide(n.Divide(scale, deviation), n.count());
  return {n.Narrowed(n.Multiply(rest, n.ForAll(factor))), n.Narrowed(n.Divide(with_x, deviation)),
          n.Narrowed(sum)};
}

using Make = std::vector<InstrId> (*)(const BatchNormAttrs& attrs, GraphBuilder& b,
                                      absl::Span<const InstrId> given);

std::optional<CallExpansion> Read(const Module& m, InstrId id, Make make) {
  const Instruction& i = m.instr(id);
  const Shape* x = m.instr(m.operand(id, 0)).shape;
  if (x->IsDynamic() || x->num_elements() == 0) return std::nullopt;
  std::vector<const Shape*> results;
  for (int k = 0; k < i.shape->num_leaves(); ++k) results.push_back(i.shape->leaf(k));
  return CallExpansion{std::move(results), [attrs = &i.as<BatchNormAttrs>(), make](
                                               GraphBuilder& b, absl::Span<const InstrId> given) {
                         return make(*attrs, b, given);
                       }};
}

}  // namespace

std::optional<CallExpansion> ReadBatchNormTraining(const Module& m, InstrId id) {
  return Read(m, id, Train);
}
std::optional<CallExpansion> ReadBatchNormGrad(const Module& m, InstrId id) {
  return Read(m, id, Gradients);
}

}  // namespace internal
}  // namespace shardcall
