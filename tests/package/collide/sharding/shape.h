// SPDX-License-Identifier: Apache-2.0
// A header of the project's own.
#ifndef COLLIDE_SHARDING_SHAPE_H_
#define COLLIDE_SHARDING_SHAPE_H_

#define COLLIDE_SHARDING_SHAPE 1

#endif  // COLLIDE_SHARDING_SHAPE_H_
