// SPDX-License-Identifier: Apache-2.0
// The C interface: functions in any order, structs of any size, null everywhere.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_inspect.h"
#include "shardcall/sharding/codes.h"
#include "tests/fuzz/misuse/c_arguments.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

using Context = const Shardcall_PartitionContext*;
using Handle = const Shardcall_Sharding*;

// What callbacks get as data. They call in any order, and look at no code.
struct Callbacks {
  Caller& c;
  std::vector<Shardcall_Value> values = {};

  Handle Sharding(const Shardcall_CallView* v) {
    const int32_t rank = static_cast<int32_t>(c.Chance(80) ? 2 : c.Number());
    static const char* const kAxes[] = {"x0", nullptr};
    static const char* const kNone[] = {"nope", "x0", nullptr};
    const char* const* axes = c.Chance(70) ? kAxes : c.Chance(50) ? kNone : nullptr;
    switch (c.Int(0, 5)) {
      case 0: return nullptr;
      case 1: return v->parse_sharding(v, c.Chance(95) ? c.ShardingText().c_str() : nullptr, rank);
      case 2: return v->with_dim(v, v->replicated(v, rank), static_cast<int32_t>(c.Number()), axes);
      case 3:
        return v->with_partial(v, v->replicated(v, rank), c.Chance(80) ? "add" : nullptr, axes);
      case 4: return reinterpret_cast<Handle>(this);  // none that it was given
      default: return v->replicated(v, rank);
    }
  }
  void Look(const Shardcall_CallView* v) {
    int64_t number = 0;
    size_t size = 0;
    const char* text = nullptr;
    v->get_int(v, c.Chance(90) ? "a" : nullptr, c.Chance(90) ? &number : nullptr);
    v->get_string(v, c.Chance(90) ? "a" : nullptr, c.Chance(90) ? &text : nullptr, &size);
    const Handle s = Sharding(v);
    v->sharding_text(v, s);
    v->sharding_rank(v, s);
    v->num_shards(v, s, static_cast<int32_t>(c.Number()));
    if (c.Chance(5)) v->set_message(v, c.Chance(50) ? c.Name().c_str() : nullptr);
  }
  Shardcall_Value Value() {
    if (values.empty() || c.Chance(5)) return {static_cast<uint32_t>(c.Number())};
    return values[c.Int(0, static_cast<int64_t>(values.size()) - 1)];
  }
};

