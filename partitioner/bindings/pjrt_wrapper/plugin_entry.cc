// SPDX-License-Identifier: Apache-2.0
// The only exports of libshardcall_pjrt_whole.so, which the loader looks up.
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper.h"

extern "C" const void* GetPjrtApi() { return shardcall::pjrt::Wrapper::ApiOfProcess(); }
