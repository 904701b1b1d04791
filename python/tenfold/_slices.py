# SPDX-License-Identifier: MIT
"""The piece of a tensor that belongs to a rank."""


def chunk(n, world, rank):
    """[start, stop) of a rank in a dimension of n, cut as in torch.chunk() and DTensor: pieces of
    the same size, except the last ones, which may be smaller or empty."""
    size = -(-n // world) if n else 0
    return min(rank * size, n), min((rank + 1) * size, n)


def shard(shape, dim, world, rank):
    """The key of a rank's piece of a tensor that is cut along one dimension; dim None: not cut."""
    if dim is None:
        return tuple(slice(0, n) for n in shape)
    if not -len(shape) <= dim < len(shape):
        raise ValueError(f"a tensor of the shape {list(shape)} has no dimension {dim}")
    dim %= len(shape)
    return tuple(slice(*chunk(n, world, rank)) if i == dim else slice(0, n)
                 for i, n in enumerate(shape))


def boxes(shape, start, stop):
    """Covers elements [start, stop) of a tensor in C order by few boxes: [(element, key)], where
    `element` counts from `start`.

        . . . #        the end of a row,
        # # # #        complete rows,
        # # . .        the beginning of a row
    """
    if start >= stop:
        return []
    if not shape:
        return [(0, ())]
    row = 1
    for n in shape[1:]:
        row *= n
    result, at = [], start
    while at < stop:
        first, inside = divmod(at, row)
        if inside == 0 and stop - at >= row:
            rows = (stop - at) // row
            whole = tuple(slice(0, n) for n in shape[1:])
            result.append((at - start, (slice(first, first + rows), *whole)))
            at += rows * row
        else:
            end = min(stop, (first + 1) * row)
            for element, key in boxes(shape[1:], inside, inside + end - at):
                result.append((at - start + element, (slice(first, first + 1), *key)))
            at = end
    return result
