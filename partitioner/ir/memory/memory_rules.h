// SPDX-License-Identifier: Apache-2.0
// How the backends of XLA (of jaxlib 0.10.2 and 0.12.0) differ in what they keep in memory.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_MEMORY_RULES_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_MEMORY_RULES_H_

#include <cstdint>
#include <limits>

namespace shardcall {
inline namespace internal {

struct MemoryRules {
  int64_t alignment = 64;  // bytes; where a buffer may begin
  // What it makes of a program (pass/backend).
  bool widens_narrow_floats = false, copies_to_call_layouts = true, splits_exchanges = false;
  bool puts_gathered_dimension_first = true, orders_product_operands = false;
  bool expands_select_and_scatter = true;
  // Whether a collective that can run beside other ops is started, with addresses of its operands
  // in memory.
  bool starts_collectives = true;
  bool joins_reductions = true, joins_distant_reductions = false, scatters_into_sums = true;
  // Whether instructions run as soon as their operands are there, first come, first served.
  bool runs_breadth_first = false;
  // Whether a gather is computed where it is used, and reads what is computed on the way.
  bool fuses_gathers = true;
  // Whether windows, and the indices and updates of a scatter, are read from what is computed on
  // the way.
  bool fuses_windows_and_updates = true;
  // Whether a reduction computes its operand on the way if the minor dimension is none of those it
  // reduces, or if one of these has more elements than so many (XLA:CPU reduces it in two steps).
  bool fuses_major_reductions = true;
  int64_t most_reduced_at_once = std::numeric_limits<int64_t>::max();
  // Whether a library reduces (library_calls.h).
  bool reduces_by_library = false;
  // Whether a value of several users, and of several operands of its size, is computed at each of
  // them, if that reads no more than to store it and to read it back.
  bool recomputes_to_read_less = true;
  // Whether what is cheap to compute from one operand is computed at each user that can, also where
  // others need it in memory.
  bool recomputes_beside_storing = false;
};

inline constexpr MemoryRules kXlaCpuMemory = {.alignment = 64,
                                              .widens_narrow_floats = true,
                                              .splits_exchanges = true,
                                              .orders_product_operands = true,
                                              .starts_collectives = false,
                                              .joins_reductions = false,
                                              .joins_distant_reductions = true,
                                              .runs_breadth_first = true,
                                              .fuses_gathers = false,
                                              .fuses_windows_and_updates = false,
                                              .fuses_major_reductions = false,
                                              .most_reduced_at_once = 32,
                                              .reduces_by_library = true,
                                              .recomputes_to_read_less = false,
                                              .recomputes_beside_storing = true};
inline constexpr MemoryRules kXlaGpuMemory = {.alignment = 256};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_MEMORY_RULES_H_
