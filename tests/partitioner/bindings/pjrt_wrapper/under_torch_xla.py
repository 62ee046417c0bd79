#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch/XLA on the plugin that wraps XLA:CPU's: a product and its gradient over 8 devices,
against PyTorch on the host, and partitioned by us. SHARDCALL_PJRT_LIBRARY names
libshardcall_pjrt.so, SHARDCALL_PJRT_CPU_PLUGIN the plugin; exit status 77 without them or
torch_xla. Tried with torch and torch_xla 2.9."""
import glob
import os
import sys
import tempfile

LIBRARY = os.environ.get('SHARDCALL_PJRT_LIBRARY')
PLUGIN = os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN')


def main():
    if not LIBRARY or not PLUGIN:
        print('skipped: no plugin is named')
        return 77
    reports = tempfile.TemporaryDirectory(prefix='under_torch_xla.')
    os.environ.update({'PJRT_DEVICE': 'SHARDCALL', 'NPROC': '16', 'SHARDCALL_WRAPPED_PLUGIN': PLUGIN,
                       'SHARDCALL_REPORT': reports.name})
    try:
        import numpy as np
        import torch
        import torch_xla
        from torch_xla.experimental import plugins
    except ImportError as error:
        print(f'skipped: {error}')
        return 77

    class Wrapper(plugins.DevicePlugin):
        def library_path(self):
            return LIBRARY

        def client_create_options(self):
            return {'cpu_device_count': 8}

    plugins.register_plugin('SHARDCALL', Wrapper())
    plugins.use_dynamic_plugins()
    import torch_xla.distributed.spmd as xs
    import torch_xla.runtime as xr
    xr.use_spmd()
    mesh = xs.Mesh(np.arange(8), (4, 2), ('x', 'y'))
    a = torch.arange(16 * 32, dtype=torch.float32).reshape(16, 32) % 7 - 3
    w = torch.arange(32 * 8, dtype=torch.float32).reshape(32, 8) % 5 - 2
    there_a, there_w = a.to('xla'), w.to('xla').requires_grad_()
    xs.mark_sharding(there_a, mesh, ('x', None))
    xs.mark_sharding(there_w, mesh, (None, 'y'))
    loss = ((there_a @ there_w) ** 2).sum()
    loss.backward()
    torch_xla.sync()
    here_w = w.clone().requires_grad_()
    expected = ((a @ here_w) ** 2).sum()
    expected.backward()
    assert torch.equal(loss.detach().cpu(), expected.detach()), (loss, expected)
    assert torch.equal(there_w.grad.cpu(), here_w.grad)
    assert glob.glob(reports.name + '/*.json'), 'nothing was partitioned by us'
    print('as on the host')
    return 0


if __name__ == '__main__':
    sys.exit(main())
