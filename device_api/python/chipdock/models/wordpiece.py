# SPDX-License-Identifier: Apache-2.0
"""A small WordPiece tokenizer for the sentence models.

The vocabulary beside this file is the part of BERT's uncased English one that the sentences of
tasks.py need, with the original numbers; a full vocabulary can be handed in. Accents are stripped;
Chinese and other scripts without spaces are left out.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

__all__ = ["encode", "tokenize", "vocabulary"]

_LONGEST_WORD = 100


@cache
def vocabulary() -> Mapping[str, int]:
    """Return the shipped part of the vocabulary, piece to number."""
    text = resources.files(__package__).joinpath("wordpiece.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("# "))
    return {piece: int(number) for number, piece in rows}


def _words(text: str) -> Iterator[str]:
    """Yield lower-case words and single punctuation marks."""
    plain = unicodedata.normalize("NFD", text.lower())
    word = ""
    for char in plain:
        kind = unicodedata.category(char)
        if kind == "Mn":
            continue
        single = kind[0] in "PS"
        if single or char.isspace():
            if word:
                yield word
            word = ""
            if single:
                yield char
        else:
            word += char
    if word:
        yield word


def _pieces(word: str, known: Mapping[str, int]) -> list[int]:
    """Split one word greedily into its longest known pieces; [UNK] if that fails."""
    numbers = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            number = known.get(prefix + word[start:end])
            if number is not None:
                numbers.append(number)
                start = end
                break
        else:
            return [known["[UNK]"]]
    return numbers if len(word) <= _LONGEST_WORD else [known["[UNK]"]]


def tokenize(text: str, known: Mapping[str, int] | None = None) -> list[int]:
    """Return the token numbers of a sentence between [CLS] and [SEP].

    Args:
        text: Any text; control characters count as letters.
        known: Vocabulary with [CLS], [SEP] and [UNK]; None is the shipped part.

    Source:
        J. Devlin et al., BERT, arXiv:1810.04805, section 3; Y. Wu et al., arXiv:1609.08144,
        section 4.1.
    """
    known = vocabulary() if known is None else known
    middle = [number for word in _words(text) for number in _pieces(word, known)]
    return [known["[CLS]"], *middle, known["[SEP]"]]


def encode(sentences: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of a sentence model, padded to the longest sentence.

    Args:
        sentences: At least one sentence.

    Returns:
        `input_ids` and `attention_mask`, int64, shape (sentences, longest).
    """
    rows = [tokenize(sentence) for sentence in sentences]
    longest = max(map(len, rows))
    ids = np.zeros((len(rows), longest), np.int64)
    mask = np.zeros_like(ids)
    for row, numbers in enumerate(rows):
        ids[row, : len(numbers)] = numbers
        mask[row, : len(numbers)] = 1
    return {"input_ids": ids, "attention_mask": mask}
