// SPDX-License-Identifier: Apache-2.0
// The corpus: every file imports, its three forms say the same, and an exported
// program imports again as it was.
#include <map>
#include <set>

#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/sharding/convert/convert.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

// Constraints as they stand, open dimensions closed, all else replicated.
std::vector<const Sharding*> DecideWithoutPropagation(const Program& p) {
  Context& context = p.module.context();
  std::vector<const ShardingConstraint*> told(p.leaves.num_leaves(), nullptr);
  for (int l = 0; l < p.leaves.num_leaves(); ++l) {
    const ShardingConstraint* c = p.constraints[l];
    const ShardingConstraint*& of_value = told[p.leaves.canonical(LeafId(l)).value];
    if (c != nullptr && !c->unknown && of_value == nullptr) of_value = c;
  }
  std::vector<const Sharding*> out(p.leaves.num_leaves(), nullptr);
  for (int l = 0; l < p.leaves.num_leaves(); ++l) {
    const LeafId leaf(l), canonical = p.leaves.canonical(leaf);
    const InstrId instr = p.leaves.instr(canonical);
    const Shape* shape = p.module.instr(instr).shape;
    if (shape->IsTuple()) shape = shape->leaf(p.leaves.index(canonical));
    if (!shape->IsArray()) continue;
    out[l] = told[canonical.value] != nullptr
                 ? ToSharding(context, *told[canonical.value])
                 : ReplicatedSharding(context, p.mesh, shape->rank(), p.manual_axes(instr));
  }
  return out;
}

// What two programs have in common if one is the other exported and imported.
std::string Skeleton(const Program& p) {
  std::string out = absl::StrCat("shardy ", p.uses_shardy, ", ", p.num_partitions, " partitions\n");
  for (const BaseMesh* mesh : p.meshes) absl::StrAppend(&out, mesh->num_axes(), " axes\n");
  for (int c = 0; c < p.module.num_computations(); ++c) {
    absl::StrAppend(&out, p.module.comp(CompId(c)).name, "\n");
    for (InstrId id : p.module.comp(CompId(c)).instructions) {
      const Instruction& i = p.module.instr(id);
      absl::StrAppend(&out, "  ", i.name, " ", OpcodeText(i.opcode), " ", i.shape->ToString(),
                      " region ", Placement(*p.mesh, p.manual_axes(id)), " kind ",
                      static_cast<int>(p.annotation[id.value]), "\n");
    }
  }
  for (const auto& [id, b] : std::map<uint32_t, const ManualBoundary*>([&] {
         std::map<uint32_t, const ManualBoundary*> m;
         for (const auto& [id, b] : p.boundaries) m[id.value] = &b;
         return m;
       }())) {
    absl::StrAppend(&out, id, b->entry ? " in " : " out ", Placement(*p.mesh, b->manual_axes));
    for (const auto& dims : b->manual_dims) {
      for (const AxisList& d : dims) absl::StrAppend(&out, " (", Placement(*p.mesh, d), ")");
    }
    out += "\n";
  }
  return out;
}

void ExpectSameAfterRoundTrip(const std::string& text, const ExportOptions& options,
                              const std::string& name) {
  auto context = std::make_shared<Context>();
  const Program first = Import(text, {}, context);
  const std::vector<const Sharding*> decided = DecideWithoutPropagation(first);
  absl::StatusOr<Module> module = ExportShardings(first, decided, options);
  ASSERT_TRUE(module.ok()) << name << ": " << module.status();
  ASSERT_TRUE(VerifyModule(*module, name).ok()) << name << ": " << VerifyModule(*module, name);
  const std::string exported = PrintModule(*module);
  absl::StatusOr<Program> again = TryImport(exported, {}, context);
  ASSERT_TRUE(again.ok()) << name << ": " << again.status() << "\n" << exported;
  ASSERT_EQ(Skeleton(first), Skeleton(*again)) << name;
  const std::vector<const Sharding*> decided_again = DecideWithoutPropagation(*again);
  ASSERT_EQ(decided.size(), decided_again.size());
  for (size_t l = 0; l < decided.size(); ++l) {
    if (decided[l] == decided_again[l]) continue;
    // A replicated value is on every mesh.
    if (decided[l] != nullptr && decided_again[l] != nullptr && decided[l]->IsReplicated() &&
        decided_again[l]->IsReplicated()) {
      continue;
    }
    ADD_FAILURE() << name << ": " << first.module.instr(first.leaves.instr(LeafId(l))).name
                  << " was " << (decided[l] ? decided[l]->ToString() : "null") << ", is "
                  << (decided_again[l] ? decided_again[l]->ToString() : "null");
    return;
  }
  absl::StatusOr<Module> module_again = ExportShardings(*again, decided_again, options);
  ASSERT_TRUE(module_again.ok()) << name << ": " << module_again.status();
  EXPECT_EQ(exported, PrintModule(*module_again)) << name;
}

