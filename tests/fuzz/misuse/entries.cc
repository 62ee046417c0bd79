// SPDX-License-Identifier: Apache-2.0
// The entry points that take a program or a call whole: partition, explain, verify,
// check, convert, write and read back; with what was moved from, cut short or is
// another's.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/api/partition_call.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/targets.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/import/remesh.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/partitioner/runtime/io/shard_io.h"
#include "shardcall/sharding/base/status.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

constexpr char kReference[] =
    "HloModule r\nENTRY e { x = f32[4,6] parameter(0) ROOT y = f32[4,6] add(x, x) }";

// A file of this process, gone at its end.
const std::string& ScratchFile() {
  static const std::string* const file = [] {
    auto* path = new std::string(absl::StrCat(std::filesystem::temp_directory_path().string(),
                                              "/misuse_", getpid(), ".npz"));
    std::atexit([] { std::remove(ScratchFile().c_str()); });
    return path;
  }();
  return *file;
}

class Entries {
 public:
  explicit Entries(Caller& c) : c_(c) {
    c_.Ok(RegisterBuiltinTargets(r_.rules));
    c_.Ok(RegisterBuiltinHandlers(r_.handlers));
    c_.Ok(RegisterInspectSharding(r_.rules));
    c_.Ok(r_.rules.RegisterRule("t", {.rule = "a b -> a b"}));
    HandlerEntry entry;
    entry.target = "t";
    entry.host = [](const HandlerContext&, absl::Span<const BufferView>,
                    absl::Span<const BufferView>) { return absl::OkStatus(); };
    c_.Ok(r_.handlers.Register(entry));
  }
  void Run() {
    const int64_t steps = c_.Int(1, 6);
    for (int64_t k = 0; k < steps; ++k) Step();
  }

 private:
  absl::StatusOr<Module> Read() {
    const bool quick = c_.Chance(30);
    return ParseModule(std::make_shared<const std::string>(quick ? kReference : c_.Program("t")),
                       std::make_shared<Context>(), c_.Chance(90) ? "x.hlo" : c_.Name(),
                       c_.Chance(50) ? &r_.rules : nullptr);
  }
  PartitionOptions Options() {
    PartitionOptions o;
    o.targets = c_.Chance(97) ? &r_.rules : nullptr;
    o.num_partitions = c_.Chance(80) ? 0 : c_.Number();
    o.propagate = c_.Chance(80);
    o.verify_output = c_.Chance(90);
    while (c_.Chance(20)) o.allow_replicate.push_back(c_.Chance(50) ? "all" : c_.Name());
    if (c_.Chance(20)) o.dump = [](absl::string_view, const std::string&) {};
    if (c_.Chance(5)) o.observe = [](absl::string_view) {};
    return o;
  }
  std::string Operand() {
    static const std::vector<std::string> kTexts = {"f32[8,12] [{'x'}, {}]",
                                                    "f32[8,12]",
                                                    "f32[12] [{}]",
                                                    "f32[8,12] [{'x'}]",
                                                    "f32[",
                                                    "",
                                                    "token[]",
                                                    "(f32[2], f32[3])",
                                                    "f32[8,12] [{'q'}, {}]",
                                                    "f32[0,12] [{'x'}, {'y'}]",
                                                    "f32[1099511627776,1099511627776] [{'x'}, {}]",
                                                    "f32[8,12]{0,1}",
                                                    "f32[8,12]\n} evil",
                                                    std::string("f32[8]\0x", 8)};
    return c_.Chance(60) ? kTexts[c_.Int(0, 2)] : c_.random().Pick(kTexts);
  }
  SpecifiedCall Call() {
    SpecifiedCall call;
    call.target = c_.Chance(60) ? "t" : c_.Name();
    call.mesh = c_.Chance(80) ? "'x'=2,'y'=4" : c_.Name();
    call.operands.resize(c_.Chance(99) ? c_.Int(0, 2) : 10000);
    for (std::string& o : call.operands) o = Operand();
    while (c_.Chance(40)) call.results.push_back(Operand());
    if (c_.Chance(20)) call.backend_config = c_.Name();
    call.has_side_effect = c_.Chance(10);
    return call;
  }
  std::vector<Tensor> Inputs(absl::Span<const LeafShape> leaves) {
    std::vector<Tensor> inputs = RandomInputs(leaves, static_cast<uint64_t>(c_.Number()));
    if (c_.Chance(10) && !inputs.empty()) inputs.pop_back();
    if (c_.Chance(10)) inputs.push_back(Tensor());
    if (c_.Chance(10) && !inputs.empty()) inputs[0] = Tensor::Zeros(c_.Type(), {2, 3});
    return inputs;
  }

