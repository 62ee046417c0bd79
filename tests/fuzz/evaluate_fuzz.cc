// SPDX-License-Identifier: Apache-2.0
// Whatever verifies and is small runs on one device, or is refused with a code,
// and gives the same bytes twice.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

constexpr double kMaxElements = 1 << 14;  // of one value
constexpr double kMaxWork = 1e6;          // element steps of the whole program

double Elements(const Shape* shape) {
  double n = 0;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    const Shape* leaf = shape->leaf(k);
    double leaf_elements = 1;
    for (int d = 0; leaf->IsArray() && d < leaf->rank(); ++d) {
      leaf_elements *= static_cast<double>(leaf->dim(d));
    }
    n += leaf_elements;
  }
  return n;
}

double WindowSize(const Window& window) {
  double n = 1;
  for (int64_t s : window.size) n *= static_cast<double>(s);
  return n;
}

// Element steps that running the program takes, about; infinite with loops, as
// these may not end.
double Work(const Module& m) {
  std::vector<double> work(m.num_computations(), 0);
  for (CompId c : ComputationPostOrder(m)) {
    for (InstrId id : m.comp(c).instructions) {
      const Instruction& i = m.instr(id);
      if (i.opcode == Opcode::kWhile || Elements(i.shape) > kMaxElements) return kMaxWork * 2;
      double read = Elements(i.shape), times = 1;
      for (InstrId x : m.operands(i)) read += Elements(m.instr(x).shape);
      if (i.opcode == Opcode::kDot || i.opcode == Opcode::kRaggedDot ||
          i.opcode == Opcode::kScaledDot) {
        times = Elements(m.instr(m.operand(id, 0)).shape);
      } else if (i.opcode == Opcode::kConvolution) {
        times = Elements(m.instr(m.operand(id, 1)).shape);
      } else if (i.opcode == Opcode::kReduceWindow) {
        times = WindowSize(i.as<ReduceWindowAttrs>().window);
      } else if (i.opcode == Opcode::kSelectAndScatter) {
        times = WindowSize(i.as<SelectAndScatterAttrs>().window);
      }
      double called = 1;
      for (CompId callee : CalledComputations(m, i)) called += work[callee.value];
      work[c.value] += read * times * called;
    }
  }
  return work[m.entry().value];
}

void Try(const std::string& text) {
  absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "f.hlo");
  if (!module.ok() || !VerifyModule(*module, "f.hlo").ok() || Work(*module) > kMaxWork) return;
  static const HandlerRegistry* const kHandlers = [] {
    auto* handlers = new HandlerRegistry;
    FuzzRequireDiagnosed(RegisterBuiltinHandlers(*handlers));
    return handlers;
  }();
  const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(*module), 1);
  const auto first = Evaluate(*module, inputs, kHandlers);
  const auto second = Evaluate(*module, inputs, kHandlers);
  FuzzRequireDiagnosed(first.status(), text);
  FuzzRequire(first.ok() == second.ok(), "running twice ends alike", text);
  for (size_t k = 0; first.ok() && k < first->size(); ++k) {
    FuzzRequire(BitwiseEqual((*first)[k], (*second)[k]), "running twice gives the same", text);
  }
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardcall::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
