// SPDX-License-Identifier: Apache-2.0
// What the C interface has beside the sequences of c_interface.cc: targets with every
// field, handlers that look at their call, checks, live XLA, types, and answers to null.
#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "shardcall/kernels/ffi/shardcall_ffi.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "tests/fuzz/misuse/c_arguments.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

constexpr char kReference[] =
    "HloModule r\nENTRY e { x = f32[4,6] parameter(0) ROOT y = f32[4,6] add(x, x) }";
constexpr char kProgram[] = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[8,12] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT c = f32[8,12] custom-call(x), custom_call_target="same", api_version=API_VERSION_TYPED_FFI, backend_config={a = 1 : i64}
})";

// Devices run on threads of their own, so what a handler does is drawn before the run.
struct Behaviour {
  bool throws = false;
  int code = 0;
  bool nulls = false;
};

int Handler(const Shardcall_Call* call, void* data) {
  const Behaviour& b = *static_cast<const Behaviour*>(data);
  int64_t i = 0;
  double f = 0;
  int on = 0;
  const char* text = nullptr;
  size_t size = 0;
  const char* const name = b.nulls ? nullptr : "a";
  call->get_int(call, name, b.nulls ? nullptr : &i);
  call->get_float(call, name, b.nulls ? nullptr : &f);
  call->get_bool(call, name, b.nulls ? nullptr : &on);
  call->get_string(call, name, b.nulls ? nullptr : &text, b.nulls ? nullptr : &size);
  call->set_message(call, b.nulls ? nullptr : "not today");
  (void)call->device(call);
  if (b.throws) throw 7;
  for (int32_t k = 0; k < call->num_results && b.code == 0; ++k) {
    int64_t bytes = 4;
    for (int32_t d = 0; d < call->results[k].rank; ++d) bytes *= call->results[k].dims[d];
    std::memset(call->results[k].data, 0, static_cast<size_t>(bytes));
  }
  return b.code;
}
int Shapes(const Shardcall_ShapeRequest* r, void* data) {
  const Behaviour& b = *static_cast<const Behaviour*>(data);
  int64_t i = 0;
  double f = 0;
  int on = 0;
  r->get_int(r, b.nulls ? nullptr : "a", b.nulls ? nullptr : &i);
  r->get_float(r, b.nulls ? nullptr : "a", b.nulls ? nullptr : &f);
  r->get_bool(r, b.nulls ? nullptr : "a", b.nulls ? nullptr : &on);
  r->set_message(r, b.nulls ? nullptr : "no shape");
  for (int32_t k = 0; k < r->num_operands; ++k) {
    r->add_result(r, r->operands[k].type, r->operands[k].rank, r->operands[k].dims);
  }
  if (b.throws) throw 7;
  return b.code;
}
int TypeSeen(const char* name, int64_t, void* data) {
  FuzzRequire(name != nullptr, "a type has a name", "");
  return static_cast<const Behaviour*>(data)->code;
}
void Inspect(void* data, Shardcall_InspectShardingArgs* args) {
  static char error[] = "not this one";
  if (static_cast<const Behaviour*>(data)->code != 0) args->error_txt = error;
}

class Objects : private CArguments {
 public:
  explicit Objects(Caller& c) : CArguments(c) {}
  ~Objects() { Shardcall_Registry_Destroy(registry_); }
  void Run() {
    if (c_.Chance(97)) c_.Ok(Shardcall_Registry_Create(&registry_));
    c_.Ok(Shardcall_Registry_Create(nullptr));
    if (registry_ == nullptr) return Nulls();  // that of the process stays as it is
    const int64_t steps = c_.Int(2, 15);
    for (int64_t k = 0; k < steps; ++k) Step();
  }

 private:
  const char* Name() { return Text(c_.Chance(60) ? "same" : c_.Name()); }
  Behaviour* Drawn() {
    behaviours_.push_back({.throws = c_.Chance(5),
                           .code = c_.Chance(85) ? 0 : static_cast<int>(c_.Int(-3, 40)),
                           .nulls = c_.Chance(30)});
    return &behaviours_.back();
  }
  int32_t N() { return static_cast<int32_t>(c_.Number()); }

