// SPDX-License-Identifier: Apache-2.0
// What is looked for in libshardcall_pjrt_whole.so, and all that it exports.
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper.h"

extern "C" const void* GetPjrtApi() { return shardcall::pjrt::Wrapper::ApiOfProcess(); }