TEST(ImportCorpus, EveryFileImportsAndVerifies) {
  const auto files = CorpusFiles();
  for (const auto& file : files) {
    absl::StatusOr<Program> p = TryImport(ReadText(file));
    EXPECT_TRUE(p.ok()) << file << ": " << p.status();
    if (!p.ok()) continue;
    for (int i = 0; i < p->module.num_instructions(); ++i) {
      EXPECT_NE(p->module.instr(InstrId(i)).opcode, Opcode::kCall) << file;
    }
    std::set<absl::string_view> names;
    for (int i = 0; i < p->module.num_instructions(); ++i) {
      EXPECT_TRUE(names.insert(p->module.instr(InstrId(i)).name).second) << file;
    }
  }
}

TEST(ImportCorpus, ExportedProgramsImportAgainAsTheyWere) {
  const auto files = CorpusFiles();
  for (const auto& file : files) {
    const std::string name = file.filename().string();
    const bool v3 = name.find(".v3.") != std::string::npos;
    ExpectSameAfterRoundTrip(ReadText(file), {.named = v3}, name);
    if (HasFatalFailure()) return;
  }
}

TEST(ImportCorpus, PropagatedProgramsKeepTheirShardingsWithoutPropagation) {
  const auto files = CorpusFiles();
  int compared = 0;
  for (const auto& file : files) {
    const std::string name = file.filename().string();
    auto context = std::make_shared<Context>();
    const Program first = Import(ReadText(file), {}, context);
    RuleTable rules(first, {});
    absl::StatusOr<PropagationResult> result = Propagate(first, rules, {});
    if (!result.ok()) continue;  // its own tests say which may
    ++compared;
    const bool named = name.find(".v3.") != std::string::npos;
    absl::StatusOr<Module> module = ExportShardings(first, result->sharding, {.named = named});
    ASSERT_TRUE(module.ok()) << name << ": " << module.status();
    absl::StatusOr<Program> again = TryImport(PrintModule(*module), {}, context);
    ASSERT_TRUE(again.ok()) << name << ": " << again.status();
    EXPECT_EQ(Skeleton(first), Skeleton(*again)) << name;
    RuleTable rules_again(*again, {});
    absl::StatusOr<PropagationResult> kept = Propagate(*again, rules_again, {.propagate = false});
    ASSERT_TRUE(kept.ok()) << name << ": " << kept.status();
    ASSERT_EQ(result->sharding.size(), kept->sharding.size()) << name;
    int differ = 0;
    for (size_t l = 0; l < kept->sharding.size(); ++l) {
      const Sharding *a = result->sharding[l], *b = kept->sharding[l];
      if (a == b || (a != nullptr && b != nullptr && a->IsReplicated() && b->IsReplicated())) {
        continue;
      }
      if (++differ > 3) break;
      const InstrId instr = first.leaves.instr(LeafId(l));
      ADD_FAILURE() << name << ": " << PrintInstruction(first.module, instr) << " was "
                    << (a ? a->ToString() : "null") << ", is " << (b ? b->ToString() : "null");
    }
  }
  EXPECT_GT(compared, static_cast<int>(files.size()) * 9 / 10);
}

// Parameters, results and boundaries of a program.
std::string Signature(const Program& p) {
  std::string out;
  for (InstrId parameter : p.module.comp(p.module.entry()).parameters) {
    for (int k = 0; k < p.module.instr(parameter).shape->num_leaves(); ++k) {
      absl::StrAppend(&out, "parameter ",
                      ConstraintText(p.constraints[p.leaves.leaf(parameter, k).value]), "\n");
    }
  }
  const Shape* result = p.module.instr(p.module.comp(p.module.entry()).root).shape;
  for (int k = 0; k < result->num_leaves(); ++k) {
    absl::StrAppend(&out, "result ", ResultText(p, k), "\n");
  }
  return out;
}
// What identities say, without those that only one form has.
std::multiset<std::string> Identities(const Program& p) {
  std::multiset<std::string> out;
  for (int i = 0; i < p.module.num_instructions(); ++i) {
    const InstrId id(i);
    if (p.annotation[i] != AnnotationKind::kIdentity ||
        p.module.instr(id).as<CustomCallAttrs>().target != "Sharding") {
      continue;
    }
    out.insert(ConstraintText(p.constraints[p.leaves.leaf(id).value]));
  }
  return out;
}

