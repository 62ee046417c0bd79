// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/io/random_inputs.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "shardcall/partitioner/ir/literal.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
namespace {

uint64_t Mix(uint64_t x) {  // SplitMix64's finaliser
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<Tensor> RandomInputs(absl::Span<const LeafShape> leaves, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (size_t a = 0; a < leaves.size(); ++a) {
    const ElementType type = leaves[a].type;
    Tensor t(type, leaves[a].dims);
    tensors.push_back(t);
    if (!IsArrayType(type)) continue;
    const uint64_t stream = Mix(seed * 0x632BE59BD9B4E019 + a);
    const int64_t n = t.num_elements() * (IsComplex(type) ? 2 : 1);
    t = Tensor();  // so that the vector is the only owner
    char* to = tensors.back().MutableData();
    const bool real = IsFloat(type) || IsComplex(type);
    const int bits = IsComplex(type) ? ElementTypeBits(type) / 2 : ElementTypeBits(type);
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t r = Mix(stream + static_cast<uint64_t>(i));
      if (!real) {
        uint64_t value = type == ElementType::kPred ? r % 2 : r % 8;
        if (bits < 4) value %= uint64_t{1} << (bits - (IsSignedInteger(type) ? 1 : 0));
        std::memcpy(to + i * ElementTypeBytes(type), &value, ElementTypeBytes(type));
        continue;
      }
      double value = static_cast<double>(r % 9) - 4;
      if (type == ElementType::kF8E8M0FNU) value = static_cast<double>(uint64_t{1} << r % 3);
      if (IsComplex(type)) {
        if (bits == 32)
          reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
        else
          reinterpret_cast<double*>(to)[i] = value;
      } else {
        StoreFloats(type, &value, 1, to + i * ElementTypeBytes(type));
      }
    }
  }
  return tensors;
}

int FillElidedConstants(Module* module, uint64_t seed) {
  Context& context = module->context();
  int filled = 0;
  // A literal with values in place of its elided parts. Recursion is safe, since the parser limits
  // the nesting of tuples.
  const std::function<const Literal*(const Literal*)> fill =
      [&](const Literal* literal) -> const Literal* {
    if (literal->elided && !literal->shape->IsTuple()) {
      const LeafShape leaf = MakeLeafShape(*literal->shape);
      const Tensor values =
          RandomInputs(absl::MakeConstSpan(&leaf, 1), Mix(seed) + static_cast<uint64_t>(filled))[0];
      ++filled;
      return MakeLiteral(context, literal->shape,
                         {values.data(), static_cast<size_t>(values.num_elements()) *
                                             ElementTypeBytes(leaf.type)});
    }
    if (!literal->shape->IsTuple() || literal->elements.empty()) return literal;
    const int before = filled;
    std::vector<const Literal*> elements;
    for (const Literal* e : literal->elements) elements.push_back(fill(e));
    return filled == before ? literal : MakeTupleLiteral(context, literal->shape, elements);
  };
  for (int k = 0; k < module->num_instructions(); ++k) {
    Instruction& i = module->mutable_instr(InstrId(k));
    if (i.opcode != Opcode::kConstant) continue;
    ConstantAttrs attrs = i.as<ConstantAttrs>();
    const Literal* now = fill(attrs.literal);
    if (now == attrs.literal) continue;
    attrs.literal = now;
    i.attrs = InternAttributes(context, attrs);
  }
  return filled;
}

void MakePositive(std::vector<Tensor>* inputs) {
  for (Tensor& t : *inputs) {
    if (!IsFloat(t.type())) continue;
    std::vector<double> x = ToDoubles(t);
    for (double& v : x) v = (std::abs(v) + 1) / 8;
    t = FromDoubles(t.type(), t.dims(), x);
  }
}

}  // namespace shardcall
