# SPDX-License-Identifier: Apache-2.0
"""Warnings at the line of the user's that brought them about, each once."""
import os
import sys
import sysconfig
import warnings

from shardcall.errors import Warning

_PACKAGES = tuple(os.path.join(folder, '') for folder in {
    os.path.dirname(os.path.realpath(__file__)), os.path.dirname(__file__),
    *(os.path.join(site, package)
      for site in {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}
      for package in ('jax', 'jaxlib'))})
_IMPORT = '<frozen importlib'
_LIBRARY = ('contextlib.py', 'functools.py')
_told = set()


def _users():
    """The first frame that is neither ours nor JAX's, and its level as warnings.warn, called by
    `once`, counts."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and (
            frame.f_code.co_filename.startswith((*_PACKAGES, _IMPORT))
            or os.path.basename(frame.f_code.co_filename) in _LIBRARY):
        # warnings.warn does not count the frames of an import.
        level += not frame.f_code.co_filename.startswith(_IMPORT)
        frame = frame.f_back
    return frame, level


def once(message, about=None):
    """Warns, unless it has of the same `about` (None: the message, at this line of the user's)."""
    frame, level = _users()
    about = about or (message, frame.f_code.co_filename, frame.f_lineno)
    if about not in _told:
        _told.add(about)
        warnings.warn(message, Warning, stacklevel=level)
