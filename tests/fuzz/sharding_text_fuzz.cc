// SPDX-License-Identifier: Apache-2.0
// Sharding texts: the forms of HLO (V1, V2, named, tuples) and those of Shardy,
// read, printed, read again, and converted onto the base meshes that they make.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "shardcall/sharding/context.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "shardcall/sharding/rule/sdy_text.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

constexpr int kMaxRank = 6;

int RankOf(const HloSharding& s) {
  if (s.kind == HloSharding::Kind::kTiled) return s.num_data_dims();
  return s.kind == HloSharding::Kind::kNamed ? static_cast<int>(s.named.dims.size()) : 2;
}

// Every form that the constraint has must say the same when it is read again.
void Convert(const ShardingConstraint& constraint) {
  auto require_same = [&](const absl::StatusOr<HloSharding>& text) {
    FuzzRequireDiagnosed(text.status());
    if (!text.ok()) return;
    const std::string printed = text->Print();
    const absl::StatusOr<HloSharding> read = ParseHloSharding(printed);
    FuzzRequire(read.ok(), "a converted sharding is read", printed);
    FuzzRequireSame(printed, read->Print(), "a converted sharding prints the same");
  };
  require_same(ToHloSharding(constraint));
  require_same(ToHloShardingV3(constraint));
  for (bool inline_mesh : {false, true}) {
    const absl::StatusOr<NamedSharding> named = ToNamedSharding(constraint, inline_mesh);
    FuzzRequireDiagnosed(named.status());
    if (!named.ok() || inline_mesh) continue;
    const std::string printed = SdyShardingText(*named);
    const absl::StatusOr<NamedSharding> read = ParseSdySharding(printed);
    FuzzRequire(read.ok(), "a converted sharding is read by Shardy's grammar",
                printed + "\n" + std::string(read.status().ToString()));
    FuzzRequireSame(printed, SdyShardingText(*read), "it prints the same");
  }
}

void TryHlo(const std::string& text) {
  const absl::StatusOr<HloSharding> sharding = ParseHloSharding(text);
  FuzzRequireDiagnosed(sharding.status(), text);
  if (!sharding.ok()) return;
  const std::string printed = sharding->Print();
  const absl::StatusOr<HloSharding> again = ParseHloSharding(printed);
  FuzzRequire(again.ok(), "a printed sharding is read",
              printed + "\n" + std::string(again.status().ToString()));
  FuzzRequireSame(printed, again->Print(), "a sharding prints the same again");

  MeshCollector collector;
  const absl::Status added = collector.AddTiling(*sharding);
  FuzzRequireDiagnosed(added, text);
  if (!added.ok()) return;
  Context context;
  const absl::StatusOr<MeshSet> meshes = collector.Finish(context);
  FuzzRequireDiagnosed(meshes.status(), text);
  if (!meshes.ok()) return;
  const bool tuple = sharding->kind == HloSharding::Kind::kTuple;
  for (const HloSharding& s : tuple ? sharding->tuple : std::vector<HloSharding>{*sharding}) {
    const int rank = std::min(RankOf(s), kMaxRank);
    const absl::StatusOr<ShardingConstraint> constraint = meshes->FromHlo(s, rank);
    FuzzRequireDiagnosed(constraint.status(), text);
    if (constraint.ok()) Convert(*constraint);
  }
}

void TrySdy(const std::string& text) {
  const absl::StatusOr<std::vector<NamedSharding>> shardings = ParseSdyShardings(text);
  FuzzRequireDiagnosed(shardings.status(), text);
  if (shardings.ok()) {
    const std::string printed = SdyShardingPerValueText(*shardings);
    const absl::StatusOr<std::vector<NamedSharding>> again = ParseSdyShardings(printed);
    FuzzRequire(again.ok(), "printed Shardy shardings are read", printed);
    FuzzRequireSame(printed, SdyShardingPerValueText(*again), "they print the same again");
    Mesh mesh = *Mesh::Create("mesh", {{"a", 2}, {"data", 4}, {"model", 6}});
    MeshCollector collector;
    collector.AddNamed(mesh);
    Context context;
    const absl::StatusOr<MeshSet> meshes = collector.Finish(context);
    for (const NamedSharding& s : *shardings) {
      const int rank = static_cast<int>(s.dims.size());
      const absl::StatusOr<ShardingConstraint> constraint = meshes->FromNamed(s, rank);
      FuzzRequireDiagnosed(constraint.status(), text);
      if (constraint.ok()) Convert(*constraint);
    }
  }
  const absl::StatusOr<std::vector<Mesh>> meshes = ParseSdyMeshes(text);
  FuzzRequireDiagnosed(meshes.status(), text);
  if (meshes.ok()) {
    const std::string printed = SdyMeshesText(*meshes);
    const absl::StatusOr<std::vector<Mesh>> again = ParseSdyMeshes(printed);
    FuzzRequire(again.ok(), "printed meshes are read", printed);
    FuzzRequireSame(printed, SdyMeshesText(*again), "meshes print the same again");
    MeshCollector collector;
    for (const Mesh& m : *meshes) collector.AddNamed(m);
    Context context;
    FuzzRequireDiagnosed(collector.Finish(context).status(), text);
  }
  const absl::StatusOr<std::vector<std::string>> axes = ParseSdyManualAxes(text);
  FuzzRequireDiagnosed(axes.status(), text);
  if (axes.ok()) {
    const std::string printed = SdyManualAxesText(*axes);
    const absl::StatusOr<std::vector<std::string>> again = ParseSdyManualAxes(printed);
    FuzzRequire(again.ok() && *again == *axes, "printed manual axes are read", printed);
  }
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  shardcall::TryHlo(text);
  shardcall::TrySdy(text);
  return 0;
}
