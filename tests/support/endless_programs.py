# SPDX-License-Identifier: Apache-2.0
"""Programs for tests of what ends, and when."""


def loop(devices=2):
    """One whose loop %loop never ends, of one argument f32[8]."""
    return f"""HloModule endless, num_partitions={devices}
c {{
  p = f32[8] parameter(0)
  ROOT t = pred[] constant(true)
}}
b {{
  p = f32[8] parameter(0)
  ROOT s = f32[8] sine(p)
}}
ENTRY e {{
  x = f32[8] parameter(0), sharding={{devices=[{devices}]<=[{devices}]}}
  ROOT loop = f32[8] while(x), condition=c, body=b
}}
"""


def product(n, devices=4):
    """The product of two arguments f32[n,n]."""
    return f"""HloModule product, num_partitions={devices}
ENTRY e {{
  x = f32[{n},{n}] parameter(0), sharding={{devices=[{devices},1]<=[{devices}]}}
  y = f32[{n},{n}] parameter(1), sharding={{devices=[{devices},1]<=[{devices}]}}
  ROOT d = f32[{n},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
