// SPDX-License-Identifier: Apache-2.0
// Registrations of every kind in any order, and questions about what came of them.
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

void Untyped(void*, const void**) {}
void OtherUntyped(void*, const void**) {}

constexpr char kReference[] =
    "HloModule r\nENTRY e { x = f32[4,6] parameter(0) ROOT y = f32[4,6] add(x, x) }";

class Registering {
 public:
  explicit Registering(Caller& c) : c_(c) {
    if (!c_.Chance(30)) return;
    c_.Ok(RegisterBuiltinTargets(r_.rules));
    c_.Ok(RegisterBuiltinHandlers(r_.handlers));
    c_.Ok(RegisterBuiltinLowerings(r_.lowerings));
  }

  void Run() {
    const int64_t steps = c_.Int(5, 40);
    for (int64_t k = 0; k < steps; ++k) {
      const size_t rules = r_.rules.List().size(), handlers = r_.handlers.List().size();
      const size_t lowerings = r_.lowerings.List().size();
      nested_ = false;
      if (Register() || nested_) continue;
      FuzzRequire(r_.rules.List().size() == rules && r_.handlers.List().size() == handlers &&
                      r_.lowerings.List().size() == lowerings,
                  "what is refused is not registered",
                  absl::StrCat("rules ", rules, " -> ", r_.rules.List().size(), ", handlers ",
                               handlers, " -> ", r_.handlers.List().size()));
    }
    Ask();
  }

 private:
  RuleText Text() {
    RuleText t;
    t.rule = c_.Rule();
    const auto factors = [&] {
      std::vector<std::string> out;
      while (c_.Chance(15))
        out.push_back(c_.random().Pick(std::vector<std::string>{"a", "b", "z", ""}));
      return out;
    };
    t.need_replication = factors();
    t.permutation = factors();
    t.blocked = factors();
    for (const std::string& f : factors()) t.reduction.push_back({f, PartialOp::kSum});
    for (const std::string& f : factors()) t.pad.push_back({f, 1.0 * c_.Number()});
    for (const std::string& f : factors()) t.sizes.push_back({f, c_.Number()});
    return t;
  }
  std::string Config() { return c_.Chance(80) ? "" : c_.Name(); }
  HandlerEntry Entry() {
    HandlerEntry e;
    e.target = c_.Name();
    if (c_.Chance(20)) e.platform = c_.Name();
    if (c_.Chance(20)) e.api_version = static_cast<int>(c_.Number());
    e.own_version_only = c_.Chance(30);
    e.backend_config = Config();
    if (c_.Chance(90)) {
      e.host = [](const HandlerContext&, absl::Span<const BufferView>,
                  absl::Span<const BufferView>) { return absl::OkStatus(); };
    }
    while (c_.Chance(30)) e.functions.push_back(c_.Chance(50) ? nullptr : this);
    return e;
  }
  VjpSpec Vjp() {
    VjpSpec v;
    if (c_.Chance(60)) v.target = c_.Name();
    if (c_.Chance(40)) v.computation = c_.Chance(50) ? kReference : c_.Name();
    while (c_.Chance(60)) {
      v.arguments.push_back(
          {static_cast<VjpArgument::Kind>(c_.Int(0, 2)), static_cast<int>(c_.Number())});
    }
    while (c_.Chance(50)) v.gradients.push_back(static_cast<int>(c_.Number()));
    while (c_.Chance(10)) v.pad.push_back({c_.Name(), 0});
    return v;
  }
  std::string Manifest() {
    std::string out = "{\"targets\": [";
    const int64_t n = c_.Int(0, 3);
    for (int64_t k = 0; k < n; ++k) {
      absl::StrAppend(&out, k > 0 ? ", " : "", "{\"name\": \"", c_.Chance(90) ? "m" : "",
                      c_.Int(0, 3), "\"");
      if (c_.Chance(80)) absl::StrAppend(&out, ", \"rule\": \"a b -> a b\"");
      if (c_.Chance(10)) absl::StrAppend(&out, ", \"batch_dims\": ", c_.Number());
      if (c_.Chance(10)) absl::StrAppend(&out, ", \"kernel\": \"fft\"");
      if (c_.Chance(10)) absl::StrAppend(&out, ", \"batching\": \"leading\"");
      if (c_.Chance(5)) absl::StrAppend(&out, ", \"symbol\": \"none\"");
      if (c_.Chance(5)) absl::StrAppend(&out, ", \"oops\": [[[]]]");
      out += "}";
    }
    absl::StrAppend(&out, "]", c_.Chance(10) ? ", \"library\": \"none.so\"" : "",
                    c_.Chance(10) ? ", \"lowerings\": [{\"name\": \"x\", \"target\": \"t\"}]" : "",
                    c_.Chance(95) ? "}" : "");
    return out;
  }

