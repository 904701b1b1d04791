# SPDX-License-Identifier: MIT
"""The API of finalfusion 0.7 with Tenfold's reader and writer: loading, vectors, similarity,
analogies, vocabularies with subwords, quantized storage, writing.

    import tenfold.compat.finalfusion as finalfusion
    e = finalfusion.load_finalfusion("wiki.fifu")
    e.word_similarity("Berlin")

For code that you cannot change, replace the modules of the package:

    import sys
    import tenfold.compat.finalfusion
    for name in ("", ".compat", ".embeddings", ".io", ".metadata", ".norms", ".storage", ".subword",
                 ".vocab"):
        sys.modules["finalfusion" + name] = sys.modules["tenfold.compat.finalfusion" + name]

Objects are read and written completely (`load_…()` and `.write()`), not by chunks of an open file:
`read_chunk()` and `write_chunk()` are missing.
"""
from . import compat, embeddings, io, metadata, norms, storage, subword, vocab
from .compat import (load_fasttext, load_text, load_text_dims, load_word2vec, write_fasttext, write_text,
                     write_text_dims, write_word2vec)
from .embeddings import Embeddings, SimilarityResult, load_finalfusion
from .io import FinalfusionFormatError
from .metadata import Metadata, load_metadata
from .norms import Norms, load_norms
from .storage import NdArray, QuantizedArray, Storage, load_storage
from .vocab import (ExplicitVocab, FastTextVocab, FinalfusionBucketVocab, SimpleVocab, Vocab, load_vocab)

__all__ = ["Embeddings", "ExplicitVocab", "FastTextVocab", "FinalfusionBucketVocab",
           "FinalfusionFormatError", "Metadata", "NdArray", "Norms", "QuantizedArray",
           "SimilarityResult", "SimpleVocab", "Storage", "Vocab", "load_fasttext", "load_finalfusion",
           "load_metadata", "load_norms", "load_storage", "load_text", "load_text_dims", "load_vocab",
           "load_word2vec", "write_fasttext", "write_text", "write_text_dims", "write_word2vec"]
