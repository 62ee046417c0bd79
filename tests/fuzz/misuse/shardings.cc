// SPDX-License-Identifier: Apache-2.0
// The vocabulary (sharding/): meshes, device orders, texts, rules against shapes,
// conversions, and attributes of calls.
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/check_sharding.h"
#include "shardcall/sharding/codes.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/reshard/reshard.h"
#include "shardcall/sharding/rule/rule.h"
#include "shardcall/sharding/rule/sdy_text.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

class Vocabulary {
 public:
  explicit Vocabulary(Caller& c) : c_(c) {}

  void Run() {
    const int64_t steps = c_.Int(5, 40);
    for (int64_t k = 0; k < steps; ++k) Step();
  }

 private:
  std::vector<MeshAxis> Axes() {
    std::vector<MeshAxis> axes(c_.Int(0, c_.Chance(2) ? 300 : 3));
    for (MeshAxis& a : axes) {
      a.name = c_.Chance(80) ? absl::StrCat("a", c_.Int(0, 4)) : c_.Name();
      a.size = c_.Chance(80) ? c_.Int(1, 4) : c_.Number();
    }
    return axes;
  }
  Mesh AnyMesh() {
    absl::StatusOr<Mesh> mesh = Mesh::Create(c_.Chance(70) ? "mesh" : c_.Name(), Axes());
    if (!c_.Ok(mesh)) return Mesh();
    if (c_.Chance(10)) mesh->maximal_device = c_.Number();
    if (c_.Chance(10)) {
      auto order = DeviceOrder::Iota(c_.Numbers(3), c_.Numbers(3));
      if (c_.Ok(order)) mesh->order = *std::move(order);
    }
    return *std::move(mesh);
  }
  const Shape* AnyShape() {
    if (c_.Chance(3)) return nullptr;
    if (c_.Chance(5)) return context_.MakeToken();
    std::vector<int64_t> dims(c_.Chance(95) ? c_.Int(0, 3) : c_.Int(60, 300));
    for (int64_t& d : dims) d = c_.Int(0, dims.size() > 4 ? 1 : 8);
    const Shape* shape = context_.MakeArray(c_.Type(), dims);
    return c_.Chance(3) ? context_.MakeTuple({shape, shape}) : shape;
  }
  std::vector<const Shape*> Shapes() {
    std::vector<const Shape*> out(c_.Chance(99) ? c_.Int(0, 3) : 10000);
    for (const Shape*& s : out) s = AnyShape();
    return out;
  }
  int Rank() {
    return static_cast<int>(c_.Chance(90) ? c_.Int(0, 3) : std::min<int64_t>(c_.Number(), INT_MAX));
  }
  RuleText Text() {
    RuleText t{.rule = c_.Rule()};
    if (c_.Chance(20)) t.need_replication = {c_.Chance(80) ? "b" : c_.Name()};
    if (c_.Chance(20)) t.permutation = {c_.Chance(80) ? "a" : c_.Name()};
    if (c_.Chance(20)) t.blocked = {c_.Chance(80) ? "a" : c_.Name()};
    if (c_.Chance(20)) t.reduction = {{"b", static_cast<PartialOp>(c_.Int(0, 9))}};
    if (c_.Chance(20)) t.pad = {{"b", c_.Chance(80) ? 0 : std::nan("")}};
    if (c_.Chance(20)) t.sizes = {{"a", c_.Number()}};
    return t;
  }
  NamedAxisRef AxisRefByName() {
    NamedAxisRef a{.name = c_.Chance(80) ? absl::StrCat("a", c_.Int(0, 4)) : c_.Name()};
    if (c_.Chance(20)) a.pre_size = c_.Number();
    if (c_.Chance(20)) a.size = c_.Number();
    return a;
  }
  NamedSharding Named(const Mesh& mesh) {
    NamedSharding s;
    if (c_.Chance(50)) s.mesh_name = c_.Chance(80) ? mesh.name : c_.Name();
    if (c_.Chance(50)) s.mesh = std::make_shared<const Mesh>(mesh);
    s.dims.resize(c_.Int(0, 3));
    for (NamedSharding::Dim& d : s.dims) {
      while (c_.Chance(40)) d.axes.push_back(AxisRefByName());
      d.open = c_.Chance(20);
      if (c_.Chance(10)) d.priority = static_cast<int>(c_.Number());
    }
    while (c_.Chance(15)) s.replicated.push_back(AxisRefByName());
    while (c_.Chance(15)) s.unreduced.push_back(AxisRefByName());
    while (c_.Chance(15)) s.manual.push_back(AxisRefByName());
    s.unreduced_op = static_cast<PartialOp>(c_.Chance(90) ? 0 : c_.Int(0, 6));
    return s;
  }
  HloSharding OfHlo() {
    static const std::vector<std::string> kTexts = {"{devices=[2,2]<=[4]}",
                                                    "{devices=[2,2]<=[2,2]T(1,0)}",
                                                    "{devices=[4]0,1,2,3}",
                                                    "{devices=[2]5,5}",
                                                    "{mesh['a0'=2,'a1'=2], [{'a0'}, {?}]}",
                                                    "{maximal_mesh[device_id=3]}",
                                                    "{{replicated}, {devices=[2]<=[2]}}",
                                                    "{devices=[3,2]<=[6] last_tile_dims={manual}}",
                                                    "{unreduced}",
                                                    "{unknown}",
                                                    "{replicated shard_as 1}"};
    auto parsed = ParseHloSharding(c_.Chance(50) ? c_.ShardingText() : c_.random().Pick(kTexts));
    return c_.Ok(parsed) ? *std::move(parsed) : HloSharding();
  }

