// SPDX-License-Identifier: Apache-2.0
// How the backends of XLA (of jaxlib 0.10.2 and 0.12.0) differ in what they keep in memory.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_MEMORY_RULES_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_MEMORY_RULES_H_

#include <cstdint>
#include <limits>

namespace shardcall {
inline namespace internal {

// How long a step takes, roughly. Kernels are bound by memory, or by multiplications.
struct StepSeconds {
  double of_kernel = 0, per_byte = 0, per_multiplication = 0;
  double of_collective = 0, per_sent_byte = 0;
};

// Of a program; first come, first served, each when its operands are there; a list scheduler, which
// keeps memory low, with collectives behind which other steps are hidden.
enum class RunOrder { kOfProgram, kBreadthFirst, kList };

struct MemoryRules {
  int64_t alignment = 64;  // bytes; where a buffer may begin
  // What it makes of a program (pass/backend).
  bool widens_narrow_floats = false, copies_to_call_layouts = true, splits_exchanges = false;
  bool puts_gathered_dimension_first = true, orders_product_operands = false;
  bool expands_select_and_scatter = true, convolves_by_cudnn = false;
  bool shares_equal_values = false;
  bool joins_reductions = true, joins_distant_reductions = false, joins_moves = false;
  bool scatters_into_sums = true;
  RunOrder order = RunOrder::kOfProgram;
  StepSeconds seconds = {};
  // Whether a product computes its operands on the way, if that reads hardly more than to store
  // them, and what one op by element makes of it.
  bool fuses_into_products = false;
  // Whether a gather is computed where it is used, and reads what is computed on the way.
  bool fuses_gathers = true;
  // Whether windows, and the indices and updates of a scatter, are read from what is computed on
  // the way.
  bool fuses_windows_and_updates = true;
  // Whether a reduction computes its operand on the way if the minor dimension is none of those it
  // reduces, or if one of these has more elements than so many (XLA:CPU reduces it in two steps).
  bool fuses_major_reductions = true;
  int64_t most_reduced_at_once = std::numeric_limits<int64_t>::max();
  // Whether the addresses of a tuple's elements have a place that nothing else has.
  bool keeps_tables = false;
  // Whether an all-reduce that is started, or makes a result, writes over its operands.
  bool reduces_in_place = false;
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
                                              .joins_reductions = false,
                                              .joins_distant_reductions = true,
                                              .order = RunOrder::kBreadthFirst,
                                              .fuses_gathers = false,
                                              .fuses_windows_and_updates = false,
                                              .fuses_major_reductions = false,
                                              .most_reduced_at_once = 32,
                                              .reduces_by_library = true,
                                              .recomputes_to_read_less = false,
                                              .recomputes_beside_storing = true};
// Times are those of an H100. How long things take hardly matters: half of it, or twice, leaves the
// same programs within 10 % of what XLA needs.
inline constexpr MemoryRules kXlaGpuMemory = {.alignment = 256,
                                              .convolves_by_cudnn = true,
                                              .shares_equal_values = true,
                                              .joins_moves = true,
                                              .order = RunOrder::kList,
                                              .seconds = {.of_kernel = 3e-6,
                                                          .per_byte = 1 / 3.35e12,
                                                          .per_multiplication = 2 / 9.9e14,
                                                          .of_collective = 1e-5,
                                                          .per_sent_byte = 1 / 4.5e11},
                                              .fuses_into_products = true,
                                              .keeps_tables = true,
                                              .reduces_in_place = true};
// The same of a program that is still to be partitioned, or compared with others: in its order, and
// with products that read memory, which leaves room for backends that do not fuse them.
inline constexpr MemoryRules kPlannedMemory = {.alignment = 256};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_MEMORY_RULES_H_