  bool Register() {
    switch (c_.Int(0, 17)) {
      case 0:
      case 1: return c_.Ok(r_.rules.RegisterRule(c_.Name(), Text(), Config()));
      case 2: {
        std::vector<RuleAlternative> all(c_.Int(0, 3));
        for (RuleAlternative& a : all) {
          a.text = Text();
          if (c_.Chance(30)) a.types = c_.Chance(50) ? "T -> T" : c_.Name();
        }
        return c_.Ok(r_.rules.RegisterRules(c_.Name(), std::move(all), Config()));
      }
      case 3:
        return c_.Ok(r_.rules.RegisterBatchPartitionable(c_.Name(), static_cast<int>(c_.Number()),
                                                         Config()));
      case 4: return c_.Ok(r_.RegisterCustomCallPartitioner(c_.Name(), {}, c_.Chance(50)));
      case 5:
        return c_.Ok(r_.rules.RegisterShapeInference(
            c_.Name(), c_.Chance(10) ? ShapeFunction() : [this](const ShapeRequest& call) {
              if (!c_.MayThrow()) return absl::StatusOr<const Shape*>(absl::UnknownError("no"));
              const bool none = call.operands.empty() || c_.Chance(10);
              return absl::StatusOr<const Shape*>(none ? nullptr : call.operands[0]);
            }));
      case 6: return c_.Ok(r_.rules.RegisterVjp(c_.Name(), Vjp()));
      case 7:
        return c_.Ok(r_.rules.RegisterBatching(
            c_.Name(),
            {static_cast<BatchingSpec::Kind>(c_.Int(0, 3)), c_.Chance(70) ? "" : c_.Name()}));
      case 8:
        return c_.Ok(
            RegisterPartitionLike(c_.Name(), c_.Chance(70) ? kReference : c_.Name(), &r_.rules));
      case 9:
      case 10: return c_.Ok(r_.handlers.Register(Entry()));
      case 11:
        return c_.Ok(r_.RegisterCustomCallTarget(
            c_.Name(),
            c_.Chance(80)   ? reinterpret_cast<const void*>(Untyped)
            : c_.Chance(50) ? reinterpret_cast<const void*>(OtherUntyped)
                            : nullptr,
            c_.Chance(80) ? "cpu" : c_.Name(),
            c_.Chance(90) ? kUntypedFfi : static_cast<int>(c_.Number()),
            static_cast<CustomCallTraits>(c_.Chance(90) ? 0 : c_.Int(0, 3))));
      case 12:
        return c_.Ok(r_.RegisterCustomCallHandler(
            c_.Chance(80) ? "cpu" : c_.Name(),
            c_.Chance(10) ? CustomCallHandler() : [this](const CustomCallTarget& target) {
              // It may register more, though not for ever.
              if (depth_ < 2 && c_.Chance(20)) {
                ++depth_;
                nested_ = c_.Ok(r_.handlers.Register(Entry())) || nested_;
                --depth_;
              }
              return c_.MayThrow() ? absl::OkStatus()
                                   : ToStatus({.code = "E141", .message = target.name});
            }));
      case 13: {
        int64_t id = c_.Chance(80) ? 0 : c_.Number();
        return c_.Ok(r_.RegisterCustomTypeId(absl::StrCat("misuse.", c_.Int(0, 9)),
                                             c_.Chance(95) ? &id : nullptr,
                                             c_.Chance(90) ? "cpu" : c_.Name()));
      }
      case 14:
        return c_.Ok(r_.RegisterCustomTypeIdHandler(
            "cpu", c_.Chance(10) ? CustomTypeIdHandler() : [this](absl::string_view, int64_t) {
              return c_.MayThrow() ? absl::OkStatus() : ToStatus({.code = "E141", .message = "no"});
            }));
      case 15:
        return c_.Ok(LoadManifest(Manifest(), "manifest", &r_.rules,
                                  c_.Chance(80) ? &r_.handlers : nullptr, &r_.lowerings));
      case 16:
        return c_.Ok(LoadPlugin(c_.Chance(50) ? "/dev/null" : c_.Name().substr(0, 100), &r_.rules,
                                &r_.handlers, &r_.lowerings));
      default:
        return c_.Ok(r_.lowerings.Register(
            c_.Name(), c_.Chance(50) ? "Host" : "",
            c_.Chance(10) ? LoweringFunction()
                          : [this](const LoweringRequest& call) -> LoweringAnswer {
              if (!c_.MayThrow()) return Skip();
              LoweredCall out{.target = c_.Name(), .api_version = c_.Chance(80) ? 4 : c_.Number()};
              while (c_.Chance(20)) out.operand_types.push_back(c_.Type());
              while (c_.Chance(20)) out.take.push_back(static_cast<int>(c_.Number()));
              while (c_.Chance(20)) {
                out.results.push_back(c_.Chance(50) || call.operands.empty() ? nullptr
                                                                             : call.operands[0]);
              }
              out.column_major = c_.Chance(20);
              return out;
            }));
    }
  }

  void Ask() {
    Context context;
    const auto shapes = [&] {
      std::vector<const Shape*> out(c_.Int(0, 3));
      for (const Shape*& s : out) s = context.MakeArray(ElementType::kF32, {8, 12});
      return out;
    };
    for (const TargetRule* rule : r_.rules.List()) {
      if (rule->level != RuleLevel::kCallbacks && c_.Chance(50)) {
        c_.Ok(rule->Instantiate(Config(), shapes(), shapes()));
      }
      if (c_.Chance(20)) c_.Ok(r_.rules.InferShape({&context, rule->target, Config(), shapes()}));
    }
    for (const char* platform : {"cpu", "gpu", "nowhere"}) c_.Ok(r_.CustomCallTargets(platform));
    c_.Ok(r_.handlers.Find(c_.Name(), c_.Chance(80) ? "Host" : c_.Name(), Config(), c_.Name()));
    auto module = ParseModule(std::make_shared<const std::string>(c_.Program(c_.Name())),
                              std::make_shared<Context>(), "program");
    if (!c_.Ok(module)) return;
    auto lowered = LowerCalls(*std::move(module), r_.lowerings, "Host");
    if (!c_.Ok(lowered)) return;
    PartitionOptions options;
    options.targets = &r_.rules;
    const auto program = Partition(*std::move(lowered), options);
    if (c_.Ok(program)) DemandRoundTrip((*program)->local.module);
  }

  Caller& c_;
  Registry r_;
  int depth_ = 0;
  bool nested_ = false;  // a handler has registered something itself
};

}  // namespace

void MisuseRegistries(Caller& c) { Registering(c).Run(); }

}  // namespace shardcall::misuse
