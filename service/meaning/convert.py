"""Converts a weights file into a graph for onnxruntime and a tokenizer for SentencePiece.

The graph is BERT for one text: embeddings of its tokens in, the mean of the last layer out. Weights
have 8 bits with a scale for each output, activations 8 bits with a scale for each run. The same
weights give the same bytes on every machine, so that the id of the model is the same too.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from service.meaning.protobuf import message
from service.meaning.weights import Weights, unpacked

_OPSET: Final = 20
_TYPES: Final = {"float32": 1, "int8": 3, "int64": 7}  # of TensorProto
_FLOAT, _INT, _INTS = 1, 2, 7  # of AttributeProto
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # of a piece
_UNIGRAM: Final = 1


class _Graph:
    """The nodes and constants of a graph."""

    def __init__(self) -> None:
        self.fields: list[tuple[int, bytes]] = []
        self._numbers = count()

    def constant(self, array: Any) -> str:
        """Adds a tensor; returns its name."""
        name = f"c{next(self._numbers)}"
        dimensions = [(1, length) for length in array.shape]
        raw = np.ascontiguousarray(array).tobytes()
        kind = _TYPES[str(array.dtype)]
        self.fields.append((5, message(*dimensions, (2, kind), (8, name), (9, raw))))
        return name

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns the name of its output, or a list of names."""
        names = [f"v{next(self._numbers)}" for _ in range(outputs)]
        fields: list[tuple[int, str | bytes]] = [(1, name) for name in inputs]
        fields += [(2, name) for name in names]
        fields += [(5, _attribute(*pair)) for pair in attributes.items()]
        self.fields.append((1, message(*fields, (4, kind))))
        return names[0] if outputs == 1 else names


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return message((1, name), (3, value), (20, _INT))
    if isinstance(value, float):
        return message((1, name), (2, value), (20, _FLOAT))
    return message((1, name), *((8, number) for number in value), (20, _INTS))


def graph(weights: Weights) -> bytes:
    """The ONNX model: input `embeddings` [tokens, hidden], output `mean` [hidden]."""
    made = _Graph()
    hidden, add, constant = weights.hidden, made.add, made.constant
    positions = weights.vector("emb.pos", weights.positions * hidden).reshape(-1, hidden)
    places = constant(positions + weights.vector("emb.type", hidden))
    zero = constant(np.zeros(1, np.int64))
    length = add("Shape", "embeddings", end=1)
    states = add("Add", "embeddings", add("Slice", places, zero, length, zero))
    states = _normalized(made, weights, states, "emb.ln")
    for number in range(weights.layers):
        states = _layer(made, weights, states, f"l{number}.")
    mean = add("ReduceMean", states, zero, keepdims=0)
    made.fields.append((1, message((1, mean), (2, "mean"), (4, "Identity"))))
    fields = [(2, b"encoder"), (11, _float("embeddings", "tokens", hidden))]
    fields.append((12, _float("mean", hidden)))
    opset = message((1, ""), (2, _OPSET))
    return message((1, 9), (8, opset), (7, message(*made.fields, *fields)))


def _float(name: str, *dimensions: int | str) -> bytes:
    """The name and type of an input or output; a dimension of any length has a name."""
    sizes = [message((1 if isinstance(size, int) else 2, size)) for size in dimensions]
    shape = message(*((1, size) for size in sizes))
    tensor = message((1, _TYPES["float32"]), (2, shape))
    return message((1, name), (2, message((1, tensor))))


def _normalized(made: _Graph, weights: Weights, states: str, name: str) -> Any:
    scale, shift = (weights.vector(f"{name}.{part}", weights.hidden) for part in "wb")
    constants = made.constant(scale), made.constant(shift)
    return made.add("LayerNormalization", states, *constants, epsilon=weights.epsilon)


def _layer(made: _Graph, weights: Weights, states: str, layer: str) -> Any:
    hidden, inner, heads = weights.hidden, weights.inner, weights.heads
    size, add = hidden // heads, made.add
    parts = [_dense(weights, f"{layer}{name}", hidden, hidden) for name in "qkv"]
    parts[0] = tuple(part * np.float32(size**-0.5) for part in parts[0])  # of the scores
    joint = _linear(made, states, *map(np.concatenate, zip(*parts)))
    split = made.constant(np.array([0, 3 * heads, size], np.int64))
    by_head = add("Transpose", add("Reshape", joint, split), perm=[1, 0, 2])
    question, key, content = add("Split", by_head, outputs=3, axis=0, num_outputs=3)
    scores = add("MatMul", question, add("Transpose", key, perm=[0, 2, 1]))
    context = add("Transpose", add("MatMul", add("Softmax", scores), content), perm=[1, 0, 2])
    context = add("Reshape", context, made.constant(np.array([0, hidden], np.int64)))
    context = _linear(made, context, *_dense(weights, f"{layer}ao", hidden, hidden))
    states = _normalized(made, weights, add("Add", context, states), f"{layer}aln")
    wide = _linear(made, states, *_dense(weights, f"{layer}fi", inner, hidden))
    narrow = _linear(made, add("Gelu", wide), *_dense(weights, f"{layer}fo", hidden, inner))
    return _normalized(made, weights, add("Add", narrow, states), f"{layer}oln")


def _dense(weights: Weights, name: str, rows: int, columns: int) -> tuple[Any, ...]:
    """The matrix and the bias of a layer, as floats."""
    return unpacked(weights.blocks(f"{name}.w", rows, columns)), weights.vector(f"{name}.b", rows)


def _linear(made: _Graph, states: str, matrix: Any, bias: Any) -> Any:
    """Multiplies by a matrix [outputs, inputs] in 8 bits and adds the bias."""
    scales = np.abs(matrix).max(axis=1) / np.float32(127)
    small = np.rint(matrix / scales[:, None]).astype(np.int8).T
    rounded, scale, zero = made.add("DynamicQuantizeLinear", states, outputs=3)
    product = made.add("MatMulInteger", rounded, made.constant(small), zero)
    product = made.add("Cast", product, to=_TYPES["float32"])
    product = made.add("Mul", product, made.add("Mul", scale, made.constant(scales)))
    return made.add("Add", product, made.constant(bias))


def tokenizer(weights: Weights) -> bytes:
    """The SentencePiece model, which expects texts whose characters are already replaced."""
    begin, end, padding, unknown = weights.special
    kinds = dict.fromkeys((begin, end, padding, weights.pieces.index("<mask>")), _CONTROL)
    kinds[unknown] = _UNKNOWN
    pieces = [
        (1, message((1, piece), (2, score), (3, kinds.get(id, _NORMAL))))
        for id, (piece, score) in enumerate(zip(weights.pieces, weights.scores))
    ]
    numbers = dict(zip(range(40, 44), (unknown, begin, end, padding)))
    names = {number + 5: weights.pieces[id] for number, id in numbers.items()}
    trainer = message((3, _UNIGRAM), (4, len(pieces)), *numbers.items(), *names.items())
    normalizer = message((1, "identity"), (3, 1), (4, 0), (5, 1))
    return message(*pieces, (2, trainer), (3, normalizer))
