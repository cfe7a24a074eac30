#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lists the scenarios of a folder, one path a line, for meson."""

import os
import sys

for name in sorted(os.listdir(sys.argv[1])):
    if name.endswith(".yaml"):
        print(os.path.join(sys.argv[1], name))
