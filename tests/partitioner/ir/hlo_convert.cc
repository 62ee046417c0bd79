// SPDX-License-Identifier: Apache-2.0
// Reads HLO files, as text or (.pb) as HloModuleProto, and writes each under its
// name into a folder, as `--to=text` (with --short in the short form), `--to=pb`, or
// StableHLO bytecode, `--to=mlirbc`. With --fields, what reading a binary file could not keep in
// the module itself is listed, a line for each field. Serves the differential tests against XLA.
//   hlo_convert --to=pb --out=DIR [--short] [--fields] FILE...
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/proto/source.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"

namespace {

void ListFields(const std::string& file, const shardcall::Module& module) {
  const shardcall::ProtoSource& source = *module.proto_source();
  const auto list = [&](const std::string& where, const shardcall::hlo_proto::Residue& residue) {
    if (residue.empty()) return;
    std::cout << file << " " << where << " " << absl::StrJoin(residue.Fields(), ",") << "\n";
  };
  list("module", source.module);
  for (const auto& [id, residue] : source.computations) list("computation", residue);
  for (const auto& [id, residue] : source.instructions) {
    list(std::string(shardcall::OpcodeText(module.instr(shardcall::InstrId(id)).opcode)), residue);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string to, out_dir;
  bool fields = false;
  shardcall::PrintOptions options;
  std::vector<std::string> files;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (absl::ConsumePrefix(&arg, "--out=")) {
      out_dir = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--to=")) {
      to = std::string(arg);
    } else if (arg == "--short") {
      options.short_form = true;
    } else if (arg == "--fields") {
      fields = true;
    } else {
      files.push_back(argv[k]);
    }
  }
  int failures = 0;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream buffer;
    buffer << in.rdbuf();
    if (!in) {
      std::cerr << "cannot read " << file << "\n";
      ++failures;
      continue;
    }
    auto context = std::make_shared<shardcall::Context>();
    auto module = absl::EndsWith(file, ".pb")
                      ? shardcall::ReadModuleProto(buffer.str(), context, file)
                      : shardcall::ParseModule(std::make_shared<const std::string>(buffer.str()),
                                               context, file);
    if (!module.ok()) {
      std::cerr << module.status().message() << "\n";
      ++failures;
      continue;
    }
    if (fields && module->proto_source() != nullptr) ListFields(file, *module);
    absl::StatusOr<std::string> out;
    if (to == "pb") {
      out = shardcall::WriteModuleProto(*module);
    } else if (to == "mlirbc") {
      out = shardcall::WriteStablehloBytecode(*module);
    } else {
      out = shardcall::PrintModule(*module, options);
    }
    if (!out.ok()) {
      std::cerr << file << ": " << out.status().message() << "\n";
      ++failures;
      continue;
    }
    absl::string_view name(file);
    name.remove_prefix(name.rfind('/') + 1);
    std::string path = absl::StrCat(out_dir, "/", name);
    if (to != "text" && absl::ConsumeSuffix(&name, ".hlo")) {
      path = absl::StrCat(out_dir, "/", name, ".", to);
    } else if (to == "text" && absl::ConsumeSuffix(&name, ".pb")) {
      path = absl::StrCat(out_dir, "/", name, ".hlo");
    }
    std::ofstream(path, std::ios::binary) << *out;
  }
  return failures == 0 ? 0 : 1;
}
