#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checkpoints that TensorFlow wrote, if they are available.

  tensorbundle.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("tensorbundle").go()
