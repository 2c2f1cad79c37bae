"""Aligned texts for the benchmarks of several views: read the files, split, vectorise on training texts only."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from common import data_file


def read_texts(folder: str | os.PathLike[str] | None, file: str, languages: Sequence[str]) -> list[list[str]]:
    """One list of texts per language; row r of all lists is the same text."""
    csv.field_size_limit(2**30)
    with gzip.open(data_file(folder, file), "rt", encoding="utf-8", newline="") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    header = rows[0]
    missing = [language for language in languages if language not in header]
    if missing:
        raise SystemExit(f"{file} has no column {missing[0]!r}; it has {', '.join(header)}.")
    return [[row[header.index(language)] for row in rows[1:]] for language in languages]


def vectorised(texts: Sequence[Sequence[str]], train: np.ndarray, test: np.ndarray, kind: str, **options):
    """Training and test matrices of every language: "tf-idf", or "words" (counts scaled to length one)."""
    inside, outside = [], []
    for language in texts:
        vectoriser = TfidfVectorizer(**options) if kind == "tf-idf" else CountVectorizer(**options)
        a = vectoriser.fit_transform([language[i] for i in train])
        b = vectoriser.transform([language[i] for i in test])
        inside.append(a if kind == "tf-idf" else normalize(a.astype(float)))
        outside.append(b if kind == "tf-idf" else normalize(b.astype(float)))
    return inside, outside