TEST(ImportCorpus, TheThreeFormsOfAProgramSayTheSame) {
  int compared = 0;
  for (const char* family : {"mlp_", "shard_map_", "embed_", "custom_call_api_unspecified"}) {
    for (const auto& file : CorpusFiles(family, ".sdy.hlo")) {
      const std::string stem = file.string().substr(0, file.string().size() - 8);
      const Program sdy = Import(ReadText(file));
      for (const char* form : {".gspmd.hlo", ".v3.hlo"}) {
        if (!std::filesystem::exists(stem + form)) continue;
        const Program other = Import(ReadText(stem + form));
        ++compared;
        EXPECT_EQ(Signature(sdy), Signature(other)) << stem << form;
        // In the GSPMD form a manual region has identities of its own, and
        // values that come out of one region and go into another meet there.
        const bool manual = stem.find("shard_map") != std::string::npos;
        if (!manual) {
          EXPECT_EQ(Identities(sdy), Identities(other)) << stem << form;
        }
        if (stem.find("shard_map_grad") == std::string::npos || form[1] == 'v') {
          EXPECT_EQ(BoundaryTexts(sdy), BoundaryTexts(other)) << stem << form;
        }
      }
    }
  }
  EXPECT_GT(compared, 10);
}

TEST(Export, WritesWhatIsDecidedAndClosesEverything) {
  const Program p =
      Import(EntryModule(R"(
  x = f32[16,8]{1,0} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  y = (f32[16,8]{1,0}, f32[]) custom-call(x), custom_call_target="f"
  a = f32[16,8]{1,0} get-tuple-element(y), index=0
  s = f32[16,8]{1,0} custom-call(a), custom_call_target="Sharding", sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}, backend_config="unspecified_dims=[0]"
  ROOT z = f32[16,8]{1,0} negate(s)
)",
                         "num_partitions=8, allow_spmd_sharding_propagation_to_output={true}"));
  const auto decided = DecideWithoutPropagation(p);
  const std::string text = PrintModule(*ExportShardings(p, decided));
  EXPECT_NE(text.find("custom_call_target=\"f\", sharding={{replicated}, {replicated}}"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("unspecified_dims"), std::string::npos) << text;
  EXPECT_NE(text.find("shardcall.meshes="), std::string::npos) << text;
  const std::string named = PrintModule(*ExportShardings(p, decided, {.named = true}));
  EXPECT_NE(named.find("sharding={mesh['x0'=4,'x1'=2], [{'x0'}, {}]}"), std::string::npos) << named;
  EXPECT_NE(text.find("allow_spmd"), std::string::npos);
  EXPECT_EQ(PrintModule(*ExportShardings(p, decided, {.keep_propagation_flags = false}))
                .find("allow_spmd"),
            std::string::npos);
}

TEST(Export, RoundTripsTheShapesOfPrograms) {
  ExpectSameAfterRoundTrip(EntryModule(R"(
  x = f32[16]{0} parameter(0), sharding={devices=[8]<=[8]}
  y = f32[16]{0} negate(x)
  ROOT t = (f32[16]{0}, f32[16]{0}) tuple(x, y), sharding={{replicated}, {devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}}
)",
                                       "num_partitions=8"),
                           {}, "results unlike their values");
  ExpectSameAfterRoundTrip(EntryModule(R"(
  x = f32[6,6]{1,0} parameter(0), sharding={devices=[2,3]<=[6]}
  y = f32[6,6]{1,0} custom-call(x), custom_call_target="Sharding", sharding={devices=[3,2]<=[6]}
  ROOT z = f32[6,6]{1,0} custom-call(y), custom_call_target="Sharding", sharding={devices=[2,3]5,0,1,2,3,4}
)",
                                       "num_partitions=6"),
                           {}, "base meshes that contradict each other");
}

TEST(Export, WithoutSdyKeepsOnlyWhatIsNoAnnotation) {
  Context context;
  using Entry = std::pair<absl::string_view, absl::string_view>;
  const Entry both[] = {{"note", "n"}, {"xla.sdy.sharding", "s"}, {"shardcall.meshes", "m"}};
  const FrontendAttributes* kept = WithoutSdy(context, InternFrontendAttributes(context, both));
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->entries.size(), 1);
  const Entry only[] = {{"xla.sdy.sharding", "s"}};
  EXPECT_EQ(WithoutSdy(context, InternFrontendAttributes(context, only)), nullptr);
  EXPECT_EQ(WithoutSdy(context, nullptr), nullptr);
}

}  // namespace
}  // namespace shardcall
