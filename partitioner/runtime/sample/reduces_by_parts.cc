// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/sample/reduces_by_parts.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/float_format.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/lower/lower.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kSamples = 24;
constexpr int64_t kColumns = 3;  // that one run combines
constexpr size_t kMostInstructions = 256;
constexpr int64_t kMostElements = 64;  // of a value that a reducer makes
// Of several values that are reduced together, an array each, by sample.
using Samples = std::vector<std::vector<double>>;

bool IsSampled(ElementType type) {
  return type == ElementType::kPred || IsFloat(type) || IsInteger(type);
}

// Whether running the computation takes little, whoever wrote it: it ends, after a few
// instructions, of which each makes a small value. `left` counts them down.
bool RunsQuickly(const Module& m, CompId comp, size_t* left) {
  for (InstrId id : m.comp(comp).instructions) {
    const Instruction& instr = m.instr(id);
    if ((*left)-- == 0) return false;
    if (instr.opcode == Opcode::kCall) {
      if (!RunsQuickly(m, instr.as<CallAttrs>().to_apply, left)) return false;
      continue;
    }
    if (!CalledComputations(m, instr).empty() || instr.opcode == Opcode::kCustomCall ||
        HasTrait(instr.opcode, kSideEffect | kCollectiveOp)) {
      return false;
    }
    for (int k = 0; k < instr.shape->num_leaves(); ++k) {
      const Shape& leaf = *instr.shape->leaf(k);
      if (!leaf.IsArray() || leaf.IsDynamic() || leaf.num_elements() > kMostElements) return false;
    }
  }
  return true;
}

// Copies a computation and what it calls.
CompId CopyReducer(const Module& from, CompId comp, ModuleCloner& cloner) {
  if (cloner.now(comp).valid()) return cloner.now(comp);
  for (InstrId id : from.comp(comp).instructions) {
    for (CompId callee : CalledComputations(from, from.instr(id))) {
      CopyReducer(from, callee, cloner);
    }
  }
  cloner.AddComputation(comp);
  for (InstrId id : from.comp(comp).instructions) cloner.Clone(id);
  cloner.SetRoot(comp);
  return cloner.now(comp);
}

// What every element of an array is; null if they differ or are not known.
const Literal* OneConstant(const Module& m, InstrId id) {
  while (m.instr(id).opcode == Opcode::kBroadcast || m.instr(id).opcode == Opcode::kReshape) {
    id = m.operand(id, 0);
  }
  return ScalarLiteral(m, id);
}

// Runs the reduction over lines of kColumns samples.
class SampledReducer {
 public:
  static std::optional<SampledReducer> Make(const Module& m, InstrId reduce);

  size_t num_values() const { return types_.size(); }
  ElementType type(size_t k) const { return types_[k]; }
  // Line i reduces sample i of each of the columns, in order. `round` in place of `reduced` gives
  // the samples of the first column as the values' types hold them.
  std::optional<Samples> Reduced(const Samples& a, const Samples& b, const Samples& c) const {
    return Run(a, b, c, 0);
  }
  std::optional<Samples> Rounded(const Samples& a) const { return Run(a, a, a, 1); }
  // The initial values, as samples that are all alike.
  std::optional<Samples> Initial() const { return OfAny(2); }
  // Likewise, where all that is reduced is one constant, that constant.
  std::optional<Samples> Constants() const { return OfAny(3); }
  bool is_constant(size_t k) const { return constant_[k]; }

 private:
  std::optional<Samples> Run(const Samples& a, const Samples& b, const Samples& c,
                             size_t which) const;
  std::optional<Samples> OfAny(size_t which) const {
    const Samples any(num_values(), std::vector<double>(kSamples, 1));
    return Run(any, any, any, which);
  }

  std::vector<ElementType> types_;
  std::vector<bool> constant_;
  std::shared_ptr<const DeviceProgram> program_;
};

std::optional<SampledReducer> SampledReducer::Make(const Module& m, InstrId reduce) {
  const Instruction& instr = m.instr(reduce);
  const auto operands = m.operands(instr);
  const size_t n = operands.size() / 2;
  SampledReducer out;
  Module module(m.shared_context());
  ModuleCloner cloner(m, &module);
  size_t left = kMostInstructions;
  ReduceAttrs attrs;
  attrs.to_apply = CalledComputations(m, instr)[0];
  if (!RunsQuickly(m, attrs.to_apply, &left)) return std::nullopt;
  attrs.to_apply = CopyReducer(m, attrs.to_apply, cloner);
  const int64_t columns[] = {1};
  attrs.dimensions = columns;
  MonoidTable monoids(&module);
  GraphBuilder b(&module, module.AddComputation("main"), &monoids);
  module.set_entry(b.computation());
  // Samples come in, and results leave, as f64, which holds the values of every type that are
  // taken here.
  constexpr int64_t kDims[] = {kSamples, kColumns};
  constexpr int64_t kLine[] = {kSamples};
  std::vector<InstrId> values, starts, results;
  for (size_t k = 0; k < n; ++k) {
    const Instruction& start = m.instr(operands[n + k]);
    const ElementType type = start.shape->element_type();
    if (!IsSampled(type) || OneConstant(m, operands[n + k]) == nullptr) return std::nullopt;
    out.types_.push_back(type);
    const InstrId samples =
        b.Parameter(static_cast<int64_t>(k), b.context().MakeArray(ElementType::kF64, kDims));
    values.push_back(b.Convert(samples, type));
  }
  for (size_t k = 0; k < n; ++k) {
    starts.push_back(b.Constant(OneConstant(m, operands[n + k])));
  }
  std::vector<InstrId> inputs = values;
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  const InstrId reduced = b.Add(Opcode::kReduce, inputs, InternAttributes(b.context(), attrs));
  const bool tuple = b.shape(reduced)->IsTuple();
  for (size_t k = 0; k < n; ++k) {
    results.push_back(tuple ? b.GetTupleElement(reduced, static_cast<int64_t>(k)) : reduced);
  }
  for (size_t k = 0; k < n; ++k) {
    const InstrId first = b.Slice(values[k], {0, 0}, {kSamples, 1});
    results.push_back(b.Reshape(first, kLine));
  }
  for (size_t k = 0; k < n; ++k) results.push_back(b.Broadcast(starts[k], kLine, {}));
  for (size_t k = 0; k < n; ++k) {
    const Literal* all = OneConstant(m, operands[k]);
    out.constant_.push_back(all != nullptr);
    const InstrId value = all == nullptr ? starts[k] : b.Constant(all);
    results.push_back(b.Broadcast(value, kLine, {}));
  }
  for (InstrId& r : results) r = b.Convert(r, ElementType::kF64);
  b.SetRoot(b.Add(Opcode::kTuple, results));
  absl::StatusOr<std::shared_ptr<const DeviceProgram>> program = Lower(module);
  if (!program.ok()) return std::nullopt;
  out.program_ = *std::move(program);
  return out;
}

