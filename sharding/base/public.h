// SPDX-License-Identifier: Apache-2.0
// Marks namespace shardcall in installed headers, whose declarations libshardcall.so exports. All
// else is hidden, in the inner namespace shardcall::internal; shardcall::abi exports nothing.
#ifndef SHARDCALL_SHARDING_BASE_PUBLIC_H_
#define SHARDCALL_SHARDING_BASE_PUBLIC_H_

#define SHARDCALL_PUBLIC __attribute__((visibility("default")))

#endif  // SHARDCALL_SHARDING_BASE_PUBLIC_H_