  void Nulls() {
    Shardcall_Version(nullptr, nullptr);
    FuzzRequire(std::strlen(Shardcall_Error_Code(nullptr)) == 0 &&
                    std::strlen(Shardcall_Error_Message(nullptr)) == 0 &&
                    std::strlen(Shardcall_Error_Fix(nullptr)) == 0 &&
                    Shardcall_Error_Status(nullptr) == 0,
                "no error has no parts", "");
    FuzzRequire(std::strlen(Shardcall_Text_Data(nullptr)) == 0 &&
                    Shardcall_Text_Size(nullptr) == 0 && Shardcall_Buffers_Count(nullptr) == 0 &&
                    Shardcall_Buffers_Get(nullptr, 0) == nullptr &&
                    Shardcall_Program_NumPartitions(nullptr) == 0,
                "nothing has nothing", "");
    Shardcall_Module_Destroy(nullptr);
    Shardcall_Program_Destroy(nullptr);
    Shardcall_Registry_Destroy(nullptr);
    Shardcall_Text* text = nullptr;
    Shardcall_Text** place = c_.Chance(80) ? &text : nullptr;
    c_.Ok(Shardcall_Program_Serialize(nullptr, place));
    c_.Ok(Shardcall_Program_Report(nullptr, place));
    c_.Ok(Shardcall_Module_Serialize(nullptr, place));
    c_.Ok(Shardcall_Module_Print(nullptr, place));
    c_.Ok(Shardcall_Module_Verify(nullptr, nullptr, 0, place));
    c_.Ok(Shardcall_PropagateModule(nullptr, nullptr, place));
    c_.Ok(Shardcall_PartitionModule(nullptr, nullptr, nullptr));
    FuzzRequire(text == nullptr, "where there is an error, the argument is left alone", "");
  }

  void Target() {
    Shardcall_Target t = Sized<Shardcall_Target>();
    t.name = Name();
    if (c_.Chance(20)) t.platform = Text(c_.Chance(50) ? "Host" : c_.Name());
    if (c_.Chance(20)) t.backend_config = Text(c_.Name());
    const char* const factors[] = {"b", c_.Chance(50) ? "zz" : nullptr, nullptr};
    const Shardcall_Factor numbers[] = {{c_.Chance(80) ? "b" : "", nullptr, 1.0 * N()}, {}};
    const Shardcall_Factor sums[] = {{"b", c_.Chance(80) ? "add" : "average", 0}, {}};
    Shardcall_Rule rule = Sized<Shardcall_Rule>();
    rule.rule = Text(c_.Rule());
    if (c_.Chance(40)) rule.types = Text(c_.Chance(80) ? "T -> T" : c_.Name());
    if (c_.Chance(20)) rule.need_replication = factors;
    if (c_.Chance(20)) rule.pad = numbers;
    if (c_.Chance(20)) rule.reduction = sums;
    const Shardcall_Rule* const rules[] = {c_.Chance(95) ? &rule : nullptr,
                                           c_.Chance(30) ? &rule : nullptr, nullptr};
    if (c_.Chance(60)) t.rule = Text(c_.Rule());
    if (c_.Chance(20)) t.rules = rules;
    if (c_.Chance(10)) t.has_batch_dims = 1, t.batch_dims = N();
    if (c_.Chance(5)) t.batch_dims_of_call = 1;
    if (c_.Chance(20)) t.permutation = factors;
    if (c_.Chance(20)) t.blocked = factors;
    if (c_.Chance(20)) t.reduction = sums;
    if (c_.Chance(20)) t.pad = numbers;
    if (c_.Chance(20)) t.sizes = numbers;
    if (c_.Chance(60)) t.handler = Handler, t.handler_data = Drawn();
    if (c_.Chance(5)) t.ffi_prepare = reinterpret_cast<void*>(&Handler);  // without ffi_execute
    if (c_.Chance(5)) t.untyped = reinterpret_cast<void*>(&Handler), t.untyped_api_version = N();
    if (c_.Chance(10)) t.reference = Text(c_.Chance(60) ? kReference : c_.Name());
    Shardcall_ShapeFunction shapes = Shape();
    if (c_.Chance(20)) t.shapes = &shapes;
    Shardcall_CallLimits limits = Limits();
    if (c_.Chance(20)) t.limits = &limits;
    Shardcall_Batching batching = Sized<Shardcall_Batching>();
    batching.kind = N();
    batching.target = c_.Chance(70) ? nullptr : Name();
    if (c_.Chance(20)) t.batching = &batching;
    Shardcall_Vjp vjp = Sized<Shardcall_Vjp>();
    const Shardcall_VjpArgument arguments[] = {{2, 0}, {N(), N()}};
    const int32_t gradients[] = {0, N()};
    if (c_.Chance(70)) vjp.target = Name();
    if (c_.Chance(40)) vjp.computation = Text(c_.Chance(60) ? kReference : c_.Name());
    if (c_.Chance(95)) vjp.arguments = arguments;
    vjp.num_arguments = static_cast<int32_t>(c_.Int(-1, 2));
    if (c_.Chance(95)) vjp.gradients = gradients;
    vjp.num_gradients = static_cast<int32_t>(c_.Int(-1, 2));
    if (c_.Chance(20)) vjp.pad = numbers;
    if (c_.Chance(20)) t.vjp = &vjp;
    c_.Ok(Shardcall_RegisterTarget(registry_, &t));
  }
  Shardcall_ShapeFunction Shape() {
    Shardcall_ShapeFunction f = Sized<Shardcall_ShapeFunction>();
    if (c_.Chance(95)) f.infer = Shapes;
    f.data = Drawn();
    f.tuple = static_cast<int32_t>(c_.Int(0, 1));
    return f;
  }
  Shardcall_CallLimits Limits() {
    sizes_ = {{Text(c_.Chance(60) ? "b" : c_.Name()), Text(c_.Chance(60) ? "4 a" : c_.Name())}};
    ranges_ = {{N(), c_.Chance(70) ? nullptr : Text(c_.Name()), Text(c_.Chance(60) ? "a" : "")}};
    Shardcall_CallLimits l = Sized<Shardcall_CallLimits>();
    l.sizes = c_.Chance(95) ? sizes_.data() : nullptr;
    l.num_sizes = static_cast<int32_t>(c_.Int(-1, 1));
    l.ranges = c_.Chance(95) ? ranges_.data() : nullptr;
    l.num_ranges = static_cast<int32_t>(c_.Int(-1, 1));
    return l;
  }

