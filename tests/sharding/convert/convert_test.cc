// SPDX-License-Identifier: Apache-2.0
// All four forms agree device by device with the definition of the text.
#include "shardcall/sharding/convert/convert.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/rule/sdy_text.h"
#include "tests/sharding/corpus.h"

namespace shardcall {
namespace {

// All ways to write n as a product of `length` factors.
std::vector<std::vector<int64_t>> Factorizations(int64_t n, int length) {
  if (length == 0)
    return n == 1 ? std::vector<std::vector<int64_t>>{{}} : decltype(Factorizations(1, 0)){};
  std::vector<std::vector<int64_t>> out;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d != 0) continue;
    for (auto rest : Factorizations(n / d, length - 1)) {
      rest.insert(rest.begin(), d);
      out.push_back(rest);
    }
  }
  return out;
}

// Devices of a tiled sharding in row-major order of its tiles.
std::vector<int64_t> Devices(const HloSharding& s) {
  if (s.is_list()) return s.list;
  const DeviceOrder order = *DeviceOrder::Iota(s.reshape, s.perm);
  std::vector<int64_t> out;
  for (int64_t p = 0; p < order.num_devices(); ++p) out.push_back(order.DeviceAt(p));
  return out;
}

// The tile that each device holds, by the definition of V1.
std::vector<std::vector<int64_t>> TilesByDefinition(const HloSharding& s) {
  const std::vector<int64_t> devices = Devices(s);
  std::vector<std::vector<int64_t>> out(devices.size());
  for (size_t p = 0; p < devices.size(); ++p) {
    std::vector<int64_t> index(s.tile.size());
    int64_t rest = p;
    for (size_t t = s.tile.size(); t-- > 0;) {
      index[t] = rest % s.tile[t];
      rest /= s.tile[t];
    }
    index.resize(s.num_data_dims());
    out[devices[p]] = index;
  }
  return out;
}

std::vector<std::vector<int64_t>> TilesOf(const ShardingConstraint& c) {
  std::vector<std::vector<int64_t>> out;
  for (int64_t d = 0; d < c.mesh->num_devices(); ++d) {
    const int64_t p = c.mesh->order().PositionOf(d);
    std::vector<int64_t>& index = out.emplace_back();
    for (const auto& dim : c.dims) index.push_back(c.mesh->Coordinate(dim.axes, p));
  }
  return out;
}

MeshSet MeshesOf(Context& c, std::vector<HloSharding> tilings, std::vector<Mesh> meshes = {},
                 int64_t n = 0) {
  MeshCollector collector;
  for (const Mesh& m : meshes) collector.AddNamed(m);
  for (const HloSharding& s : tilings) {
    const absl::Status added = collector.AddTiling(s);
    EXPECT_TRUE(added.ok()) << added;
  }
  auto set = collector.Finish(c, n);
  EXPECT_TRUE(set.ok()) << set.status();
  return *set;
}

