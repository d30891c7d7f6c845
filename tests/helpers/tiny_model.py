"""A weights file in the format of the package, small and random, and what it should compute."""

import struct
from math import erf
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 64, 24
EPSILON = 1e-12
SPECIAL = (0, 2, 1, 3)  # beginning, end, padding, unknown
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁query", "▁passage", ":", "▁the", "▁café"]
PIECES += [*"abcdefghijklmnopqrstuvwxyzé", "▁ca", "fe", "語", "<mask>"]
#: What the tokenizer replaces: a ligature, a line break, and a character that vanishes.
CHARACTERS = {0xFB01: "fi", 0x0A: " ", 0x200B: ""}
SHAPES = {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN)}
SHAPES |= {"ao": (HIDDEN, HIDDEN), "fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}

Tensors = dict[str, Any]


def _packed(random: Any, rows: int, columns: int) -> tuple[bytes, Any]:
    """A random matrix in 4-bit blocks of 32, and its values."""
    small = random.integers(0, 16, (rows, columns // 32, 32))
    scales = random.uniform(0.01, 0.05, (rows, columns // 32, 1)).astype("<f2")
    low, high = small[:, :, :16], small[:, :, 16:]
    body = (low | high << 4).astype(np.uint8)
    blocks = np.concatenate([scales.view(np.uint8), body], axis=2)
    return blocks.tobytes(), ((small - 8) * scales.astype(np.float32)).reshape(rows, columns)


def write(path: Path, seed: int = 7) -> Tensors:
    """Writes a weights file; returns its tensors as floats."""
    random = np.random.default_rng(seed)
    raw: dict[str, bytes] = {}
    tensors: Tensors = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        raw[name], tensors[name] = _packed(random, rows, columns)

    def vector(name: str, *shape: int, around: float = 0.0) -> None:
        tensors[name] = (around + 0.1 * random.normal(size=shape)).astype("<f4")
        raw[name] = tensors[name].tobytes()

    matrix("emb.word", len(PIECES) + 3, HIDDEN)
    vector("emb.pos", POSITIONS, HIDDEN)
    vector("emb.type", HIDDEN)
    norms = ["emb.ln", *(f"l{layer}.{name}" for layer in range(LAYERS) for name in ("aln", "oln"))]
    for name in norms:
        vector(f"{name}.w", HIDDEN, around=1.0)
        vector(f"{name}.b", HIDDEN)
    for layer in range(LAYERS):
        for name, (rows, columns) in SHAPES.items():
            matrix(f"l{layer}.{name}.w", rows, columns)
            vector(f"l{layer}.{name}.b", rows)
    path.write_bytes(_file(raw))
    return tensors


def _file(raw: dict[str, bytes]) -> bytes:
    sizes = (HIDDEN, LAYERS, HEADS, INNER, len(PIECES) + 3, POSITIONS, 1)
    head = struct.pack("<4sI7ifi", b"E5S1", 1, *sizes, EPSILON, 32)
    spelled = [piece.encode() for piece in PIECES]
    starts = np.cumsum([0, *map(len, spelled)])
    scores = [0.0 if id < 4 else -1.0 - 2 / len(piece) for id, piece in enumerate(PIECES)]
    head += struct.pack("<5iQ", len(PIECES), *SPECIAL, int(starts[-1]))
    head += struct.pack(f"<{len(starts)}I", *map(int, starts))
    head += struct.pack(f"<{len(scores)}f", *scores) + b"".join(spelled)
    rows = [
        struct.pack(f"<IB{len(text)}I", character, len(text), *map(ord, text))
        for character, text in CHARACTERS.items()
    ]
    head += struct.pack("<iI", len(rows), sum(map(len, rows))) + b"".join(rows)
    directory = sum(2 + len(name) + 21 for name in raw) + 4
    offset, entries, body = len(head) + directory, b"", b""
    for name, content in raw.items():
        entries += struct.pack(f"<H{len(name)}sBIQQ", len(name), name.encode(), 0, 0, offset, 0)
        offset += len(content)
        body += content
    return head + struct.pack("<i", len(raw)) + entries + body


def expected(tensors: Tensors, ids: list[int]) -> Any:
    """The mean of the last layer for a text with these tokens, in floats."""
    states = tensors["emb.word"][ids] + tensors["emb.pos"][: len(ids)] + tensors["emb.type"]
    states = _norm(tensors, states, "emb.ln")
    for layer in range(LAYERS):
        states = _layer(tensors, states, f"l{layer}.")
    return states.mean(axis=0)


def _norm(tensors: Tensors, states: Any, name: str) -> Any:
    centred = states - states.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    return scaled * tensors[f"{name}.w"] + tensors[f"{name}.b"]


def _layer(tensors: Tensors, states: Any, layer: str) -> Any:
    def dense(inputs: Any, name: str) -> Any:
        return inputs @ tensors[f"{layer}{name}.w"].T + tensors[f"{layer}{name}.b"]

    size = HIDDEN // HEADS
    q, k, v = (
        dense(states, name).reshape(-1, HEADS, size).transpose(1, 0, 2) for name in ("q", "k", "v")
    )
    scores = np.exp(q @ k.transpose(0, 2, 1) / size**0.5)
    context = (scores / scores.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2)
    attended = dense(context.reshape(-1, HIDDEN), "ao")
    states = _norm(tensors, states + attended, f"{layer}aln")
    wide = dense(states, "fi")
    gelu = wide * (1 + np.vectorize(erf)(wide / 2**0.5)) / 2
    return _norm(tensors, states + dense(gelu, "fo"), f"{layer}oln")