  void Explained() {
    auto module = Read();
    if (!c_.Ok(module)) return;
    const auto program = Partition(*std::move(module), Options());
    if (c_.Chance(20)) {                                             // what was moved from
      PrintModule(*module);                                          // NOLINT
      c_.Ok(VerifyModule(*module, "x.hlo"));                         // NOLINT
      c_.Ok(WriteStablehloBytecode(*module));                        // NOLINT
      c_.Ok(WriteModuleProto(*module));                              // NOLINT
      c_.Ok(Remesh({}, &*module));                                   // NOLINT
      c_.Ok(Partition(*std::move(module), {.targets = &r_.rules}));  // NOLINT
    }
    if (!c_.Ok(program)) return;
    Explain(**program, {}, static_cast<ExplainFormat>(c_.Int(0, 2)));
    ReportJson(**program, {});
    const auto terms = ParseContract(c_.Chance(60)   ? "all-gather=0, bytes<=1GiB"
                                     : c_.Chance(50) ? "x<=1e999"
                                                     : c_.Name());
    if (c_.Ok(terms)) c_.Ok(CheckContract(*terms, **program));
    RunOptions options;
    options.partition = Options();
    options.handlers = c_.Chance(90) ? &r_.handlers : nullptr;
    options.deadline = c_.Chance(90) ? absl::Seconds(20) : absl::Seconds(c_.Int(-1, 1));
    options.check_replicas = c_.Chance(20);
    options.overlap = c_.Chance(80);
    options.backend = static_cast<Backend>(c_.Chance(90) ? 0 : c_.Int(1, 2));
    if (options.backend != Backend::kInProcess) return;  // those want a communicator
    const auto lowered = LowerLocal(**program, options);
    if (!c_.Ok(lowered)) return;
    std::vector<LeafShape> leaves;
    for (const LocalState* s : (*program)->local.parameters) {
      leaves.push_back(s == nullptr ? LeafShape{ElementType::kToken, {}, {}}
                                    : LeafShape{ElementType::kF32, {8, 12}, {}});
    }
    c_.Ok(RunLowered(**program, *lowered, Inputs(leaves), options));
    c_.Ok(Overlapped((*program)->local.module, options.schedule));
  }

  void Converted() {
    auto module = Read();
    if (!c_.Ok(module)) return;
    c_.Ok(WriteStablehloBytecode(*module));
    const auto form = static_cast<ProtoForm>(c_.Int(0, 2));
    auto bytes = WriteModuleProto(*module, form);
    if (!c_.Ok(bytes)) return;
    if (c_.Chance(50) && !bytes->empty()) bytes->resize(c_.Int(0, bytes->size() - 1));
    if (c_.Chance(30) && !bytes->empty())
      (*bytes)[c_.Int(0, bytes->size() - 1)] ^= 1 << c_.Int(0, 7);
    const auto again = ReadModuleProto(*bytes, std::make_shared<Context>(), "x.pb");
    if (c_.Ok(again) && c_.Ok(VerifyModule(*again, "x.pb"))) DemandRoundTrip(*again);
    std::vector<AxisSize> sizes;
    while (c_.Chance(60)) {
      sizes.push_back({c_.Chance(70) ? "x0" : c_.Name(), c_.Chance(70) ? 2 : c_.Number()});
    }
    if (c_.Ok(Remesh(sizes, &*module))) c_.Ok(Partition(*std::move(module), Options()));
  }