int Propagate(const Shardcall_CallView* v, int32_t, Handle user, Handle* answer, void* data) {
  Callbacks& b = *static_cast<Callbacks*>(data);
  b.Look(v);
  *answer = b.c.Chance(50) ? user : b.Sharding(v);
  return b.c.MayThrow() ? 0 : static_cast<int>(b.c.Int(-3, 40));
}
int Infer(const Shardcall_CallView* v, const Handle*, Handle* results, void* data) {
  Callbacks& b = *static_cast<Callbacks*>(data);
  b.Look(v);
  for (int32_t k = 0; k < v->num_results; ++k) results[k] = b.Sharding(v);
  return b.c.MayThrow() ? 0 : static_cast<int>(b.c.Int(-3, 40));
}
int Partition(Context x, void* data) {
  Callbacks& b = *static_cast<Callbacks*>(data);
  Caller& c = b.c;
  b.values.clear();
  const char* const axes[] = {c.Chance(80) ? "x0" : "nope", nullptr};
  const auto n = [&] { return static_cast<int32_t>(c.Number()); };
  Shardcall_Value made[4] = {};
  const auto keep = [&](int code) {
    if (code == 0) b.values.push_back(made[0]);
  };
  keep(x->operand(x, 0, x->operand_sharding(x, 0), made));
  const int64_t steps = c.Int(0, 10);
  for (int64_t k = 0; k < steps; ++k) {
    Shardcall_Value* place = c.Chance(97) ? made : nullptr;
    switch (c.Int(0, 13)) {
      case 0: keep(x->operand(x, n(), b.Sharding(x->call), made)); break;
      case 1: {
        Shardcall_Shape shape;
        x->shape(x, b.Value(), c.Chance(90) ? &shape : nullptr);
        break;
      }
      case 2: {
        const std::string program = c.Program("t");
        const Shardcall_Value in[] = {b.Value(), b.Value()};
        const int32_t most = c.Chance(95) ? 2 : n();
        x->add_program(x, c.Chance(95) ? program.c_str() : nullptr, program.size(),
                       c.Chance(95) ? in : nullptr, std::min<int32_t>(most, 2), place,
                       static_cast<int32_t>(c.Int(-1, 4)));
        break;
      }
      case 3: keep(x->partition_id(x, made)); break;
      case 4: x->axis_index(x, c.Chance(90) ? axes : nullptr, place); break;
      case 5: x->all_reduce(x, b.Value(), c.Chance(90) ? "add" : nullptr, axes, place); break;
      case 6: x->all_gather(x, b.Value(), n(), axes, place); break;
      case 7: x->reduce_scatter(x, b.Value(), n(), "max", axes, place); break;
      case 8: x->all_to_all(x, b.Value(), n(), n(), axes, place); break;
      case 9: {
        const int64_t pairs[] = {c.Number(), c.Number()};
        x->collective_permute(x, b.Value(), axes, c.Chance(95) ? pairs : nullptr, pairs,
                              static_cast<int32_t>(c.Int(-1, 2)), place);
        break;
      }
      case 10: {
        Shardcall_Shape shape = SHARDCALL_INIT(Shardcall_Shape);
        const std::vector<int64_t> dims = c.Dims();
        shape.rank = c.Chance(95) ? static_cast<int32_t>(dims.size()) : -1;
        shape.dims = dims.data();
        x->reshard(x, b.Value(), c.Chance(90) ? &shape : nullptr, b.Sharding(x->call),
                   b.Sharding(x->call), place);
        break;
      }
      case 11: x->set_result(x, n(), b.Value(), b.Sharding(x->call)); break;
      case 12: {
        const Shardcall_Value in[] = {b.Value(), b.Value(), b.Value()};
        const Handle s[] = {b.Sharding(x->call), nullptr};
        if (x->call->num_operands <= 3) {
          x->call_target_with(x, c.Chance(50) ? "{a = 1 : i64}" : nullptr, 13, in, s, made);
        }
        break;
      }
      default: b.Look(x->call);
    }
  }
  for (int32_t k = 0; k < x->call->num_results; ++k) {
    x->set_result(x, k, b.Value(), c.Chance(70) ? x->operand_sharding(x, 0) : b.Sharding(x->call));
  }
  return c.MayThrow() ? 0 : static_cast<int>(c.Int(-3, 40));
}
int Shapes(const Shardcall_ShapeRequest* r, void* data) {
  Caller& c = static_cast<Callbacks*>(data)->c;
  const std::vector<int64_t> dims = c.Dims();
  for (int64_t k = c.Int(0, 2); k >= 0; --k) {
    r->add_result(
        r,
        c.Chance(90) ? static_cast<int32_t>(ElementType::kF32) : static_cast<int32_t>(c.Number()),
        c.Chance(95) ? static_cast<int32_t>(dims.size()) : -1,
        c.Chance(95) ? dims.data() : nullptr);
  }
  return c.MayThrow() ? 0 : static_cast<int>(c.Int(-3, 40));
}
int Lower(const Shardcall_LoweringRequest* r, Shardcall_LoweredCall* answer, void* data) {
  Caller& c = static_cast<Callbacks*>(data)->c;
  static thread_local std::string name;
  name = c.Name();
  if (c.Chance(50)) answer->target = name.c_str();
  answer->api_version = c.Chance(80) ? 0 : static_cast<int32_t>(c.Number());
  answer->column_major = c.Chance(20);
  answer->results = c.Chance(10) ? r->results : nullptr;
  answer->num_results = c.Chance(90) && answer->results == nullptr ? 0 : c.Chance(50) ? 1 : -1;
  return c.MayThrow() ? 0 : static_cast<int>(c.Int(-3, 40));
}
int Handler(const Shardcall_Call*, void*) { return 0; }
int Visit(const Shardcall_CustomCallTarget* target, void* data) {
  FuzzRequire(target->name != nullptr && target->platform != nullptr, "a target has a name", "");
  return static_cast<Callbacks*>(data)->c.MayThrow() ? 0 : 3;
}

class Session : private CArguments {
 public:
  explicit Session(Caller& c) : CArguments(c), data_{c} {}
  ~Session() {
    Shardcall_Program_Destroy(program_);
    Shardcall_Module_Destroy(module_);
    Shardcall_Registry_Destroy(registry_);
  }
  void Run() {
    // The process' own registry keeps what it is given; here it has one of its own.
    c_.Ok(Shardcall_Registry_Create(&registry_));
    const int64_t steps = c_.Int(3, 25);
    for (int64_t k = 0; k < steps; ++k) Step();
  }

