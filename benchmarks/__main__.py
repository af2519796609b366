"""``make bench``: everything that can be measured on this machine."""

import runpy
import sys

BENCHMARKS = ("benchmarks.capsnet_cpu", "benchmarks.data")

for name in BENCHMARKS:
    sys.argv = [name]
    runpy.run_module(name, run_name="__main__")