  void Verified() {
    auto module = Read();
    if (!c_.Ok(module) || !c_.Ok(VerifyModule(*module, "x.hlo", &r_.rules))) return;
    const std::vector<LeafShape> leaves = ParameterLeaves(*module);
    RunOptions options;
    options.partition = Options();
    options.handlers = c_.Chance(90) ? &r_.handlers : nullptr;
    options.deadline = absl::Seconds(20);
    switch (c_.Int(0, 3)) {
      case 0: {
        const auto result = Verify(*std::move(module), options, 1,
                                   c_.Chance(50) ? std::vector<Tensor>() : Inputs(leaves), nullptr);
        if (c_.Ok(result)) VerifyJson(*result);
        return;
      }
      case 1:
        c_.Ok(EvaluateGlobally(*module, Inputs(leaves),
                               static_cast<int>(c_.Chance(80) ? c_.Int(1, 4) : c_.Int(-2, 0)),
                               options.handlers, options.deadline));
        return;
      case 2:
        c_.Ok(EvaluateWithin(*module, Inputs(leaves), options.handlers, absl::Seconds(20)));
        return;
      default: {
        auto program = Compile(*std::move(module), options);
        if (!c_.Ok(program)) return;
        const Executable taken = *std::move(program);
        c_.Ok(taken.Execute(Inputs(leaves)));
        c_.Ok(program->Execute(Inputs(leaves)));  // NOLINT: what was moved from
      }
    }
  }

  void Files() {
    std::vector<Tensor> tensors;
    while (c_.Chance(70)) {
      const ElementType type = c_.Type();
      if (!IsArrayType(type)) continue;
      tensors.push_back(Tensor::Zeros(type, {c_.Int(0, 3), 2}));
    }
    if (c_.Chance(5)) tensors.push_back(Tensor());
    const std::string prefix = c_.Chance(80) ? "arg" : c_.Name();
    const std::string path = c_.Chance(95) ? ScratchFile() : c_.Chance(50) ? "/no/such/x.npz" : "";
    if (!c_.Ok(WriteNpz(path, prefix, tensors))) return;
    std::vector<LeafShape> leaves;
    for (const Tensor& t : tensors) {
      leaves.push_back({t.type(), t.dims(), {}});
      if (c_.Chance(10)) leaves.back().type = c_.Type();
      if (c_.Chance(10)) leaves.back().dims = {c_.Number()};
    }
    if (c_.Chance(10)) leaves.push_back({ElementType::kF32, {c_.Number()}, {}});
    if (c_.Chance(10) && leaves.size() > 1) std::swap(leaves[0], leaves[1]);
    c_.Ok(ReadNpz(path, c_.Chance(90) ? prefix : "arg", leaves));
  }

  void Sharded() {
    Context context;
    const BaseMesh* mesh = InternBaseMesh(context, {4, 2}, DeviceOrder::Identity(8));
    ShardingBuilder b(mesh, static_cast<int>(c_.Int(0, 2)));
    if (!b.dims.empty()) b.dims[0] = {{0, 1, 4}};
    const Sharding* s = b.Intern(context);
    const std::vector<int64_t> dims(b.dims.size(), 10);
    const LocalState* state =
        CanonicalState(context, s, context.MakeArray(ElementType::kF32, dims));
    const Tensor whole = c_.Chance(80) ? Tensor::Zeros(ElementType::kF32, dims)
                                       : Tensor::Zeros(ElementType::kS8, {3});
    std::vector<Tensor> parts;
    for (int d = 0; d < 8; ++d) {
      const int64_t device = c_.Chance(95) ? d : c_.Number();
      auto part = ShardForDevice(whole, *state, device, PadFill::kPoison);
      if (c_.Ok(part)) parts.push_back(*std::move(part));
    }
    if (c_.Chance(10)) parts.push_back(Tensor());
    c_.Ok(Unshard(parts, *state, c_.Chance(90) ? dims : std::vector<int64_t>{3}));
    const std::vector<const LocalState*> states(c_.Chance(80) ? 1 : c_.Int(0, 2), state);
    const int64_t devices = c_.Chance(80) ? 8 : c_.Number();
    if (devices > 0 && devices < int64_t{1} << 16) {
      c_.Ok(ShardForDevices({whole}, states, devices, PadFill::kZero));
    }
  }

