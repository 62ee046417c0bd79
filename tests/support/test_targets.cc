// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_targets.h"

#include <functional>

#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// A handler that works on f32 and s32 buffers alike: `fn(operands, results)`
// gets pointers of one element type.
template <typename Fn>
HostHandler ForNumbers(Fn fn) {
  return [fn](const HandlerContext&, absl::Span<const BufferView> in,
              absl::Span<const BufferView> out) -> absl::Status {
    switch (in[0].type) {
      case ElementType::kF32: fn(float{}, in, out); return absl::OkStatus();
      // Unsigned: padding may hold anything, so sums wrap.
      case ElementType::kS32: fn(uint32_t{}, in, out); return absl::OkStatus();
      default: return absl::InvalidArgumentError("f32 or s32 only");
    }
  };
}

void AddHandler(HandlerRegistry& r, const std::string& target, HostHandler handler) {
  HandlerEntry entry;
  entry.target = target;
  entry.source = "test";
  entry.host = std::move(handler);
  SHARDCALL_CHECK(r.Register(std::move(entry)).ok());
}

template <typename T>
void RowSums(absl::Span<const BufferView> in, absl::Span<const BufferView> out) {
  const T* x = static_cast<const T*>(in[0].data);
  T* y = static_cast<T*>(out[0].data);
  const int64_t rows = in[0].dims[0], columns = in[0].dims[1];
  for (int64_t i = 0; i < rows; ++i) {
    y[i] = 0;
    for (int64_t j = 0; j < columns; ++j) y[i] += x[i * columns + j];
  }
}

PartitionerCallbacks TwiceCallbacks() {
  PartitionerCallbacks c;
  c.propagate_user_sharding = [](const CustomCallView&, int,
                                 const Sharding* user) -> absl::StatusOr<const Sharding*> {
    return user;
  };
  c.infer_sharding_from_operands = [](const CustomCallView&,
                                      absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    return std::vector<const Sharding*>{operands[0]};
  };
  c.partition = [](PartitionContext& context) -> absl::Status {
    const Sharding* s = context.result_sharding(0);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, context.Operand(0, s));
    const Shape* local = LocalShape(*context.call().context, context.call().results[0], s);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> y, context.CallTarget({x}, {local}));
    return context.SetResult(0, y[0], s);
  };
  return c;
}

// Sums its shard of dimension 0 with the same target, then over devices. Uneven
// or otherwise sharded operands are taken whole.
PartitionerCallbacks TotalCallbacks() {
  PartitionerCallbacks c;
  c.partition = [](PartitionContext& context) -> absl::Status {
    const CustomCallView& call = context.call();
    Context& ctx = *call.context;
    const Sharding* given = context.operand_sharding(0);
    ShardingBuilder in(call.mesh, 2), out(call.mesh, 1);
    in.manual.assign(call.manual_axes.begin(), call.manual_axes.end());
    out.manual = in.manual;
    if (given != nullptr && call.operands[0]->dim(0) % given->num_shards(0) == 0) {
      in.dims[0].assign(given->dim(0).begin(), given->dim(0).end());
    }
    const Sharding* from = in.Intern(ctx);
    const Sharding* to = out.Intern(ctx);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, context.Operand(0, from));
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<LocalValue> y,
                               context.CallTarget({x}, {LocalShape(ctx, call.results[0], to)}));
    if (from->IsDimSharded(0)) {
      SHARDCALL_ASSIGN_OR_RETURN(y[0], context.AllReduce(y[0], PartialOp::kSum, from->dim(0)));
    }
    return context.SetResult(0, y[0], to);
  };
  return c;
}

}  // namespace

const TargetRegistry& TestTargets() {
  static const TargetRegistry* const kTargets = [] {
    auto* r = new TargetRegistry;
    auto check = [](const absl::Status& s) { SHARDCALL_CHECK(s.ok()); };
    check(RegisterBuiltinTargets(*r));
    check(r->RegisterBatchPartitionable("test_negate", 2));
    check(r->RegisterBatchPartitionable("test_row_scan", 1));
    RuleText sum{"b d -> b"};
    sum.reduction = {{"d", PartialOp::kSum}};
    check(r->RegisterRule("test_sum_even", sum));
    sum.pad = {{"d", 0}};
    check(r->RegisterRule("test_sum", sum));
    check(r->RegisterRule("test_scale", RuleText{"b d, d -> b d"}));
    check(r->RegisterCustomCallPartitioner("test_twice", TwiceCallbacks()));
    check(r->RegisterCustomCallPartitioner("test_total", TotalCallbacks()));
    return r;
  }();
  return *kTargets;
}

const HandlerRegistry& TestHandlers() {
  static const HandlerRegistry* const kHandlers = [] {
    auto* r = new HandlerRegistry;
    AddHandler(*r, "test_negate", ForNumbers([](auto zero, auto in, auto out) {
      using T = decltype(zero);
      for (int64_t i = 0; i < in[0].num_elements(); ++i) {
        static_cast<T*>(out[0].data)[i] = -static_cast<const T*>(in[0].data)[i];
      }
    }));
    AddHandler(*r, "test_row_scan", ForNumbers([](auto zero, auto in, auto out) {
      using T = decltype(zero);
      const int64_t n = in[0].dims.back();
      T sum = 0;
      for (int64_t i = 0; i < in[0].num_elements(); ++i) {
        sum = (i % n == 0 ? T{0} : sum) + static_cast<const T*>(in[0].data)[i];
        static_cast<T*>(out[0].data)[i] = sum;
      }
    }));
    for (const char* name : {"test_sum", "test_sum_even"}) {
      AddHandler(*r, name, ForNumbers([](auto zero, auto in, auto out) {
        RowSums<decltype(zero)>(in, out);
      }));
    }
    AddHandler(*r, "test_scale", ForNumbers([](auto zero, auto in, auto out) {
      using T = decltype(zero);
      const int64_t n = in[1].num_elements();
      for (int64_t i = 0; i < in[0].num_elements(); ++i) {
        static_cast<T*>(out[0].data)[i] =
            static_cast<const T*>(in[0].data)[i] * static_cast<const T*>(in[1].data)[i % n];
      }
    }));
    AddHandler(*r, "test_twice", ForNumbers([](auto zero, auto in, auto out) {
      using T = decltype(zero);
      for (int64_t i = 0; i < in[0].num_elements(); ++i) {
        static_cast<T*>(out[0].data)[i] = 2 * static_cast<const T*>(in[0].data)[i];
      }
    }));
    AddHandler(*r, "test_total", ForNumbers([](auto zero, auto in, auto out) {
      using T = decltype(zero);
      const int64_t n = out[0].num_elements();
      T* y = static_cast<T*>(out[0].data);
      for (int64_t j = 0; j < n; ++j) y[j] = 0;
      for (int64_t i = 0; i < in[0].num_elements(); ++i) {
        y[i % n] += static_cast<const T*>(in[0].data)[i];
      }
    }));
    return r;
  }();
  return *kHandlers;
}

}  // namespace shardcall
