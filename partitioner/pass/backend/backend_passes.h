// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_PASS_BACKEND_BACKEND_PASSES_H_
#define SHARDCALL_PARTITIONER_PASS_BACKEND_BACKEND_PASSES_H_

#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {
inline namespace internal {

// A transpose of a product is the product of its operands the other way round, if fewer bytes of
// these are put into order then.
PassResult SwapTransposedProducts(const Module& m);

// Ops on bf16 take and give f32, but for those that keep their numbers as they are, calls and
// control flow.
PassResult WidenNarrowFloats(const Module& m);

// Of what a loop converts and does not change, the conversion is made before it.
PassResult HoistConverts(const Module& m);

// Gathers and reduce-scatters have dimension 0 as theirs, between transposes.
PassResult PutGatheredDimensionFirst(const Module& m);

// An all-to-all of an array becomes that of its parts, which are put together again.
PassResult SplitExchanges(const Module& m);

// The left operand of a product has its dimensions in the order batch, free, contracting, and the
// right one batch, contracting, free, unless it has one of each.
PassResult OrderProductOperands(const Module& m);

// Operands and results of custom calls that are not row-major are copies.
PassResult CopyToCallLayouts(const Module& m);

// Reductions of one kind over the same devices that do not need each other become one, of a tuple.
PassResult JoinReductions(const Module& m);
// The same of those that are not near each other; instructions are put into another order.
PassResult JoinDistantReductions(const Module& m);

// The same of other collectives; the types of those that do not reduce may differ.
PassResult JoinGathers(const Module& m);
PassResult JoinReduceScatters(const Module& m);
PassResult JoinPermutes(const Module& m);

// A select-and-scatter is a reduce-window of elements with their places, and a scatter to these.
PassResult ExpandSelectAndScatter(const Module& m);

// What is added to a scatter that adds to zeros is what it adds to.
PassResult ScatterIntoSums(const Module& m);

// Of equal ops of equal operands, there is one.
PassResult ShareEqualValues(const Module& m);

// Convolutions are as cuDNN takes them.
PassResult CallCuDnnConvolutions(const Module& m);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_BACKEND_BACKEND_PASSES_H_
