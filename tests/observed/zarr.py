#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stores that zarr-python wrote, where those are at hand.

  zarr.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("zarr").go()