  void Convert() {
    MeshCollector collector;
    const Mesh mesh = AnyMesh();
    if (c_.Chance(10)) collector.AddBase(AnyMesh());  // before anything else is added
    while (c_.Chance(60)) collector.AddNamed(c_.Chance(80) ? mesh : AnyMesh());
    const HloSharding of_hlo = OfHlo();
    if (c_.Chance(70)) c_.Ok(collector.AddTiling(of_hlo));
    const NamedSharding named = Named(mesh);
    if (c_.Chance(50)) c_.Ok(collector.AddTiling(named));
    const auto set = collector.Finish(context_, c_.Chance(70) ? 0 : c_.Number());
    if (!c_.Ok(set)) return;
    set->FindMesh(c_.Name());
    c_.Ok(set->Place(c_.Chance(50) ? mesh : AnyMesh()));
    c_.Ok(set->AxesByName(mesh, {c_.Name(), "a0"}));
    Show(*set, set->FromHlo(of_hlo, Rank()));
    Show(*set, set->FromNamed(named, Rank()));
    if (set->num_devices() < (int64_t{1} << 20)) {
      DeclaredMesh(*set->main());
    }
  }
  void Show(const MeshSet& set, const absl::StatusOr<ShardingConstraint>& constraint) {
    if (!c_.Ok(constraint)) return;
    c_.Ok(ToHloSharding(*constraint));
    c_.Ok(ToHloShardingV3(*constraint));
    c_.Ok(ToNamedSharding(*constraint, c_.Chance(50)));
    if (constraint->unknown) return;
    const Sharding* s = ToSharding(context_, *constraint);
    if (s == nullptr) return;
    const auto again = ToHloShardingV3(*s);
    if (!c_.Ok(again)) return;
    const auto parsed = ParseHloSharding(again->Print());
    FuzzRequire(parsed.ok() && *parsed == *again, "a sharding that is printed is read again",
                again->Print());
    if (last_ != nullptr && last_->mesh() == s->mesh() && last_->rank() == s->rank() &&
        s->partial().empty() && last_->partial().empty() && !s->is_maximal() &&
        !last_->is_maximal() && s->manual() == last_->manual() && set.num_devices() <= 64) {
      const std::vector<int64_t> dims(s->rank(), 12);
      const Shape* shape = context_.MakeArray(ElementType::kF32, dims);
      FuzzRequire(!DescribePlan(PlanReshard(context_, shape, last_, s)).empty() || last_ == s ||
                      PlanReshard(context_, shape, last_, s).moves.empty(),
                  "a plan can be told", "");
    }
    last_ = s;
  }