 private:
  Shardcall_Partitioner* Partitioner() {
    partitioner_ = Sized<Shardcall_Partitioner>();
    if (c_.Chance(90)) partitioner_.propagate_user_sharding = Propagate;
    if (c_.Chance(90)) partitioner_.infer_sharding_from_operands = Infer;
    if (c_.Chance(95)) partitioner_.partition = Partition;
    partitioner_.data = &data_;
    return c_.Chance(97) ? &partitioner_ : nullptr;
  }
  Shardcall_Options* Options() {
    options_ = Sized<Shardcall_Options>();
    options_.registry = registry_;
    if (c_.Chance(20)) options_.num_partitions = c_.Number();
    if (c_.Chance(10)) options_.max_reshard_bytes = c_.Number();
    options_.deadline_s = c_.Chance(95) ? 5 : -1;
    return &options_;
  }
  void Keep(Shardcall_Error* error, Shardcall_Text** text) {
    if (c_.Ok(error)) Shardcall_Text_Destroy(*text);
    *text = nullptr;
  }

  void Register() {
    const std::string name = c_.Name();
    switch (c_.Int(0, 9)) {
      case 0: {
        Shardcall_Target t = Sized<Shardcall_Target>();
        t.name = Text(name);
        if (c_.Chance(60)) t.rule = Text(c_.Rule());
        if (c_.Chance(20)) t.has_batch_dims = 1;
        t.batch_dims = static_cast<int32_t>(c_.Number());
        if (c_.Chance(20)) t.partitioner = Partitioner();
        if (c_.Chance(20)) t.handler = Handler;
        if (c_.Chance(10)) t.platform = Text(name);
        const char* const factors[] = {"a", c_.Chance(50) ? "zz" : nullptr, nullptr};
        if (c_.Chance(20)) t.need_replication = factors;
        const Shardcall_Factor sums[] = {{"b", c_.Chance(80) ? "add" : nullptr, 0}, {}};
        if (c_.Chance(20)) t.reduction = sums;
        c_.Ok(Shardcall_RegisterTarget(registry_, c_.Chance(97) ? &t : nullptr));
        return;
      }
      case 1:
        c_.Ok(Shardcall_RegisterCustomCallPartitioner(registry_, Text(name), Partitioner()));
        return;
      case 2:
        c_.Ok(Shardcall_RegisterCustomCallAsBatchPartitionable(registry_, Text(name)));
        return;
      case 3: {
        Shardcall_Vjp v = Sized<Shardcall_Vjp>();
        const Shardcall_VjpArgument arguments[] = {{2, 0}, {static_cast<int32_t>(c_.Number()), 0}};
        const int32_t gradients[] = {0, static_cast<int32_t>(c_.Number())};
        v.target = Text(c_.Name());
        v.arguments = c_.Chance(95) ? arguments : nullptr;
        v.num_arguments = static_cast<int32_t>(c_.Int(-1, 2));
        v.gradients = gradients;
        v.num_gradients = static_cast<int32_t>(c_.Int(-1, 2));
        c_.Ok(Shardcall_RegisterVjp(registry_, Text(name), &v));
        return;
      }
      case 4: {
        Shardcall_Batching b = Sized<Shardcall_Batching>();
        b.kind = static_cast<int32_t>(c_.Int(-1, 5));
        c_.Ok(Shardcall_RegisterBatching(registry_, Text(name), c_.Chance(95) ? &b : nullptr));
        return;
      }
      case 5: {
        Shardcall_ShapeFunction f = Sized<Shardcall_ShapeFunction>();
        if (c_.Chance(95)) f.infer = Shapes;
        f.data = &data_;
        c_.Ok(Shardcall_RegisterShapeFunction(registry_, Text(name), &f));
        return;
      }
      case 6: {
        Shardcall_Lowering l = Sized<Shardcall_Lowering>();
        if (c_.Chance(80)) l.name = Text(name);
        if (c_.Chance(95)) l.lower = Lower;
        l.data = &data_;
        c_.Ok(Shardcall_RegisterLowering(registry_, c_.Chance(95) ? &l : nullptr));
        return;
      }
      case 7: {
        Shardcall_CustomCallTarget t = Sized<Shardcall_CustomCallTarget>();
        t.name = Text(name);
        t.platform = c_.Chance(90) ? "cpu" : Text(name);
        t.function = c_.Chance(90) ? reinterpret_cast<void*>(Handler) : nullptr;
        t.api_version = c_.Chance(95) ? 0 : static_cast<int32_t>(c_.Number() | 2);
        t.traits = static_cast<uint32_t>(c_.Int(0, c_.Chance(90) ? 0 : 3));
        c_.Ok(Shardcall_RegisterCustomCallTarget(registry_, &t));
        return;
      }
      case 8:
        c_.Ok(Shardcall_RegisterCustomCallHandler(registry_, c_.Chance(90) ? "cpu" : Text(name),
                                                  c_.Chance(95) ? Visit : nullptr, &data_));
        return;
      default: c_.Ok(Shardcall_LoadPlugin(registry_, c_.Chance(95) ? "/dev/null" : Text(name)));
    }
  }

