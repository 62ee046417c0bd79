// SPDX-License-Identifier: Apache-2.0
// Reads HLO files and prints them back: to stdout, or with --out=DIR each to a
// file of the same name there. Serves the differential test against XLA.
//   hlo_roundtrip [--out=DIR] [--short] FILE...
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "partitioner/ir/parser.h"
#include "partitioner/ir/printer.h"

int main(int argc, char** argv) {
  absl::string_view out_dir;
  shardcall::PrintOptions options;
  std::vector<std::string> files;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (absl::ConsumePrefix(&arg, "--out=")) {
      out_dir = arg;
    } else if (arg == "--short") {
      options.short_form = true;
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
    auto module = shardcall::ParseModule(std::make_shared<const std::string>(buffer.str()),
                                         std::make_shared<shardcall::Context>(), file);
    if (!module.ok()) {
      std::cerr << module.status().message() << "\n";
      ++failures;
      continue;
    }
    const std::string text = shardcall::PrintModule(*module, options);
    if (out_dir.empty()) {
      std::cout << text;
    } else {
      const std::string name = file.substr(file.find_last_of('/') + 1);
      std::ofstream(std::string(out_dir) + "/" + name, std::ios::binary) << text;
    }
  }
  return failures == 0 ? 0 : 1;
}
