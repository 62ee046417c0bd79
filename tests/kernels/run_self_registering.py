#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs whose targets a library registers itself, by the command and by a manifest
that has rules alone.

    run_self_registering.py --command=build/bin/shardcall --library=LIB.so

LIB.so is xla_self_registering.cc, whichever headers it was compiled against.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """HloModule m, num_partitions=4

both {
  p = pred[] parameter(0)
  q = pred[] parameter(1)
  ROOT r = pred[] and(p, q)
}

ENTRY main {
  x = f32[10,6] parameter(0), sharding={devices=[2,2]<=[4]}
  a = f32[10,6] custom-call(x, x), custom_call_target="xla_axpy", api_version=API_VERSION_TYPED_FFI, backend_config={a = 2.0 : f32}
  b = f32[10,6] custom-call(a), custom_call_target="xla_add_offset", api_version=API_VERSION_TYPED_FFI, backend_config={offset = 7.0 : f32}
  three = f32[] constant(3)
  threes = f32[10,6] broadcast(three), dimensions={}
  seven = f32[] constant(7)
  sevens = f32[10,6] broadcast(seven), dimensions={}
  t = f32[10,6] multiply(x, threes)
  s = f32[10,6] add(t, sevens)
  same = pred[10,6] compare(b, s), direction=EQ
  yes = pred[] constant(true)
  ROOT all = pred[] reduce(same, yes), dimensions={0,1}, to_apply=both
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--command', required=True)
    parser.add_argument('--library', required=True)
    args = parser.parse_args()
    failed = []

    def run(*words, code=0):
        done = subprocess.run([args.command, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        if done.returncode != code:
            failed.append(f'{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}')
        return done.stdout + done.stderr

    def expect(text, *parts):
        for part in parts:
            if part not in ' '.join(text.split()):
                failed.append(f'no "{part}" in:\n{text}')

    with tempfile.TemporaryDirectory() as folder:
        manifest = os.path.join(folder, 'rules.json')
        program = os.path.join(folder, 'program.hlo')
        outputs = os.path.join(folder, 'outputs.npz')
        with open(manifest, 'w', encoding='utf-8') as f:
            json.dump({'library': args.library,
                       'targets': [{'name': 'xla_axpy', 'rule': 'i j, i j -> i j'},
                                   {'name': 'xla_add_offset', 'rule': 'i j -> i j'}]}, f)
        with open(program, 'w', encoding='utf-8') as f:
            f.write(PROGRAM)
        plugin = '--plugin=' + manifest
        expect(run('targets', plugin),
               f'xla_axpy Abacus 4 rule shapes - {args.library}',
               f'xla_axpy Host 4 rule shapes COMMAND_BUFFER_COMPATIBLE {args.library}',
               f'xla_add_offset Host 4 rule shapes - {args.library}')
        expect(run('verify', program, plugin), '"status": "ok"')
        run('run', program, plugin, '--random-inputs=3', '--outputs=' + outputs)
        try:
            import numpy
            if not numpy.load(outputs)['out0'].all():
                failed.append('the handlers give other numbers than the ops')
        except ImportError:
            pass
        # The library alone has no rules.
        alone = '--plugin=' + args.library
        expect(run('targets', alone), f'xla_add_offset Host 4 - - - {args.library}')
        expect(run('run', program, alone, '--random-inputs=3', code=1), 'E101', 'xla_axpy')
        expect(run('run', program, alone, '--random-inputs=3', '--num-partitions=1',
                   '--outputs=' + outputs), '')
    for text in failed:
        print(text)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