// Through base mesh and back: V2, V3 and sdy say the same.
void CheckAllForms(const HloSharding& s) {
  Context c;
  const MeshSet set = MeshesOf(c, {s});
  auto constraint = set.FromHlo(s, s.num_data_dims());
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  ASSERT_EQ(TilesOf(*constraint), TilesByDefinition(s)) << s.Print();
  const Sharding* sharding = ToSharding(c, *constraint);

  auto v2 = ToHloSharding(*sharding);
  ASSERT_TRUE(v2.ok()) << v2.status();
  if (v2->kind == HloSharding::Kind::kTiled) {
    ASSERT_EQ(TilesByDefinition(*v2), TilesByDefinition(s)) << s.Print() << v2->Print();
    auto again = ParseHloSharding(v2->Print());
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(again->Print(), v2->Print()) << "not canonical";
    // Manual and unreduced axes are sets: their order within the text may change.
    const bool ordered =
        s.subgroups.empty() || s.subgroups[0] == HloSharding::Subgroup::kReplicated;
    ASSERT_TRUE(s.is_list() || !ordered || v2->Print() == s.Print()) << v2->Print() << s.Print();
    auto back = set.FromHlo(*again, s.num_data_dims());
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(ToSharding(c, *back), sharding);
  }

  auto v3 = ToHloShardingV3(*sharding);
  ASSERT_TRUE(v3.ok()) << v3.status();
  auto read = ParseHloSharding(v3->Print());
  ASSERT_TRUE(read.ok()) << read.status();
  auto from_v3 = set.FromHlo(*read, s.num_data_dims());
  ASSERT_TRUE(from_v3.ok()) << from_v3.status();
  ASSERT_EQ(ToSharding(c, *from_v3), sharding) << v3->Print();

  auto named = ToNamedSharding(*sharding, /*inline_mesh=*/true);
  ASSERT_TRUE(named.ok()) << named.status();
  auto sdy = ParseSdySharding(SdyShardingText(*named));
  ASSERT_TRUE(sdy.ok()) << sdy.status();
  sdy->manual = named->manual;  // sdy text leaves them to the region
  auto from_sdy = set.FromNamed(*sdy, s.num_data_dims());
  ASSERT_TRUE(from_sdy.ok()) << from_sdy.status();
  ASSERT_EQ(ToSharding(c, *from_sdy), sharding) << SdyShardingText(*named);
}

