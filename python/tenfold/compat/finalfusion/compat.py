# SPDX-License-Identifier: MIT
"""Other formats, which are converted to finalfusion in memory for loading, and from it for
writing."""
from ... import convert as _convert, save as _save
from .._write import written as _written
from .embeddings import load_finalfusion as _load_finalfusion, origin_of
from .io import made as _made, opened as _opened
from .metadata import Metadata as _Metadata
from .vocab import FastTextVocab as _FastTextVocab, SimpleVocab as _SimpleVocab

__all__ = ["load_fasttext", "load_text", "load_text_dims", "load_word2vec", "write_fasttext",
           "write_text", "write_text_dims", "write_word2vec"]

# finalfusion's names of fastText's settings, and their defaults.
_FASTTEXT = {"dims": ("dim", 0), "window_size": ("ws", 0), "epoch": ("epoch", 0),
             "min_count": ("min_count", 0), "ns": ("neg", 0), "word_ngrams": ("word_ngrams", 1),
             "loss": ("loss", 0), "model": ("model", 0), "buckets": ("bucket", 0), "min_n": ("minn", 0),
             "max_n": ("maxn", 0), "lr_update_rate": ("lr_update_rate", 0),
             "sampling_threshold": ("t", 0.0)}
_WORDS = {"hs": "HierarchicalSoftmax", "ns": "NegativeSampling", "softmax": "Softmax",
          "cbow": "CBOW", "skipgram": "SkipGram", "supervised": "Supervised"}


def _settings(file):
    """The settings of fastText that are stored in a file."""
    found = {name: file.attrs.get(f"fasttext.{key}", default)
             for name, (key, default) in _FASTTEXT.items()}
    return _Metadata({name: _WORDS.get(value, value) for name, value in found.items()})


def _with_words(file, lossy):
    """The file if its words are valid UTF-8. Otherwise a copy with replacement characters if
    `lossy`; without `lossy`, a UnicodeDecodeError."""
    words = [w.encode("utf-8", "surrogateescape") for w in file["vocab"].strings()]
    plain = [w.decode("utf-8", "replace" if lossy else "strict") for w in words]
    if [w.encode() for w in plain] == words:
        return file
    tensors = {**{name: file[name] for name in file}, "vocab": plain}
    data = _save(None, tensors, format=file.format, attrs=file.attrs)[1]
    return _opened(memoryview(data), file.format)


def _load(file, format, lossy=False):
    with _opened(file, format) as f, _with_words(f, lossy) as g:
        data = _convert(g, None, format="finalfusion", allow_loss=True)[1]
        metadata = _settings(f) if format == "fasttext" else None
    made = _load_finalfusion(memoryview(data))
    made.metadata, made.origin = metadata, origin_of(file)
    return made


def load_word2vec(file, lossy=False):
    return _load(file, "word2vec", lossy)


def load_text(file, lossy=False):
    return _load(file, "text", lossy)


def load_text_dims(file, lossy=False):
    return _load(file, "textdims", lossy)


def load_fasttext(file, lossy=False):
    return _load(file, "fasttext", lossy)


def _write(embeddings, file, format, allow_loss):
    data = _made(None, *embeddings._tensors())
    with _opened(memoryview(data)) as f:
        _written(f, file, format, allow_loss,
                 unnormalize=embeddings.norms is not None and format != "fasttext")


def write_word2vec(file, embeddings, *, allow_loss=None):
    """A tenfold.LossWarning lists what the format cannot store; allow_loss=False raises an
    error."""
    _write(embeddings, file, "word2vec", allow_loss)


def _plain(sep):
    if sep != " ":
        raise NotImplementedError("only a blank is supported as the separator")


def write_text(file, embeddings, sep=" ", *, allow_loss=None):
    _plain(sep)
    _write(embeddings, file, "text", allow_loss)


def write_text_dims(file, embeddings, sep=" ", *, allow_loss=None):
    _plain(sep)
    _write(embeddings, file, "textdims", allow_loss)


def write_fasttext(file, embeds, *, allow_loss=None):
    if not isinstance(embeds.vocab, (_FastTextVocab, _SimpleVocab)):
        raise ValueError(f"fastText cannot store a {type(embeds.vocab).__name__}")
    _write(embeds, file, "fasttext", allow_loss)
