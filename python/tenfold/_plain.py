# SPDX-License-Identifier: MIT
"""Helpers for the modules numpy, torch and compat.safetensors, which import none of these."""


def attributes(metadata, format):
    """safetensors' metadata as attributes of a file of that format."""
    if metadata is None:
        return None
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be a dict of str to str; {key!r}: {value!r} is not")
    return {"safetensors.metadata": dict(metadata)} if format == "safetensors" else dict(metadata)


def writing(metadata, format):
    """Options of a save with safetensors' metadata. An empty dict is written as an empty map."""
    how = {"format": format, "attrs": attributes(metadata, format), "replace": True}
    if metadata is not None and not metadata and format == "safetensors":
        how["options"] = {"empty_metadata": True}
    return how


def progress(bar):
    """A function (done, total), made from such a function or a bar like tqdm's."""
    if bar is None or callable(bar) and not hasattr(bar, "update"):
        return bar

    def report(done, total):
        if getattr(bar, "total", None) != total:
            bar.total = total
        bar.update(done - bar.n)
    return report


def check_name(name):
    """Refuses the name "__metadata__": readers of safetensors would not open such a file."""
    if name == "__metadata__":
        from ._errors import InvalidError
        raise InvalidError("a tensor in a safetensors file cannot have the name '__metadata__'")


def need(module, by, extra):
    """Imports the package that a module here needs; the error says how to install it."""
    import importlib
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(f"No module named {error.name!r}: {by} needs it (pip install "
                                  f"'tenfold[{extra}]')", name=error.name, path=error.path) from None
