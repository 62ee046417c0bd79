# SPDX-License-Identifier: Apache-2.0
"""The wheel holds a library for one machine, and no module for one Python: build_wheel.py."""
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    def get_tag(self):
        return 'py3', 'none', super().get_tag()[2]


setup(distclass=WithLibrary, cmdclass={'bdist_wheel': AnyPython})
