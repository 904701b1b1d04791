# SPDX-License-Identifier: MIT
"""safetensors.torch."""
from ...torch import (_SIZE, _TYPES, _end_ptr, _find_shared_tensors, _is_complete,
                      _remove_duplicate_names, load, load_file, load_model, save, save_file,
                      save_model, storage_ptr, storage_size)

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]
