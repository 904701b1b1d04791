#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that TensorFlow converted, if they are available.

  tflite.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("tflite").go()
