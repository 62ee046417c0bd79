# SPDX-License-Identifier: Apache-2.0
"""Runs a program with its JAX on our plugin:

    python3 -m shardcall_pjrt [--platform=cpu|cuda] [--devices=N] PROGRAM.py [ARGUMENT ...]
    python3 -m shardcall_pjrt [--platform=cpu|cuda] [--devices=N] -m MODULE [ARGUMENT ...]
"""
import argparse
import os
import runpy
import sys


def main():
    parser = argparse.ArgumentParser(prog='python3 -m shardcall_pjrt')
    parser.add_argument('--platform', choices=('cpu', 'cuda'), default='cpu')
    parser.add_argument('--devices', type=int, help='of the host; default 8')
    parser.add_argument('-m', dest='module', action='store_true', help='PROGRAM is a module')
    parser.add_argument('program')
    parser.add_argument('arguments', nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.devices:
        os.environ['SHARDCALL_CPU_DEVICES'] = str(options.devices)
    os.environ['JAX_PLATFORMS'] = 'cuda' if options.platform == 'cuda' else 'shardcall_cpu'
    if options.platform == 'cuda':
        from shardcall_pjrt import cuda
        cuda.take_over()
    sys.argv = [options.program, *options.arguments]
    if options.module:
        runpy.run_module(options.program, run_name='__main__', alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(options.program))
        runpy.run_path(options.program, run_name='__main__')


if __name__ == '__main__':
    main()