  void Asked() {
    switch (c_.Int(0, 7)) {
      case 0: {
        const SpecifiedCall call = Call();
        c_.Ok(CanonicalSharding(call, c_.Chance(50) ? "[{'x'}, {}]" : c_.ShardingText()));
        return;
      }
      case 1:
        c_.Ok(RuleOfReference(c_.Chance(50) ? kReference : c_.Program("t"), r_.rules));
        return;
      case 2:
        c_.Ok(ReferenceHandler(c_.Name(), c_.Chance(50) ? kReference : c_.Name(),
                               c_.Chance(50) ? &r_.rules : nullptr,
                               c_.Chance(50) ? &r_.handlers : nullptr));
        return;
      case 3: c_.Ok(RegistriesForCheck(c_.Name(), r_.rules, r_.handlers)); return;
      case 4: {
        c_.Ok(BackendFromName(c_.Name()));
        FuzzRequire(!ForgetInspectShardingCallback(c_.Name()), "nobody has encoded this", "");
        const InspectShardingCallback callback([this](absl::string_view bytes) {
          c_.Ok(ReadShardingProto(bytes, "a sharding"));
          return c_.MayThrow() ? absl::OkStatus() : absl::UnknownError("");
        });
        SpecifiedCall call = Call();
        call.target = "InspectSharding";
        call.backend_config = callback.backend_config();
        c_.Ok(PartitionCall(call, r_.rules));
        return;
      }
      case 5:
        c_.Ok(ReadShardingProto(c_.Name(), "a sharding"));
        c_.Ok(ReadShapeProto(c_.Name(), std::make_shared<Context>(), "a shape"));
        return;
      case 6:
        DescribeTargets(r_.rules, r_.handlers, c_.Chance(50) ? &r_.lowerings : nullptr);
        c_.Ok(r_.PassToPjrt(c_.Name(), nullptr));
        c_.Ok(r_.PassHandlerToPjrt(c_.Name(), c_.Chance(50) ? "" : c_.Name(), nullptr));
        c_.Ok(r_.RegisterCustomCallTarget(c_.Name(), abi::HandlerBundle{}));
        return;
      default: {
        // Trials are processes of their own, so there are few.
        if (!c_.Chance(3)) return;
        TargetCheck check{.target = c_.Chance(60) ? "t" : c_.Name(),
                          .vjp = c_.Chance(30),
                          .deadline = absl::Seconds(5)};
        const auto checked = CheckTarget(check, r_.rules, r_.handlers);
        if (c_.Ok(checked)) RuleCheckJson(*checked);
        return;
      }
    }
  }

  void Step() {
    switch (c_.Int(0, 6)) {
      case 0: return Explained();
      case 1: return Converted();
      case 2: return Verified();
      case 3: return Files();
      case 4: return Sharded();
      case 5: {
        const SpecifiedCall call = Call();
        const auto made = PartitionCall(call, r_.rules);
        if (c_.Ok(made)) DemandRoundTrip(made->program->local.module);
        return;
      }
      default: return Asked();
    }
  }

  Caller& c_;
  Registry r_;
};

}  // namespace

void MisuseEntries(Caller& c) { Entries(c).Run(); }

}  // namespace shardcall::misuse
