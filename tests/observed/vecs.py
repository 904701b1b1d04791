#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of the vecs family and their content, if they are available.

  vecs.py TENFOLD FIXTURES
"""
from expected import Watcher, identical

Watcher("vecs").go(identical)