  void Step() {
    Shardcall_Text* text = nullptr;
    Shardcall_Text** place = c_.Chance(97) ? &text : nullptr;
    const Shardcall_Program* program = c_.Chance(97) ? program_ : nullptr;
    switch (c_.Int(0, 15)) {
      case 0:
      case 1: {
        Shardcall_Module_Destroy(module_);
        module_ = nullptr;
        const std::string hlo = c_.Program(c_.Name());
        c_.Ok(Shardcall_Module_Read(c_.Chance(97) ? hlo.data() : nullptr, hlo.size(),
                                    c_.Chance(50) ? "name" : nullptr,
                                    c_.Chance(97) ? &module_ : nullptr));
        return;
      }
      case 2: {
        Shardcall_Program_Destroy(program_);
        program_ = nullptr;
        c_.Ok(Shardcall_PartitionModule(module_, Options(), c_.Chance(97) ? &program_ : nullptr));
        return;
      }
      case 3: return Keep(Shardcall_PropagateModule(module_, Options(), place), &text);
      case 4: return Keep(Shardcall_Module_Print(module_, place), &text);
      case 5: return Keep(Shardcall_Module_Serialize(module_, place), &text);
      case 6: return Keep(Shardcall_Program_Print(program, place), &text);
      case 7:
        return Keep(
            Shardcall_Program_Explain(program, c_.Chance(50) ? "json" : Text(c_.Name()), place),
            &text);
      case 8:
        return Keep(
            Shardcall_Program_RuleKey(program, c_.Chance(50) ? "%c" : Text(c_.Name()), place),
            &text);
      case 9: c_.Ok(Shardcall_Program_Expect(program, Text("all-gather=0, bytes<=1GiB"))); return;
      case 10: return Keep(Shardcall_DescribeTargets(registry_, place), &text);
      case 11: c_.Ok(Shardcall_CustomCallTargets(registry_, "cpu", Visit, &data_)); return;
      case 12: return Execute();
      default: return Register();
    }
  }

  void Execute() {
    std::vector<float> data(200);
    const int64_t x[] = {8, 12}, y[] = {12};
    Shardcall_Buffer in[2] = {Sized<Shardcall_Buffer>(), Sized<Shardcall_Buffer>()};
    for (int k = 0; k < 2; ++k) {
      in[k].type = c_.Chance(95) ? static_cast<int32_t>(ElementType::kF32)
                                 : static_cast<int32_t>(c_.Number());
      in[k].rank = c_.Chance(95) ? 2 - k : static_cast<int32_t>(c_.Int(-1, 1));
      in[k].dims = c_.Chance(97) ? (k == 0 ? x : y) : nullptr;
      in[k].data = c_.Chance(97) ? data.data() : nullptr;
    }
    Shardcall_Buffers* out = nullptr;
    const int32_t n = c_.Chance(95) ? 2 : static_cast<int32_t>(c_.Int(-1, 1));
    const bool run = c_.Chance(50);
    const Shardcall_Buffer* inputs = c_.Chance(97) ? in : nullptr;
    if (!c_.Ok(run ? Shardcall_Program_Run(program_, inputs, n, &out)
                   : Shardcall_Module_Evaluate(module_, registry_, inputs, n, &out))) {
      return;
    }
    for (int32_t k = -1; k <= Shardcall_Buffers_Count(out); ++k) {
      const Shardcall_Buffer* b = Shardcall_Buffers_Get(out, k);
      FuzzRequire((b == nullptr) == (k < 0 || k == Shardcall_Buffers_Count(out)),
                  "a result is where it is counted", "");
    }
    Shardcall_Buffers_Destroy(out);
  }

  Callbacks data_;
  Shardcall_Registry* registry_ = nullptr;
  Shardcall_Module* module_ = nullptr;
  Shardcall_Program* program_ = nullptr;
  Shardcall_Partitioner partitioner_;
  Shardcall_Options options_;
};

}  // namespace

void MisuseCInterface(Caller& c) {
  Session(c).Run();
  // Null is nothing to destroy, and an error that there is not has no parts.
  Shardcall_Error_Destroy(nullptr);
  Shardcall_Text_Destroy(nullptr);
  Shardcall_Buffers_Destroy(nullptr);
  FuzzRequire(std::strlen(Shardcall_Error_Text(nullptr)) == 0, "no error has no text", "");
}

}  // namespace shardcall::misuse
