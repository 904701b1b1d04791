#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stores that zarr-python wrote, if they are available.

  zarr.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("zarr").go()
