#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of the fbin family and their content, if they are available.

  fbin.py TENFOLD FIXTURES
"""
from expected import Watcher, identical

Watcher("fbin").go(identical)
