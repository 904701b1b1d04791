# SPDX-License-Identifier: MIT
"""Writing by functions with other packages' names: as there, but losses are reported."""
import warnings

from .. import LossWarning, convert


def written(file, path, format, allow_loss=None, **options):
    """Converts an open file. A LossWarning with the report lists losses, which the replaced package
    would not report at all. allow_loss=False raises an error instead; True suppresses the
    warning."""
    report = convert(file, path, format=format, replace=True, allow_loss=allow_loss is not False,
                     **options)
    # With `unnormalize`, the caller wants norms to be multiplied in.
    fates = ("dropped",) if options.get("unnormalize") else ("dropped", "transformed")
    lost = [item for item in report if item.fate in fates]
    if lost and allow_loss is None:
        first = f"{lost[0].kind} {lost[0].name!r}: {lost[0].reason}"
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        warnings.warn(LossWarning(f"{format} does not keep everything: {first}{more}", report),
                      stacklevel=4)
    return report
