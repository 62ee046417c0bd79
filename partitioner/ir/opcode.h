// SPDX-License-Identifier: Apache-2.0
// Opcodes, and the properties of each in opcodes.inc that all layers may use.
#ifndef SHARDCALL_PARTITIONER_IR_OPCODE_H_
#define SHARDCALL_PARTITIONER_IR_OPCODE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class Opcode : uint8_t {
#define SHARDCALL_OPCODE(opcode) opcode,
#include "shardcall/partitioner/ir/opcode_list.inc"
#undef SHARDCALL_OPCODE
};

inline constexpr int kNumOpcodes = 0
#define SHARDCALL_OPCODE(opcode) +1
#include "shardcall/partitioner/ir/opcode_list.inc"
#undef SHARDCALL_OPCODE
    ;

// Bits of the traits column.
inline constexpr uint32_t kElementwise = 1;   // result element = f(operand elements there)
inline constexpr uint32_t kArithmetic = 2;    // +, -, * or /, whose results for floats are rounded
inline constexpr uint32_t kCollectiveOp = 4;  // communicates with other devices
inline constexpr uint32_t kCallsComputation = 8;
inline constexpr uint32_t kSideEffect = 16;  // by itself, whatever its attributes
inline constexpr uint32_t kAsyncForm = 32;
// Each result element depends on at most one element of each operand, at any position.
inline constexpr uint32_t kMapsElements = 64;
// Elements of an operand are combined: summed, solved with, transformed.
inline constexpr uint32_t kCombinesElements = 128;
// Elementwise, and each result is one of the operands' numbers, up to sign and precision.
inline constexpr uint32_t kKeepsValues = 256;
// With constant operands it is cheaper to compute on every shard than to communicate.
inline constexpr uint32_t kCheap = 512;
// Inference gives the result dynamic dimensions if operands have them.
inline constexpr uint32_t kCarriesDynamicSizes = 1024;
// The result is the operand reinterpreted; nothing is computed or moved.
inline constexpr uint32_t kFree = 2048;
// Takes no time, whatever the size.
inline constexpr uint32_t kNoWork = 4096;
// Runs on every device, so it cannot be assigned to one device.
inline constexpr uint32_t kEveryDevice = 8192;
// Its operands become the parameters of its computations, and their roots its result.
inline constexpr uint32_t kControlFlow = 16384;
// Its computations combine or compare single elements, as in a reduction or a sort.
inline constexpr uint32_t kAppliesToElements = 32768;
// A product of elements of its first two operands, or a sum of such products: linear in each.
inline constexpr uint32_t kBilinear = 65536;
// Its time is that of its multiplications and additions, not of its memory.
inline constexpr uint32_t kTakesFlops = 131072;
// Draws from the device's generator, so two runs of it give different numbers.
inline constexpr uint32_t kDrawsNumbers = 262144;
// Its list of dimensions has exactly one.
inline constexpr uint32_t kOneDimension = 524288;
// The result is memory of its operands or of its caller, or has none, though it is not kFree.
inline constexpr uint32_t kAliases = 1048576;
// Elementwise, and each result is the sum of the operands' numbers, up to their signs.
inline constexpr uint32_t kAddsOperands = 2097152;
// Linear in the first operand alone, by factors of which small integers, too, make fractions.
inline constexpr uint32_t kMakesFractions = 4194304;
// Computes what its computations compute, and nothing beside.
inline constexpr uint32_t kComposed = 8388608;
// Stands for its place in the program: one cannot stand for another that equals it.
inline constexpr uint32_t kHoldsPlace = 16777216;
// Each result element is an element of its first operand, negated or converted perhaps: of a sum of
// operands it gives the sum of results, if the type of the result holds that of the operand.
inline constexpr uint32_t kPassesSums = 33554432;
// Of its first operand it reads no more than its result has.
inline constexpr uint32_t kReadsPart = 67108864;
// Its result is its first operand, in place if nothing else reads that, with its second one
// somewhere in it.
inline constexpr uint32_t kReplacesPart = 134217728;
// Along a dimension that is a permutation factor of its rule, each result element depends on
// elements about its own place, so that shards of both need little of each other.
inline constexpr uint32_t kReadsNear = 268435456;
// Elementwise, and for floats each element takes so many operations that compilers rather store it
// than compute it twice.
inline constexpr uint32_t kManyOperations = 536870912;

struct OpcodeInfo {
  absl::string_view text;
  AttrKind attrs;
  int arity;                    // number of operands; -1: any
  absl::string_view stablehlo;  // "stablehlo.add"; empty if StableHLO has no such op
  uint32_t traits;
};
extern const OpcodeInfo kOpcodeInfo[kNumOpcodes];

inline const OpcodeInfo& GetOpcodeInfo(Opcode opcode) {
  return kOpcodeInfo[static_cast<int>(opcode)];
}
inline absl::string_view OpcodeText(Opcode opcode) { return GetOpcodeInfo(opcode).text; }
inline bool HasTrait(Opcode opcode, uint32_t trait) { return GetOpcodeInfo(opcode).traits & trait; }
// Whether its computations run instruction by instruction, once or more.
inline bool RunsComputations(Opcode opcode) {
  return HasTrait(opcode, kCallsComputation) && !HasTrait(opcode, kAppliesToElements);
}
// False if there is no such opcode.
bool OpcodeFromText(absl::string_view text, Opcode* opcode);

// An op that has opcodes of its own for its start and its done. Other asynchronous ops start with
// async-start, and a send or recv is itself a start.
struct AsyncForms {
  Opcode whole, start, done;
};
inline constexpr AsyncForms kAsyncForms[] = {
    {Opcode::kAllGather, Opcode::kAllGatherStart, Opcode::kAllGatherDone},
    {Opcode::kAllReduce, Opcode::kAllReduceStart, Opcode::kAllReduceDone},
    {Opcode::kCollectivePermute, Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone},
    {Opcode::kCopy, Opcode::kCopyStart, Opcode::kCopyDone},
    {Opcode::kSend, Opcode::kSend, Opcode::kSendDone},
    {Opcode::kRecv, Opcode::kRecv, Opcode::kRecvDone},
};
// The forms whose done, start, or synchronous op `opcode` is; null if there are none.
const AsyncForms* FormsEndedBy(Opcode opcode);
const AsyncForms* FormsStartedBy(Opcode opcode);
const AsyncForms* FormsOf(Opcode opcode);
// Whether async-start may be written with this op's name, as in `sort-start`. Ops whose start has
// an opcode of its own would be mistaken for it.
bool HasShortAsyncForm(Opcode opcode);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_OPCODE_H_
