// SPDX-License-Identifier: Apache-2.0
// Converts HLO files between text (.hlo) and HloModuleProto (.pb), each by its
// ending, into a folder: `--to=text` or `--to=pb`. With --fields, what reading a
// binary file could not keep in the module itself is listed, a line for each
// field. Serves the differential test against XLA.
//   hlo_proto_convert --to=pb --out=DIR [--fields] FILE...
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "partitioner/ir/parser.h"
#include "partitioner/ir/printer.h"
#include "partitioner/ir/proto/hlo_proto.h"
#include "partitioner/ir/proto/source.h"

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
  std::vector<std::string> files;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (absl::ConsumePrefix(&arg, "--out=")) {
      out_dir = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--to=")) {
      to = std::string(arg);
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
    } else {
      out = shardcall::PrintModule(*module);
    }
    if (!out.ok()) {
      std::cerr << file << ": " << out.status().message() << "\n";
      ++failures;
      continue;
    }
    const std::string name = file.substr(file.find_last_of('/') + 1);
    const std::string stem = name.substr(0, name.find_last_of('.'));
    std::ofstream(out_dir + "/" + stem + (to == "pb" ? ".pb" : ".hlo"), std::ios::binary) << *out;
  }
  return failures == 0 ? 0 : 1;
}
