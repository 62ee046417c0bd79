// SPDX-License-Identifier: Apache-2.0
// The library plugins/xla_suite.cc with all its targets, and programs over them.
#ifndef SHARDCALL_TESTS_PARTITIONER_BINDINGS_XLA_XLA_SUITE_UTIL_H_
#define SHARDCALL_TESTS_PARTITIONER_BINDINGS_XLA_XLA_SUITE_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/load/library.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "tests/support/verify_text.h"

namespace shardcall {

inline constexpr char kTargets[] = R"(
  {"name": "add_two", "symbol": "AddTwoHandler"},
  {"name": "add_two_in_place", "symbol": "AddTwoInPlaceHandler"},
  {"name": "add_two_to_any", "symbol": "AddTwoToAnyHandler"},
  {"name": "add_n", "symbol": "AddNHandler"},
  {"name": "add_at_pointer", "symbol": "AddAtPointerHandler"},
  {"name": "sum", "symbol": "SumHandler"},
  {"name": "add_one", "symbol": "AddOneHandler"},
  {"name": "succeed", "symbol": "SucceedHandler"},
  {"name": "fail", "symbol": "FailHandler"},
  {"name": "fail_with_text", "symbol": "FailWithTextHandler"},
  {"name": "tokens", "symbol": "TokensHandler"},
  {"name": "accumulate", "symbol": "AccumulateHandler"},
  {"name": "rotate", "symbol": "RotateHandler"},
  {"name": "swap", "symbol": "SwapTypedHandler"},
  {"name": "columns", "symbol": "ColumnsHandler"},
  {"name": "ranks", "symbol": "RanksHandler"},
  {"name": "on_the_pool", "symbol": "OnThePoolHandler"},
  {"name": "next", "symbol": {"instantiate": "MakeValueHandler", "execute": "NextValueHandler"}},
  {"name": "next_from", "symbol": {"instantiate": "MakeValueFromHandler",
                                   "execute": "NextValueFromHandler"}},
  {"name": "add_values", "symbol": {"instantiate": "MakeValueHandler",
      "prepare": "PrepareOneHandler", "initialize": "InitializeTwoHandler",
      "execute": "AddValuesHandler"}},
  {"name": "note", "symbol": {"prepare": "NotePrepareHandler",
      "initialize": "NoteInitializeHandler", "execute": "NoteExecuteHandler"}},
  {"name": "start_work", "symbol": "StartWorkHandler"},
  {"name": "end_work", "symbol": "EndWorkHandler"},
  {"name": "apply", "symbol": "ApplyHandler", "rule": "... -> ..."},
  {"name": "sum_over", "symbol": "SumOverHandler", "rule": "... -> ..."},
  {"name": "place", "symbol": "PlaceHandler"},
  {"name": "listed", "symbol": "AddTwoHandler", "traits": ["COMMAND_BUFFER_COMPATIBLE"]},
  {"name": "untyped.add_two", "symbol": "AddTwoUntyped", "api_version": 2},
  {"name": "untyped.succeed", "symbol": "SetSuccess", "api_version": 3},
  {"name": "untyped.fail", "symbol": "FailUntyped", "api_version": 2},
  {"name": "untyped.fail_with_opaque", "symbol": "FailWithOpaque", "api_version": 3})";

struct SuiteRegistries {
  TargetRegistry targets;
  HandlerRegistry handlers;
};
inline SuiteRegistries& Suite() {
  static SuiteRegistries* const suite = [] {
    auto* r = new SuiteRegistries;
    const absl::Status status = LoadManifest(
        absl::StrCat(
            "{\"library\": \"", SHARDCALL_XLA_SUITE,
            "\", \"types\": [{\"name\": "
            "\"suite.Value\", \"type_id\": \"_ZN5Value2idE\", \"type_info\": "
            "\"ValueInfo\"}, {\"name\": \"suite.Visit\", \"type_id\": \"_ZN5Visit2idE\"}], "
            "\"targets\": [",
            kTargets, "]}"),
        "suite.json", &r->targets, &r->handlers);
    EXPECT_TRUE(status.ok()) << status;
    return r;
  }();
  return *suite;
}

template <typename T>
T* Symbol(const char* name) {
  static const auto library = *Library::Open(SHARDCALL_XLA_SUITE);
  void* const symbol = library->Find(name);
  EXPECT_NE(symbol, nullptr) << name;
  return static_cast<T*>(symbol);
}

// `text` is a whole module, or the instructions of the entry, where typed:(...)
// stands for a call of the typed FFI.
inline absl::StatusOr<std::vector<Tensor>> Results(const std::string& text,
                                                   std::vector<Tensor> inputs = {}) {
  const bool whole = text.find("ENTRY") != std::string::npos;
  SHARDCALL_ASSIGN_OR_RETURN(
      const Module module,
      ParseText(absl::StrCat("HloModule m\n",
                             whole ? text : absl::StrCat("ENTRY e {\n", text, "\n}\n"))));
  return Evaluate(module, std::move(inputs), &Suite().handlers);
}
inline std::string Typed(const std::string& target, const std::string& attributes = "") {
  return absl::StrCat("custom_call_target=\"", target, "\", api_version=API_VERSION_TYPED_FFI",
                      attributes.empty() ? "" : absl::StrCat(", backend_config=", attributes));
}
template <typename T>
std::vector<T> Elements(const Tensor& t) {
  return std::vector<T>(t.data<T>(), t.data<T>() + t.num_elements());
}
// The one f32 result.
inline std::vector<float> Floats(const absl::StatusOr<std::vector<Tensor>>& results) {
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() && results->size() == 1 ? Elements<float>((*results)[0])
                                              : std::vector<float>();
}
inline Tensor F32(absl::Span<const int64_t> dims, const std::vector<float>& values) {
  return Tensor::From(ElementType::kF32, dims, values);
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_BINDINGS_XLA_XLA_SUITE_UTIL_H_
