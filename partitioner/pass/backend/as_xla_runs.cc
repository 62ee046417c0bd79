// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/backend/as_xla_runs.h"

#include <utility>

#include "shardcall/partitioner/pass/backend/backend_passes.h"

namespace shardcall {
inline namespace internal {
namespace {

struct LoweringRow {
  bool MemoryRules::* applies;
  PassResult (*pass)(const Module& m);
};
constexpr LoweringRow kLowerings[] = {
    {&MemoryRules::expands_select_and_scatter, ExpandSelectAndScatter},
    {&MemoryRules::shares_equal_values, ShareEqualValues},
    {&MemoryRules::convolves_by_cudnn, CallCuDnnConvolutions},
    {&MemoryRules::orders_product_operands, SwapTransposedProducts},
    {&MemoryRules::widens_narrow_floats, WidenNarrowFloats},
    {&MemoryRules::widens_narrow_floats, HoistConverts},
    {&MemoryRules::widens_narrow_floats, HoistConverts},  // from a loop in a loop
    {&MemoryRules::copies_to_call_layouts, CopyToCallLayouts},
    {&MemoryRules::splits_exchanges, SplitExchanges},
    {&MemoryRules::puts_gathered_dimension_first, PutGatheredDimensionFirst},
    {&MemoryRules::orders_product_operands, OrderProductOperands},
    {&MemoryRules::joins_reductions, JoinReductions},
    {&MemoryRules::joins_distant_reductions, JoinDistantReductions},
    {&MemoryRules::joins_moves, JoinGathers},
    {&MemoryRules::joins_moves, JoinReduceScatters},
    {&MemoryRules::joins_moves, JoinPermutes},
    {&MemoryRules::scatters_into_sums, ScatterIntoSums},
};

}  // namespace

std::optional<Module> AsXlaRuns(const Module& m, const MemoryRules& rules) {
  std::optional<Module> out;
  for (const LoweringRow& row : kLowerings) {
    if (!(rules.*row.applies)) continue;
    PassResult next = row.pass(out.has_value() ? *out : m);
    if (next.changed) out.emplace(std::move(next.module));
  }
  if (out.has_value()) out = std::move(MakeDeadCodeElimination()->Run(*out)->module);
  return out;
}

}  // namespace internal
}  // namespace shardcall