  void Run(bool verify) {
    Shardcall_Module* module = nullptr;
    const std::string text = c_.Chance(70) ? kProgram : c_.Program("same");
    if (!c_.Ok(Shardcall_Module_ReadWith(registry_, text.data(), text.size(), nullptr, &module))) {
      return;
    }
    Shardcall_Options options = Sized<Shardcall_Options>();
    options.registry = registry_;
    options.deadline_s = 20;
    const char* const allowed[] = {c_.Chance(50) ? "all" : "", nullptr};
    if (c_.Chance(30)) options.allow_replicate = allowed;
    Shardcall_Text* text_out = nullptr;
    if (verify) {
      if (c_.Ok(Shardcall_Module_Verify(module, &options, 1, &text_out))) {
        Shardcall_Text_Destroy(text_out);
      }
      return Shardcall_Module_Destroy(module);
    }
    Shardcall_Program* program = nullptr;
    const bool made = c_.Ok(Shardcall_PartitionModule(module, &options, &program));
    Shardcall_Module_Destroy(module);  // a program keeps what it needs
    if (!made) return;
    FuzzRequire(Shardcall_Program_NumPartitions(program) > 0, "a program has devices", "");
    if (c_.Chance(50)) {
      Shardcall_Registry_Destroy(registry_);
      registry_ = nullptr;
    }
    if (c_.Ok(Shardcall_Program_Serialize(program, &text_out))) Shardcall_Text_Destroy(text_out);
    text_out = nullptr;
    if (c_.Ok(Shardcall_Program_Report(program, &text_out))) Shardcall_Text_Destroy(text_out);
    std::vector<float> data(200);
    const int64_t dims[] = {8, 12};
    Shardcall_Buffer in = SHARDCALL_INIT(Shardcall_Buffer);
    in.type = 11;
    in.rank = 2;
    in.dims = dims;
    in.data = data.data();
    Shardcall_Buffers* out = nullptr;
    if (c_.Ok(Shardcall_Program_Run(program, &in, 1, &out))) Shardcall_Buffers_Destroy(out);
    Shardcall_Program_Destroy(program);
    if (registry_ == nullptr) c_.Ok(Shardcall_Registry_Create(&registry_));
  }

