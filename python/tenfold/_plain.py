# SPDX-License-Identifier: MIT
"""What numpy, torch and safetensors share, without importing any of them."""


def attributes(metadata, format):
    """safetensors' metadata as attributes of a file of that format."""
    if metadata is None:
        return None
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be a dict of str to str; {key!r}: {value!r} is not")
    return {"safetensors.metadata": dict(metadata)} if format == "safetensors" else dict(metadata)


def writing(metadata, format):
    """What a save is told of safetensors' metadata: an empty dict is written as an empty map."""
    how = {"format": format, "attrs": attributes(metadata, format), "replace": True}
    if metadata is not None and not metadata and format == "safetensors":
        how["options"] = {"empty_metadata": True}
    return how


def progress(told):
    """A callable (done, total), or an object like tqdm's bar: total, n, update()."""
    if told is None or callable(told) and not hasattr(told, "update"):
        return told

    def tell(done, total):
        if getattr(told, "total", None) != total:
            told.total = total
        told.update(done - told.n)
    return tell


def check_name(name):
    """The one name that a tensor of safetensors cannot have: its readers would not open the file."""
    if name == "__metadata__":
        from ._errors import InvalidError
        raise InvalidError("a tensor of safetensors cannot be called '__metadata__'")


def need(module, by, extra):
    """Imports what a module of this package is for; says how to get it if it is not there."""
    import importlib
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(f"No module named {error.name!r}: {by} needs it (pip install "
                                  f"'tenfold[{extra}]')", name=error.name, path=error.path) from None
