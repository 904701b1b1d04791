# SPDX-License-Identifier: MIT
"""Word vectors in Python: neighbours and analogies of words, with a small file that is made here.

    python3 examples/python_words.py
"""
import os
import tempfile

from tenfold.embeddings import Embeddings

path = os.path.join(tempfile.mkdtemp(), "words.txt")
with open(path, "w", encoding="utf-8") as f:
    f.write("6 2\nman 1 0\nwoman 0.8 0.6\nking 1 0.2\nqueen 0.7 0.8\nboy 0.9 -0.1\ngirl 0.75 0.65\n")

e = Embeddings(path, format="textdims")
print(e, e["king"])
for word, hits in zip(("king", "girl"), e.similar(["king", "girl"], k=2)):
    print(word, [hit.word for hit in hits])
print(e.analogy("man", "king", "woman")[0].word)