std::optional<Samples> SampledReducer::Run(const Samples& a, const Samples& b, const Samples& c,
                                           size_t which) const {
  std::vector<Tensor> arguments;
  for (size_t k = 0; k < num_values(); ++k) {
    std::vector<double> x;
    for (int64_t i = 0; i < kSamples; ++i) x.insert(x.end(), {a[k][i], b[k][i], c[k][i]});
    arguments.push_back(FromDoubles(ElementType::kF64, {kSamples, kColumns}, x));
  }
  const absl::StatusOr<std::vector<Tensor>> results =
      Execute(*program_, std::move(arguments), DeviceContext());
  if (!results.ok()) return std::nullopt;
  Samples out;
  for (size_t k = 0; k < num_values(); ++k) {
    out.push_back(ToDoubles((*results)[which * num_values() + k]));
  }
  return out;
}

// Small numbers that all types hold, so that products of a few do not overflow; and `constants`.
Samples Draw(const SampledReducer& reducer, const Samples& constants, bool negative,
             std::minstd_rand& random) {
  Samples out = constants;
  for (size_t k = 0; k < out.size(); ++k) {
    if (reducer.is_constant(k)) continue;
    const bool real = IsFloat(reducer.type(k));
    const bool sign = negative && (real || IsSignedInteger(reducer.type(k)));
    for (double& x : out[k]) {
      const int64_t most = reducer.type(k) == ElementType::kPred ? 2 : 8;
      x = static_cast<double>(static_cast<int64_t>(random() >> 8) % most);
      if (real) x /= 2;
      if (sign && (random() >> 8) % 2 == 0) x = -x;
    }
  }
  return out;
}

// The distance from 1 to the next number of a float type; 0 for others.
double Epsilon(ElementType type) {
  return IsFloat(type) ? std::ldexp(1.0, -GetFloatFormat(type).mantissa_bits) : 0;
}

// Up to `units` of the last place of the larger of the value and `least`.
bool Agree(const SampledReducer& reducer, const std::optional<Samples>& a,
           const std::optional<Samples>& b, double units, double least) {
  if (!a || !b) return false;
  for (size_t k = 0; k < a->size(); ++k) {
    const double unit = units * Epsilon(reducer.type(k));
    for (int64_t i = 0; i < kSamples; ++i) {
      const double x = (*a)[k][i], y = (*b)[k][i];
      if (x == y) continue;
      // Not so for what is no number.
      if (!(std::abs(x - y) <= unit * std::max({std::abs(x), std::abs(y), least}))) return false;
    }
  }
  return true;
}

}  // namespace

bool ReducesByParts(const Module& m, InstrId reduce) {
  const std::optional<SampledReducer> f = SampledReducer::Make(m, reduce);
  if (!f) return false;
  const std::optional<Samples> start = f->Initial(), constants = f->Constants();
  if (!start || !constants) return false;
  std::minstd_rand random(1);
  const auto draw = [&](bool negative) { return Draw(*f, *constants, negative, random); };
  const auto pair = [&](const std::optional<Samples>& a, const std::optional<Samples>& b) {
    return a && b ? f->Reduced(*a, *b, *start) : std::nullopt;
  };
  const auto keeps = [&](const std::optional<Samples>& x) {
    constexpr double kUnits = 4;
    return x && Agree(*f, f->Reduced(*start, *x, *start), f->Rounded(*x), kUnits, 0);
  };
  // A shard may have no element.
  if (!keeps(*start)) return false;
  // Some values have no sign, as counts and variances have none.
  for (bool negative : {true, false}) {
    const Samples x = draw(negative), y = draw(negative);
    if (!keeps(x) || !keeps(pair(x, y))) return false;
  }
  const Samples x = draw(false), y = draw(false), z = draw(false);
  constexpr double kUnits = 16, kLeast = 4;
  return Agree(*f, pair(x, y), pair(y, x), kUnits, kLeast) &&
         Agree(*f, pair(pair(x, y), z), pair(x, pair(y, z)), kUnits, kLeast);
}

}  // namespace internal
}  // namespace shardcall
