// SPDX-License-Identifier: Apache-2.0
// Importing texts in tests, and writing programs down by placement: an axis is
// its stride and size over device positions, so programs that name their axes
// differently, or not at all, can be set side by side.
#ifndef SHARDCALL_TESTS_PARTITIONER_IMPORT_IMPORT_TESTING_H_
#define SHARDCALL_TESTS_PARTITIONER_IMPORT_IMPORT_TESTING_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/support/corpus.h"

namespace shardcall {

inline absl::StatusOr<Program> TryImport(const std::string& text, ImportOptions options = {},
                                         std::shared_ptr<Context> context = nullptr) {
  if (context == nullptr) context = std::make_shared<Context>();
  absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(text), context, "test.hlo");
  if (!module.ok()) return module.status();
  absl::StatusOr<Program> program = ImportModule(*std::move(module), options);
  if (!program.ok()) return program.status();
  if (absl::Status status = VerifyModule(program->module, "imported"); !status.ok()) return status;
  return program;
}
inline Program Import(const std::string& text, ImportOptions options = {},
                      std::shared_ptr<Context> context = nullptr) {
  absl::StatusOr<Program> program = TryImport(text, options, std::move(context));
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    std::abort();
  }
  return *std::move(program);
}

// A module around the body of an entry computation.
inline std::string EntryModule(const std::string& body, const std::string& header = "") {
  return absl::StrCat("HloModule test", header.empty() ? "" : ", ", header, "\n\nENTRY main {\n",
                      body, "}\n");
}

inline InstrId FindInstr(const Program& p, absl::string_view name) {
  for (int i = 0; i < p.module.num_instructions(); ++i) {
    if (p.module.instr(InstrId(i)).name == name) return InstrId(i);
  }
  ADD_FAILURE() << "no instruction " << name << " in\n" << PrintModule(p.module);
  std::abort();
}

// "4@2" has 4 coordinates in steps of 2 positions; "8@1" also stands for
// neighbouring parts that continue each other.
inline std::string Placement(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  std::vector<std::pair<int64_t, int64_t>> runs;  // size, stride
  for (const AxisRef& a : axes) {
    const int64_t stride = mesh.Stride(a);
    if (!runs.empty() && runs.back().second == stride * a.size) {
      runs.back() = {runs.back().first * a.size, stride};
    } else {
      runs.push_back({a.size, stride});
    }
  }
  return absl::StrJoin(runs, " ", [](std::string* out, const auto& r) {
    absl::StrAppend(out, r.first, "@", r.second);
  });
}

inline std::string ConstraintText(const ShardingConstraint* c) {
  if (c == nullptr) return "none";
  if (c->maximal_device >= 0) return absl::StrCat("device ", c->maximal_device);
  std::string out = "[";
  for (size_t d = 0; d < c->dims.size(); ++d) {
    absl::StrAppend(&out, d > 0 ? ", " : "", Placement(*c->mesh, c->dims[d].axes),
                    c->dims[d].open ? "?" : "");
  }
  out += "]";
  if (!c->unreduced.empty()) {
    absl::StrAppend(&out, " unreduced ", Placement(*c->mesh, c->unreduced));
  }
  if (!c->manual.empty()) absl::StrAppend(&out, " manual ", Placement(*c->mesh, c->manual));
  if (c->unknown) out += " unknown";
  if (c->shard_as >= 0) absl::StrAppend(&out, " as ", c->shard_as);
  return out;
}
inline std::string ConstraintText(const Program& p, absl::string_view name, int leaf = 0) {
  return ConstraintText(p.constraints[p.leaves.leaf(FindInstr(p, name), leaf).value]);
}

// What entry result `flat` is told: on the result, or on the value it is.
inline std::string ResultText(const Program& p, int flat) {
  const InstrId root = p.module.comp(p.module.entry()).root;
  const LeafId leaf = p.leaves.leaf(root, flat);
  if (p.constraints[leaf.value] != nullptr) return ConstraintText(p.constraints[leaf.value]);
  for (int l = 0; l < p.leaves.num_leaves(); ++l) {
    if (p.constraints[l] != nullptr && p.leaves.canonical(LeafId(l)) == p.leaves.canonical(leaf)) {
      return ConstraintText(p.constraints[l]);
    }
  }
  return "none";
}

inline std::string RegionText(const Program& p, absl::string_view name) {
  return Placement(*p.mesh, p.manual_axes(FindInstr(p, name)));
}

// One line per operand of each boundary.
inline std::vector<std::string> BoundaryTexts(const Program& p) {
  std::vector<std::string> out;
  for (const auto& [id, b] : p.boundaries) {
    for (size_t k = 0; k < b.manual_dims.size(); ++k) {
      std::string line =
          absl::StrCat(b.entry ? "enter " : "leave ", Placement(*p.mesh, b.manual_axes), " in ",
                       Placement(*p.mesh, p.manual_axes(id)), ":",
                       p.module.instr(p.module.operand(id, k)).shape->ToString(false), " ->");
      for (const AxisList& d : b.manual_dims[k]) {
        absl::StrAppend(&line, " (", Placement(*p.mesh, d), ")");
      }
      const ShardingConstraint* c = p.constraints[p.leaves.leaf(id, static_cast<int>(k)).value];
      out.push_back(absl::StrCat(line, " ", ConstraintText(c)));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_IMPORT_IMPORT_TESTING_H_
