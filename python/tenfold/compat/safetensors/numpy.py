# SPDX-License-Identifier: MIT
"""safetensors.numpy."""
from ...numpy import _TYPES, load, load_file, save, save_file

__all__ = ["load", "load_file", "save", "save_file"]