  void Live() {
    // No live XLA: a table that ends at once, or none.
    static const char kNoApi[1024] = {};
    const void* api = c_.Chance(50) ? kNoApi : nullptr;
    Shardcall_Partitioner p = Sized<Shardcall_Partitioner>();
    switch (c_.Int(0, 4)) {
      case 0:
        c_.Ok(Shardcall_RegisterCustomCallPartitionerWithApi(registry_, Name(),
                                                             c_.Chance(90) ? &p : nullptr, api));
        return;
      case 1:
        c_.Ok(Shardcall_RegisterCustomCallAsBatchPartitionableWithApi(registry_, Name(), api));
        return;
      case 2: c_.Ok(Shardcall_PassToPjrt(registry_, Name(), api)); return;
      case 3:
        c_.Ok(Shardcall_PassHandlerToPjrt(registry_, Name(),
                                          c_.Chance(50) ? nullptr : Text(c_.Name()), api));
        return;
      default: {
        Shardcall_PjrtCallbacks* callbacks = nullptr;
        if (c_.Ok(Shardcall_PjrtCallbacksOf(registry_, Name(),
                                            c_.Chance(95) ? &callbacks : nullptr))) {
          Served(callbacks);
        }
      }
    }
  }
  // As XLA asks, with bytes that say nothing.
  void Served(Shardcall_PjrtCallbacks* callbacks) {
    const auto bytes = [&] {
      texts_.push_back(c_.Name());
      return Shardcall_PjrtString{texts_.back().data(), texts_.back().size()};
    };
    const auto ended = [](Shardcall_PjrtHeader& header) {
      FuzzRequire(header.cleanup_fn != nullptr, "an answer can be given back", "");
      header.cleanup_fn(header.data);
    };
    std::vector<Shardcall_PjrtAval> avals(c_.Int(0, 2));
    for (Shardcall_PjrtAval& a : avals) a = {bytes(), c_.Chance(50), bytes()};
    Shardcall_PjrtInferArgs infer = {};
    infer.num_args = avals.size();
    infer.op_args = avals.data();
    infer.result_shape = bytes();
    infer.backend_config = bytes();
    callbacks->infer_sharding(callbacks, &infer);
    ended(infer.header);
    Shardcall_PjrtPropagateArgs propagate = {};
    propagate.backend_config = bytes();
    propagate.result_shape = bytes();
    propagate.result_sharding = bytes();
    callbacks->propagate_user_sharding(callbacks, &propagate);
    ended(propagate.header);
    Shardcall_PjrtPartitionArgs partition = {};
    partition.num_args = avals.size();
    partition.op_args = avals.data();
    partition.op_result = {bytes(), true, bytes()};
    partition.backend_config = bytes();
    callbacks->partition(callbacks, &partition);
    ended(partition.header);
    callbacks->dtor(callbacks);
  }

  void Step() {
    switch (c_.Int(0, 10)) {
      case 0:
      case 1:
      case 2: return Target();
      case 3: {
        const Shardcall_CallLimits limits = Limits();
        c_.Ok(Shardcall_RegisterCallLimits(registry_, Name(), c_.Chance(95) ? &limits : nullptr));
        return;
      }
      case 4: {
        const Shardcall_ShapeFunction f = Shape();
        c_.Ok(Shardcall_RegisterShapeFunction(registry_, Name(), c_.Chance(95) ? &f : nullptr));
        return;
      }
      case 5: {
        int64_t id = c_.Chance(80) ? 0 : c_.Number();
        c_.Ok(Shardcall_RegisterCustomTypeIdHandler(registry_, Text("cpu"),
                                                    c_.Chance(95) ? TypeSeen : nullptr, Drawn()));
        c_.Ok(Shardcall_RegisterCustomTypeId(registry_, Text("misuse." + std::to_string(N() % 5)),
                                             Text("cpu"), c_.Chance(95) ? &id : nullptr, nullptr));
        return;
      }
      case 6: {
        char config[16] = {};
        if (c_.Ok(Shardcall_EncodeInspectShardingCallback(
                c_.Chance(90) ? Inspect : nullptr, Drawn(), c_.Chance(95) ? config : nullptr))) {
          c_.Ok(Shardcall_ForgetInspectShardingCallback(config));
        }
        c_.Ok(Shardcall_ForgetInspectShardingCallback(c_.Chance(50) ? config : nullptr));
        return;
      }
      case 7: return Run(c_.Chance(20));
      case 8: return Live();
      case 9: {
        // Trials are processes of their own, so there are few.
        Shardcall_CheckOptions check = Sized<Shardcall_CheckOptions>();
        check.registry = registry_;
        check.deadline_s = c_.Chance(80) ? 5 : 1.0 * N();
        int32_t holds = 0;
        Shardcall_Text* json = nullptr;
        const char* target = c_.Chance(2) ? "same" : c_.Chance(50) ? nullptr : "nobody";
        if (c_.Ok(Shardcall_CheckRule(target, c_.Chance(90) ? &check : nullptr,
                                      c_.Chance(95) ? &holds : nullptr,
                                      c_.Chance(95) ? &json : nullptr))) {
          Shardcall_Text_Destroy(json);
        }
        return;
      }
      default: return Nulls();
    }
  }

  Shardcall_Registry* registry_ = nullptr;
  std::deque<Behaviour> behaviours_;
  std::vector<Shardcall_RelatedSize> sizes_;
  std::vector<Shardcall_Range> ranges_;
};

}  // namespace

void MisuseCEntries(Caller& c) { Objects(c).Run(); }

}  // namespace shardcall::misuse