  void Step() {
    switch (c_.Int(0, 13)) {
      case 0: c_.Ok(DeviceOrder::Iota(c_.Numbers(4), c_.Numbers(4))); return;
      case 1: {
        std::vector<int64_t> ids = c_.Numbers(6);
        if (c_.Chance(40)) {
          for (size_t k = 0; k < ids.size(); ++k) ids[k] = static_cast<int64_t>(k);
        }
        const auto order = DeviceOrder::List(ids);
        if (c_.Ok(order) && order->num_devices() > 0) {
          FuzzRequire(order->PositionOf(order->DeviceAt(0)) == 0, "an order is a permutation", "");
        }
        return;
      }
      case 2: {
        const Mesh mesh = AnyMesh();
        NamedSharding s = Named(mesh);
        if (c_.Ok(CheckAndNormalize(mesh, &s))) SdyShardingText(s);
        SdyMeshText(mesh);
        return;
      }
      case 3:
      case 4: return Convert();
      case 5: {
        const auto rule = ParseRule(Text());
        if (!c_.Ok(rule)) return;
        const auto made = InstantiateRule(**rule, Shapes(), Shapes());
        if (c_.Ok(made)) FuzzRequire(!made->ToSdyText().empty(), "a rule is printed", "");
        return;
      }
      case 6:
        c_.Ok(
            BatchRule(static_cast<int>(c_.Chance(80) ? c_.Number() : INT_MIN), Shapes(), Shapes()));
        return;
      case 7: {
        const std::string text =
            c_.Chance(50) ? "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=12}>" : c_.Name();
        c_.Ok(ParseSdyRule(text, Shapes(), Shapes()));
        return;
      }
      case 8:
        c_.Ok(ParseSdyShardings(c_.Name()));
        c_.Ok(ParseSdySharding(c_.ShardingText()));
        c_.Ok(ParseSdyManualAxes(c_.Name()));
        c_.Ok(ParseSdyMeshes(c_.Name()));
        return;
      case 9: {
        const BaseMesh* mesh = InternBaseMesh(context_, {4, 2}, DeviceOrder::Identity(8));
        ShardingBuilder b(c_.Chance(97) ? mesh : nullptr, Rank());
        for (AxisList& d : b.dims) {
          while (c_.Chance(30)) d.push_back(Part());
        }
        while (c_.Chance(10)) b.partial.push_back(Part());
        while (c_.Chance(10)) b.manual.push_back(Part());
        if (c_.Chance(10)) b.maximal_device = c_.Number();
        if (c_.Chance(10)) b.partial_op = static_cast<PartialOp>(c_.Int(0, 255));
        const Sharding* s = b.Intern(context_);
        FuzzRequire(c_.Ok(CheckSharding(b)) == (s != nullptr),
                    "what CheckSharding refuses is no sharding", "");
        if (s == nullptr) return;
        c_.Ok(ToHloSharding(*s));
        c_.Ok(ToNamedSharding(*s, c_.Chance(50), c_.Chance(50)));
        const Shape* local = LocalShape(context_, AnyShape(), s);
        FuzzRequire(local == nullptr || !local->ToString().empty(), "a shape has a text", "");
        return;
      }
      case 10: {
        const auto type = static_cast<ElementType>(c_.Int(0, 255));
        FuzzRequire(ElementTypeFromName(ElementTypeName(type)) == type ||
                        static_cast<int>(type) >= kNumElementTypes || !IsArrayType(type),
                    "a type has its name", "");
        FuzzRequire(ElementTypeBits(type) >= 0 && ElementTypeBytes(type) >= 0, "sizes", "");
        return;
      }
      case 11:
        FuzzRequire(FindCode(c_.Name()) == nullptr, "no name is a code", "");
        DiagnosticCode(c_.Chance(50) ? absl::string_view("E") : absl::string_view());
        HumanBytes(c_.Chance(50) ? -1.0 : std::nan(""));
        return;
      default: {
        static const std::vector<std::string> kConfigs = {"{a = 1 : i64}",
                                                          "{a = [1, 2] : i32}",
                                                          "{a}",
                                                          "{",
                                                          "",
                                                          "{a = \"\\00\"}",
                                                          "[]",
                                                          "null",
                                                          "{a = 1e999 : f32, b = {c = true}}",
                                                          "{a = array<i64: 1, 2>}"};
        const auto map =
            AttributeMapView::Parse(c_.Chance(80) ? c_.random().Pick(kConfigs) : c_.Name());
        if (!c_.Ok(map)) return;
        const std::string name = c_.Chance(50) ? "a" : c_.Name();
        map->Find(name);
        c_.Ok(map->GetInt(name, c_.Number()));
        c_.Ok(map->GetFloat(name, 1));
        c_.Ok(map->GetBool(name, true));
        c_.Ok(map->GetString(name, "x"));
        c_.Ok(map->GetInts(name, {}));
        c_.Ok(map->OnlyKnown({}));
        return;
      }
    }
  }
  AxisRef Part() {
    const auto number = [&] {
      return static_cast<uint32_t>(c_.Chance(90) ? c_.Int(1, 4) : c_.Number());
    };
    return {static_cast<uint16_t>(c_.Chance(90) ? c_.Int(0, 1) : c_.Number()), number(), number()};
  }

  Caller& c_;
  Context context_;
  const Sharding* last_ = nullptr;
};

}  // namespace

void MisuseShardings(Caller& c) { Vocabulary(c).Run(); }

}  // namespace shardcall::misuse
