// SPDX-License-Identifier: Apache-2.0
// What a framework looks for in libshardcall_pjrt.so, and all that it exports.
#include "partitioner/bindings/pjrt_wrapper/wrapper.h"

extern "C" const void* GetPjrtApi() { return shardcall::pjrt::Wrapper::OfProcess().api(); }
