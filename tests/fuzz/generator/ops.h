// SPDX-License-Identifier: Apache-2.0
// The generator at work: values known so far, ways to find and to make operands,
// and one method per op family, which tries to add an op (or a few).
#ifndef SHARDCALL_TESTS_FUZZ_GENERATOR_OPS_H_
#define SHARDCALL_TESTS_FUZZ_GENERATOR_OPS_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "tests/fuzz/generator/generator.h"
#include "tests/fuzz/generator/random.h"

namespace shardcall::generator {

using Dims = std::vector<int64_t>;

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// An array. `bound` is the largest magnitude that an element can have, infinite
// where it is not known; `whole` is false for fractions.
struct Value {
  InstrId id;
  double bound = 0;
  bool whole = true;
};

// Largest magnitude that values of the type keep here, so that every sum of them
// is exact; infinite for integers, whose sums wrap.
double MaxBound(ElementType type);

// One computation being built.
struct Scope {
  Scope(Module* module, CompId comp, MonoidTable* monoids, int depth)
      : b(module, comp, monoids), depth(depth) {}
  GraphBuilder b;
  int depth;                  // 0: entry
  std::vector<Value> values;  // arrays made so far
  int parameters = 0;         // entry: made on demand
};

class Generator {
 public:
  Generator(uint64_t seed, const GeneratorOptions& options);
  absl::StatusOr<Module> Run();

 private:
  friend struct OpTable;
  using Method = bool (Generator::*)(Scope& s);

  // Operands.
  Dims RandomDims(int min_rank, int max_rank);
  ElementType RandomType();
  Value Any(Scope& s);
  // A value that `accepts`; false if there is none after some tries.
  template <typename F>
  bool Find(Scope& s, F accepts, Value* out) {
    for (int k = 0; k < 12; ++k) {
      *out = Any(s);
      if (accepts(*out)) return true;
    }
    return false;
  }
  Value Like(Scope& s, ElementType type, const Dims& dims);   // there, or made; whole
  Value Fresh(Scope& s, ElementType type, const Dims& dims);  // parameter, constant, iota, ..
  Value Fit(Scope& s, Value v, const Dims& dims);             // reshaped, cut, filled up
  Value ToType(Scope& s, Value v, ElementType type);          // converted within bounds
  Value Bounded(Scope& s, Value v, double bound);             // clamped if it may be larger
  Value Index(Scope& s);                                      // an integer scalar
  InstrId Boundary(Scope& s, const char* target, InstrId x, const Dims& dims,
                   const std::string& sharding);  // of a manual region
  InstrId Scalar(Scope& s, ElementType type, int64_t value);
  const Shape* Array(ElementType type, const Dims& dims);
  Dims DimsOf(Scope& s, Value v) const;
  ElementType TypeOf(Scope& s, Value v) const { return s.b.type(v.id); }

  // Results. Emit adds an op; what inference refuses ends the run.
  InstrId Emit(Scope& s, Opcode op, std::vector<InstrId> operands,
               const Attributes* attrs = nullptr, const Shape* declared = nullptr);
  bool Push(Scope& s, InstrId id, double bound, bool whole = true);
  void Annotate(Scope& s, InstrId id);
  InstrId Annotated(Scope& s, InstrId x);  // by an annotation op
  void Steps(Scope& s, int count);

  // Op families; true if something was added.
  bool Unary(Scope& s);
  bool Fractions(Scope& s);
  bool Binary(Scope& s);
  bool CompareSelect(Scope& s);
  bool ClampConvert(Scope& s);
  bool Complexes(Scope& s);
  bool MapOp(Scope& s);
  bool BroadcastOp(Scope& s);
  bool ReshapeOp(Scope& s);
  bool TransposeReverse(Scope& s);
  bool SliceOp(Scope& s);
  bool PadOp(Scope& s);
  bool ConcatenateOp(Scope& s);
  bool DynamicOps(Scope& s);
  bool Wrappers(Scope& s);
  bool ShardingCall(Scope& s);
  bool ReduceOp(Scope& s);
  bool ReduceMany(Scope& s);
  bool ReduceWindowOp(Scope& s);
  bool SelectAndScatterOp(Scope& s);
  bool SortOp(Scope& s);
  bool RandomBits(Scope& s);
  bool TopkOp(Scope& s);
  bool TriangularSolveOp(Scope& s);
  bool CholeskyOp(Scope& s);
  bool FftOp(Scope& s);
  bool ScanOp(Scope& s);
  bool DynamicSizes(Scope& s);
  bool ManualRegion(Scope& s);
  bool DotOp(Scope& s);
  bool ConvolutionOp(Scope& s);
  bool GatherOp(Scope& s);
  bool ScatterOp(Scope& s);
  bool WhileOp(Scope& s);
  bool ConditionalOp(Scope& s);
  bool CallOp(Scope& s);
  bool FusionOp(Scope& s);
  bool CustomCallOp(Scope& s);

  // A computation over one parameter per given value, which may use them and
  // returns values of the wanted shapes; `bound` holds for floats of the result. With `added`,
  // which no other float may exceed, the result of a loop's body is its parameter and what is added
  // to it.
  struct Wanted {
    ElementType type;
    Dims dims;
    double bound;
    double added = 0;
  };
  CompId Body(const std::vector<const Shape*>& parameters, const std::vector<Value>& known,
              const std::vector<Wanted>& wanted, bool as_tuple, bool counter, int depth);
  // One to three values that a computation is called with.
  struct Arguments {
    std::vector<Value> known;
    std::vector<InstrId> operands;
    std::vector<const Shape*> shapes;
  };
  Arguments SomeArguments(Scope& s);
  // What a Body gives without a counter: one value, or a tuple.
  bool PushResults(Scope& s, InstrId id, const std::vector<Wanted>& wanted);
  CompId ScalarComputation(int parameters_of_each, const std::vector<ElementType>& types,
                           bool compare);

  template <typename T>
  const Attributes* Intern(const T& a) {
    return InternAttributes(*context_, a);
  }

  Random random_;
  GeneratorOptions options_;
  std::shared_ptr<Context> context_;
  Module module_;
  MonoidTable monoids_;
  int64_t devices_ = 2;
  bool fused_ = false;   // within a fusion, which has no calls and no regions
  absl::Status status_;  // the first op that was refused
};

}  // namespace shardcall::generator

#endif  // SHARDCALL_TESTS_FUZZ_GENERATOR_OPS_H_
