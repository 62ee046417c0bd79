// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parser.h"

#include <memory>
#include <utility>

#include "shardcall/partitioner/ir/build/started_calls.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"
#include "shardcall/partitioner/ir/text/parse/module_parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::StatusOr<Module> ParseModule(std::shared_ptr<const std::string> text,
                                   std::shared_ptr<Context> context, absl::string_view file_name,
                                   const TargetShapes* targets) {
  if (text == nullptr || context == nullptr) {
    return ToStatus({.code = "E021",
                     .message = "there is nothing to read a module from, or into",
                     .where = std::string(file_name),
                     .expected = "a text and a Context",
                     .found = text == nullptr ? "no text" : "no Context",
                     .fix = "Give both, as with std::make_shared<Context>()"});
  }
  Module module(std::move(context));
  hlo_text::ModuleParser parser(*text, file_name, &module, targets);
  if (!parser.Run()) {
    SHARDCALL_CHECK(!parser.status().ok());
    if (LooksLikeStablehlo(*text)) return StablehloIsNotHlo(file_name);
    return parser.status();
  }
  module.KeepText(std::move(text));
  return WithStartedOps(std::move(module));
}

}  // namespace shardcall
