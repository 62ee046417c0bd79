// SPDX-License-Identifier: Apache-2.0
// Marks namespace shardcall in installed headers: libshardcall.so exports what is declared there.
// All else has hidden visibility, and is declared in the inner namespace shardcall::internal or in
// a namespace in it. shardcall::abi, XLA's structs in the signatures of handlers, exports nothing.
#ifndef SHARDCALL_SHARDING_BASE_PUBLIC_H_
#define SHARDCALL_SHARDING_BASE_PUBLIC_H_

#define SHARDCALL_PUBLIC __attribute__((visibility("default")))

#endif  // SHARDCALL_SHARDING_BASE_PUBLIC_H_
