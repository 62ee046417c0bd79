// SPDX-License-Identifier: Apache-2.0
// As XLA's SelectAndScatterExpander does it. For x of n dimensions:
//   before:  y = select-and-scatter(x, source, init), window, select, scatter
//   after:   w = reduce-window(x, iota_0, .., iota_(n-1)), window  -- what is selected, and where
//            y = scatter(broadcast(init), the places in w, source), to_apply=scatter
#include <numeric>

#include "shardcall/partitioner/ir/build/monoid_table.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

using Sizes = absl::InlinedVector<int64_t, 8>;
using Ids = absl::InlinedVector<InstrId, 12>;
constexpr ElementType kPlace = ElementType::kS32;

// Of two elements with their places, the one that `select` takes; one of the window's padding,
// which has no place, only beside another one of it.
CompId SelectWithPlaces(Module* m, CompId select, ElementType type, int rank) {
  MonoidTable monoids(m);
  GraphBuilder b(m, m->AddComputation("select_with_places"), &monoids);
  Ids elements;
  for (int side = 0; side < 2; ++side) {
    for (int k = 0; k <= rank; ++k) {
      elements.push_back(b.Parameter(static_cast<int64_t>(elements.size()),
                                     b.context().MakeScalar(k == 0 ? type : kPlace)));
    }
  }
  const auto is_real = [&](int k) {
    return b.Compare(Direction::kGe, elements[k], b.ConstantInt(kPlace, 0));
  };
  const InstrId selected = b.Call(select, {elements[0], elements[rank + 1]});
  const InstrId either = b.Binary(Opcode::kOr, b.Unary(Opcode::kNot, is_real(rank + 2)), selected);
  const InstrId first = b.Binary(Opcode::kAnd, is_real(1), either);
  Ids taken;
  for (int k = 0; k <= rank; ++k) {
    taken.push_back(b.Select(first, elements[k], elements[rank + 1 + k]));
  }
  b.SetRoot(b.Tuple(taken));
  return b.computation();
}

// The place of what each window selects, s32 of [windows, rank].
InstrId PlacesOfSelected(GraphBuilder& b, InstrId x, InstrId init,
                         const SelectAndScatterAttrs& attrs, const Shape& windows) {
  const Shape* const shape = b.shape(x);
  const int rank = shape->rank();
  ReduceWindowAttrs reduce;
  reduce.window = attrs.window;
  reduce.to_apply = SelectWithPlaces(&b.module(), attrs.select, shape->element_type(), rank);
  Ids operands = {x}, inits = {init};
  for (int d = 0; d < rank; ++d) {
    operands.push_back(b.Iota(kPlace, shape->dims(), d));
    inits.push_back(b.ConstantInt(kPlace, -1));
  }
  operands.insert(operands.end(), inits.begin(), inits.end());
  const InstrId selected =
      b.Add(Opcode::kReduceWindow, operands, InternAttributes(b.context(), reduce));
  Sizes of_one(windows.dims().begin(), windows.dims().end());
  of_one.push_back(1);
  Ids places;
  for (int d = 0; d < rank; ++d) {
    places.push_back(b.Reshape(b.GetTupleElement(selected, d + 1), of_one));
  }
  return b.Reshape(b.Concatenate(places, rank), {windows.num_elements(), rank});
}

}  // namespace

PassResult ExpandSelectAndScatter(const Module& m) {
  return RewriteInstructions(
      m, [&](InstrId id) { return m.instr(id).opcode == Opcode::kSelectAndScatter; },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        const auto operands = cloner->OperandsOf(id);
        const auto& old = m.instr(id).as<SelectAndScatterAttrs>();
        SelectAndScatterAttrs attrs = old;
        attrs.select = cloner->now(old.select);
        const Shape& windows = *b.shape(operands[1]);
        const int rank = windows.rank();
        const InstrId places = PlacesOfSelected(b, operands[0], operands[2], attrs, windows);
        Sizes elements(rank + 1, 1);
        elements[0] = windows.num_elements();
        ScatterAttrs scatter;
        scatter.index_vector_dim = 1;
        Sizes window_dims(rank), operand_dims(rank);
        std::iota(window_dims.begin(), window_dims.end(), 1);
        std::iota(operand_dims.begin(), operand_dims.end(), 0);
        scatter.update_window_dims = absl::MakeConstSpan(window_dims);
        scatter.scatter_dims_to_operand_dims = absl::MakeConstSpan(operand_dims);
        scatter.to_apply = cloner->now(old.scatter);
        const InstrId made = b.Add(Opcode::kScatter,
                                   {b.BroadcastScalar(operands[2], b.shape(operands[0])), places,
                                    b.Reshape(operands[1], elements)},
                                   InternAttributes(b.context(), scatter));
        cloner->Replace(id, made);
      });
}

}  // namespace internal
}  // namespace shardcall