TEST(ConvertTest, EveryIotaTilingOfEightAndTwelveAgreesInAllForms) {
  for (int64_t n : {8, 12}) {
    for (const auto& reshape : Factorizations(n, 3)) {
      if (std::count(reshape.begin(), reshape.end(), 1) == 1) continue;  // covered by others
      std::vector<int64_t> perm = {0, 1, 2};
      do {
        const DeviceOrder order = *DeviceOrder::Iota(reshape, perm);
        for (const auto& tile : Factorizations(n, 3)) {
          for (int subgroup = -1; subgroup < 3; ++subgroup) {
            HloSharding s;
            s.kind = HloSharding::Kind::kTiled;
            s.tile = tile;
            s.reshape.assign(order.reshape().begin(), order.reshape().end());
            s.perm.assign(order.perm().begin(), order.perm().end());
            if (subgroup >= 0) s.subgroups = {static_cast<HloSharding::Subgroup>(subgroup)};
            CanonicalizeTiles(&s);
            if (s.kind == HloSharding::Kind::kTiled) CheckAllForms(s);
            if (HasFatalFailure()) return;
          }
        }
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
  }
}

TEST(ConvertTest, DeviceListsAgreeInAllFormsAndIotaOnesAreRecognised) {
  for (const char* text : {"{devices=[2,4]0,7,1,6,2,5,3,4}", "{devices=[4,2]3,1,2,0,7,6,4,5}",
                           "{devices=[2,2,2]3,1,2,0,7,6,4,5 last_tile_dims={manual}}",
                           "{devices=[2,2,2]0,7,1,6,2,5,3,4 last_tile_dim_replicate}",
                           "{devices=[4,2]0,2,4,6,1,3,5,7}"}) {
    auto s = ParseHloSharding(text);
    ASSERT_TRUE(s.ok()) << s.status();
    CheckAllForms(*s);
  }
  Context c;
  const HloSharding list = *ParseHloSharding("{devices=[2,4]0,2,4,6,1,3,5,7}");
  const MeshSet set = MeshesOf(c, {list});
  EXPECT_TRUE(set.main()->order().is_identity());
  EXPECT_EQ(ToHloSharding(*set.FromHlo(list, 2))->Print(), "{devices=[2,4]<=[4,2]T(1,0)}");
}

TEST(ConvertTest, MeshesWhoseAxesDoNotCoverTheirDevicesAreRefused) {
  Context context;
  Mesh wrong = *Mesh::Create("m", {{"a", 4}, {"b", 2}});
  wrong.order = *DeviceOrder::Iota({2, 2}, {1, 0});
  Mesh none = *Mesh::Create("m", {{"a", 4}});
  none.axes[0].size = 0;
  for (const Mesh& mesh : {wrong, none}) {
    MeshCollector collector;
    collector.AddNamed(mesh);
    EXPECT_EQ(DiagnosticCode(collector.Finish(context).status()), "E160");
  }
  EXPECT_EQ(DiagnosticCode(MeshCollector().Finish(context, -1).status()), "E163");
  const auto set = MeshCollector().Finish(context, 4);
  ASSERT_TRUE(set.ok()) << set.status();
  for (const int rank : {-1, INT_MIN, INT_MAX}) {
    EXPECT_EQ(DiagnosticCode(set->FromHlo(HloSharding(), rank).status()), "E163");
  }
}

TEST(ConvertTest, TilingsMeetOnTheirCommonRefinement) {
  Context c;
  const HloSharding a = *ParseHloSharding("{devices=[2,4]<=[8]}");
  const HloSharding b = *ParseHloSharding("{devices=[4,2]<=[8]}");
  const MeshSet set = MeshesOf(c, {a, b});
  ASSERT_EQ(set.bases().size(), 1);
  EXPECT_EQ(set.main(), InternBaseMesh(c, {2, 2, 2}, DeviceOrder::Identity(8)));
  // [2,4] along dim 0 is a major part of [4,2] along dim 0, by pointer algebra.
  EXPECT_TRUE(
      IsPrefix(*set.main(), set.FromHlo(a, 2)->dims[0].axes, set.FromHlo(b, 2)->dims[0].axes));
}

TEST(ConvertTest, CutsThatContradictEachOtherHaveBaseMeshesOfTheirOwn) {
  Context c;
  const HloSharding a = *ParseHloSharding("{devices=[2,3]<=[6]}");
  const HloSharding b = *ParseHloSharding("{devices=[3,2]<=[6]}");
  const HloSharding t = *ParseHloSharding("{devices=[2,3]<=[2,3]T(1,0)}");
  const MeshSet set = MeshesOf(c, {a, b, t});
  ASSERT_EQ(set.bases().size(), 3);
  for (const HloSharding* s : {&a, &b, &t}) {
    EXPECT_EQ(TilesOf(*set.FromHlo(*s, 2)), TilesByDefinition(*s));
    EXPECT_EQ(ToHloSharding(*set.FromHlo(*s, 2))->Print(), s->Print());
  }
  EXPECT_FALSE(set.bases()[2]->order().is_identity());
}

TEST(ConvertTest, NamesOfTheMeshComeBackAndSizeOneAxesVanish) {
  Context c;
  const auto meshes = ParseSdyMeshes(R"({mesh = #sdy.mesh<["one"=1, "data"=4, "model"=2]>})");
  const HloSharding fine = *ParseHloSharding("{devices=[2,4]<=[8]}");
  const MeshSet set = MeshesOf(c, {fine}, *meshes);
  EXPECT_EQ(set.main()->num_axes(), 3);
  const auto named =
      ParseSdySharding(R"(#sdy.sharding<@mesh, [{"one", "data"}, {"model", ?}p2, {?}]>)");
  const auto constraint = set.FromNamed(*named, 3);
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  EXPECT_EQ(constraint->dims[1].priority, 2);
  EXPECT_TRUE(constraint->dims[1].open);
  EXPECT_FALSE(constraint->IsFullyClosed());
  EXPECT_EQ(SdyShardingText(*ToNamedSharding(*constraint, false)),
            R"(#sdy.sharding<@mesh, [{"data"}, {"model", ?}p2, {?}]>)");
  EXPECT_EQ(ToHloShardingV3(*constraint)->Print(),
            "{mesh['data'=4,'model'=2], [{'data'}, {'model', ?}, {?}]}");
  EXPECT_EQ(SdyShardingText(*ToNamedSharding(*set.FromHlo(fine, 2), false)),
            R"(#sdy.sharding<@mesh, [{"data":(1)2}, {"data":(2)2, "model"}]>)");
  EXPECT_EQ(DiagnosticCode(ToHloSharding(*constraint).status()), "E164");
}

TEST(ConvertTest, AMeshOverATransposedOrderSharesTheBaseMeshOfTheIdentity) {
  Context c;
  const HloSharding v3 =
      *ParseHloSharding("{mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{'a'}, {'b'}]}");
  const HloSharding v2 = *ParseHloSharding("{devices=[4,2]<=[2,4]T(1,0)}");
  const MeshSet set = MeshesOf(c, {v3, v2});
  EXPECT_EQ(set.bases().size(), 1);
  EXPECT_EQ(ToSharding(c, *set.FromHlo(v3, 2)), ToSharding(c, *set.FromHlo(v2, 2)));
  EXPECT_EQ(ToHloShardingV3(*set.FromHlo(v2, 2))->Print(), v3.Print());
}

// The base meshes of these tilings; each comes back as it was.
std::vector<const BaseMesh*> BasesOf(Context& context, const std::vector<std::string>& texts) {
  MeshCollector collector;
  std::vector<HloSharding> tilings;
  for (const std::string& text : texts) {
    tilings.push_back(*ParseHloSharding(text));
    EXPECT_TRUE(collector.AddTiling(tilings.back()).ok());
  }
  const MeshSet meshes = *collector.Finish(context);
  for (const HloSharding& tiling : tilings) {
    const ShardingConstraint c = *meshes.FromHlo(tiling, tiling.num_data_dims());
    EXPECT_EQ(TilesByDefinition(*ToHloSharding(c)), TilesByDefinition(tiling));
  }
  return {meshes.bases().begin(), meshes.bases().end()};
}

// A mesh whose devices are in an order of its own has another list for each order of its axes, and
// for those that hold copies.
TEST(ConvertTest, ListsOfOneMeshInSeveralOrdersHaveOneBaseMesh) {
  const std::vector<std::string> lists = {
      "{devices=[4,2]0,1,2,3,7,6,5,4}", "{devices=[2,4]0,2,7,5,1,3,6,4}",
      "{devices=[4,1,2]0,1,2,3,6,7,4,5 last_tile_dim_replicate}",
      "{devices=[1,2,4]0,2,5,7,1,3,4,6 last_tile_dim_replicate}"};
  Context context;
  EXPECT_EQ(BasesOf(context, lists).size(), 1);
  std::vector<std::string> backwards(lists.rbegin(), lists.rend());
  EXPECT_EQ(BasesOf(context, backwards), BasesOf(context, lists));
}

TEST(ConvertTest, ListsOfCopiesAloneMeetOnTheOrderThatBothHave) {
  Context context;
  const auto bases = BasesOf(context, {"{devices=[4,1,2]0,1,2,3,6,7,4,5 last_tile_dim_replicate}",
                                       "{devices=[1,2,4]0,2,5,7,1,3,4,6 last_tile_dim_replicate}"});
  ASSERT_EQ(bases.size(), 1);
  EXPECT_EQ(bases[0]->num_axes(), 2);
  // Copies may stand in ascending order though the mesh does not.
  EXPECT_EQ(
      BasesOf(context, {"{devices=[2,2]1,0,3,2}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"})
          .size(),
      1);
}

TEST(ConvertTest, ListsOfNoCommonMeshHaveBaseMeshesOfTheirOwn) {
  Context context;
  EXPECT_EQ(
      BasesOf(context, {"{devices=[8]0,1,2,3,7,6,5,4}", "{devices=[8]0,2,1,3,7,6,5,4}"}).size(), 2);
  EXPECT_EQ(BasesOf(context, {"{devices=[2,2]<=[4]}", "{devices=[2,2]0,1,3,2}"}).size(), 2);
}

TEST(ConvertTest, PartialAndManualAxesAreSubgroups) {
  Context c;
  const MeshSet set =
      MeshesOf(c, {}, *ParseSdyMeshes(R"({mesh = #sdy.mesh<["a"=2, "b"=2, "c"=2]>})"));
  ShardingBuilder b(set.main(), 2);
  b.dims[1] = {{1, 1, 2}};
  b.partial = {{2, 1, 2}};
  b.manual = {{0, 1, 2}};
  const Sharding* s = b.Intern(c);
  EXPECT_EQ(ToHloSharding(*s)->Print(),
            "{devices=[1,2,2,2]<=[2,2,2]T(1,0,2) last_tile_dims={manual, unreduced}}");
  EXPECT_EQ(ToHloShardingV3(*s)->Print(),
            "{mesh['a'=2,'b'=2,'c'=2], [{}, {'b'}], unreduced={'c'}, manual={'a'}}");
  EXPECT_EQ(s->ToString(), "[{}, {\"b\"}] partial=add{\"c\"} manual={\"a\"}");
  b.partial_op = PartialOp::kMax;
  EXPECT_EQ(DiagnosticCode(ToHloSharding(*b.Intern(c)).status()), "E164");
  EXPECT_EQ(ToHloShardingV3(*b.Intern(c))->Print(),
            "{mesh['a'=2,'b'=2,'c'=2], [{}, {'b'}], unreduced=max{'c'}, manual={'a'}}");
  b.partial_op = PartialOp::kXor;
  EXPECT_EQ(DiagnosticCode(ToHloShardingV3(*b.Intern(c)).status()), "E164");
}

TEST(ConvertTest, WordsKeepTheirMeaning) {
  Context c;
  const MeshSet set = MeshesOf(c, {*ParseHloSharding("{devices=[2,4]<=[8]}")});
  for (const char* text :
       {"{replicated}", "{manual}", "{unreduced}", "{unknown}", "{unknown shard_as 3}",
        "{maximal device=5}", "{replicated shard_like 2}"}) {
    auto constraint = set.FromHlo(*ParseHloSharding(text), 2);
    ASSERT_TRUE(constraint.ok()) << constraint.status();
    EXPECT_EQ(ToHloSharding(*constraint)->Print(), text);
  }
  EXPECT_EQ(set.FromHlo(*ParseHloSharding("{maximal_mesh[device_id=5]}"), 2)->maximal_device, 5);
  EXPECT_EQ(ToHloShardingV3(*set.FromHlo(*ParseHloSharding("{maximal device=5}"), 2))->Print(),
            "{maximal_mesh[device_id=5]}");
}

// As XLA of jaxlib 0.12 writes it.
TEST(ConvertTest, TheReductionOfUnreducedAxesMayStandInTheMetadata) {
  Context c;
  const MeshSet set = MeshesOf(c, {*ParseHloSharding("{devices=[2,4]<=[8]}")});
  const auto op = [&](absl::string_view sharding, absl::string_view name) {
    return set.FromHlo(
        *ParseHloSharding(absl::StrCat("{", sharding, " metadata={op_type=\"sdy::reduction_op\" ",
                                       "op_name=\"", name, "\"}}")),
        2);
  };
  for (const char* sharding : {"unreduced", "devices=[1,2,4]<=[8] last_tile_dims={unreduced}"}) {
    EXPECT_EQ(op(sharding, "SUM")->unreduced_op, PartialOp::kSum) << sharding;
    EXPECT_EQ(op(sharding, "MAX")->unreduced_op, PartialOp::kMax) << sharding;
    EXPECT_EQ(op(sharding, "MIN")->unreduced_op, PartialOp::kMin) << sharding;
    EXPECT_EQ(DiagnosticCode(op(sharding, "XOR").status()), "E165") << sharding;
  }
}

TEST(ConvertTest, WhatDoesNotFitTheProgramIsAnError) {
  Context c;
  const MeshSet set = MeshesOf(c, {*ParseHloSharding("{devices=[2,4]<=[8]}")});
  for (const char* text :
       {"{devices=[2,4]<=[8]}", "{devices=[2,2,2]<=[8]}", "{maximal device=8}",
        "{maximal_mesh[device_id=9223372036854775807]}", "{devices=[3,1,1]<=[3]}", "{{replicated}}",
        "{mesh['a'=4], [{'a'}, {}, {}]}", "{mesh['a'=8], [{'a'}]}"}) {
    const auto constraint = set.FromHlo(*ParseHloSharding(text), 3);
    if (std::string(text) == "{devices=[2,2,2]<=[8]}") {
      EXPECT_TRUE(constraint.ok());
    } else {
      EXPECT_EQ(DiagnosticCode(constraint.status()), "E163") << text;
    }
  }
  EXPECT_EQ(
      DiagnosticCode(set.FromNamed(*ParseSdySharding("#sdy.sharding<@no, [{}]>"), 1).status()),
      "E163");
  auto finish = [&](const char* text, int64_t n) {
    MeshCollector collector;
    const absl::Status added = collector.AddTiling(*ParseHloSharding(text));
    return added.ok() ? collector.Finish(c, n).status() : added;
  };
  EXPECT_EQ(DiagnosticCode(finish("{devices=[8]<=[8]}", 4)), "E163");
  EXPECT_EQ(DiagnosticCode(finish("{devices=[2]1,4}", 4)), "E163");
  EXPECT_EQ(DiagnosticCode(finish("{mesh['a'=4], [{'a'}]}", 8)), "E163");
  EXPECT_EQ(DiagnosticCode(finish("{devices=[4]0,1,2,4}", 4)), "E163");
  EXPECT_EQ(DiagnosticCode(finish("{devices=[4]0,1,2,2}", 8)), "E160");
  EXPECT_EQ(DiagnosticCode(finish("{devices=[2]0,4611686018427387904}", 0)), "E160");
  EXPECT_TRUE(finish("{replicated}", 8).ok());
}

// As in functions that JAX has exported for one device, and calls on several.
TEST(ConvertTest, AMeshOfOneDeviceSaysNothingOfADeviceOrder) {
  Context c;
  const MeshSet set = MeshesOf(c, {*ParseHloSharding("{mesh['a'=1,'b'=1], [{'a'}, {}]}"),
                                   *ParseHloSharding("{devices=[2,4]<=[8]}")});
  EXPECT_EQ(set.num_devices(), 8);
  const auto constraint = set.FromHlo(*ParseHloSharding("{mesh['a'=1,'b'=1], [{'a','b'}, {}]}"), 2);
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  EXPECT_EQ(constraint->mesh, set.main());
  EXPECT_TRUE(constraint->IsFullyClosed());
  for (const ShardingConstraint::Dim& d : constraint->dims) EXPECT_TRUE(d.axes.empty());
}

TEST(ConvertTest, IotaFormsDoNotGrowWithDevices) {
  Context c;
  const HloSharding s =
      *ParseHloSharding("{devices=[32768,1,1024]<=[1024,32768]T(1,0) last_tile_dim_replicate}");
  const MeshSet set = MeshesOf(c, {s});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(ToHloSharding(*ToSharding(c, *set.FromHlo(s, 2)))->Print(), s.Print());
  }
}

TEST(ConvertTest, EveryShardingOfTheCorpusConvertsAndComesBack) {
  int count = 0;
  for (const std::string& text : CorpusTexts(" sharding=")) {
    const HloSharding parsed = *ParseHloSharding(text);
    std::vector<HloSharding> entries = parsed.tuple;
    if (parsed.kind != HloSharding::Kind::kTuple) entries = {parsed};
    for (const HloSharding& s : entries) {
      Context c;
      const bool has_mesh =
          s.kind == HloSharding::Kind::kTiled || s.kind == HloSharding::Kind::kNamed;
      const MeshSet set = MeshesOf(c, {s}, {}, has_mesh ? 0 : 8);
      const int rank = s.kind == HloSharding::Kind::kTiled   ? s.num_data_dims()
                       : s.kind == HloSharding::Kind::kNamed ? s.named.dims.size()
                                                             : 2;
      auto constraint = set.FromHlo(s, rank);
      ASSERT_TRUE(constraint.ok()) << constraint.status();
      const bool v3 = s.kind == HloSharding::Kind::kNamed || s.maximal_mesh;
      auto back = v3 ? ToHloShardingV3(*constraint) : ToHloSharding(*constraint);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->Print(), s.Print());
      ++count;
    }
  }
  EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace shardcall
