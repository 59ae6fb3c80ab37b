"""Loop nests: what each loop does is found whatever it is called, and compared with the nest run point by point."""

from __future__ import annotations

from itertools import product as points
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import InputError
from dse.workload.interop.nest import Axis, Index, Nest, Operand, matrix_rows, recognise

CONV = "O[b k y x] W[k c r s] I[b c 2*y+3*r x+s]"


def nest(text: str, sizes: dict[str, int], weights: str | None = None) -> Nest:
    """``"O[i j] A[i k] B[k j]"``: the output first; an index is a sum of ``coefficient*loop``."""
    operands = []
    for word in text.split("] "):
        name, _, inside = word.strip("]").partition("[")
        indices = []
        for at, index in enumerate(inside.split()):
            terms = [term.rpartition("*") for term in index.split("+")]
            indices.append(Index(tuple((loop, int(coefficient or 1)) for coefficient, _, loop in terms), index, f"{name}[{at}]"))
        operands.append(Operand(name, tuple(indices), name))
    return Nest(sizes, operands[0], (operands[1], operands[2]), "nest", weights)


def message(text: str, sizes: dict[str, int]) -> str:
    with pytest.raises(InputError) as caught:
        recognise(nest(text, sizes))
    return str(caught.value)


def test_convolution():
    found = recognise(nest(CONV, {"b": 2, "k": 5, "c": 3, "y": 4, "x": 6, "r": 3, "s": 2}))
    assert (found.batch, found.groups, found.output_channels, found.input_channels) == (2, 1, 5, 3)
    assert (found.y.outputs, found.y.taps, found.y.stride, found.y.dilation) == (4, 3, 2, 3)
    assert (found.x.outputs, found.x.taps, found.x.stride, found.x.dilation) == (6, 2, 1, 1)
    assert found.activations == "I" and found.input_shape() == (2, 3, 3 * 2 + 2 * 3 + 1, 5 + 1 + 1)
    assert found.dimensions() == {"K": 5, "FY": 3, "FX": 2, "SY": 2, "SX": 1, "DY": 3, "DX": 1}


def test_names_tell_heights_from_widths():
    """Timeloop writes its width first: P and R."""
    sizes = {"k": 1, "c": 1, "P": 5, "Q": 7, "R": 2, "S": 3}
    found = recognise(nest("O[k Q P] W[c k R S] I[c R+P S+Q]", sizes))
    assert (found.y.outputs, found.y.taps, found.x.outputs, found.x.taps) == (7, 3, 5, 2)
    plain = {"k": 1, "c": 1, "m": 5, "q1": 7, "d": 2, "e": 3}
    found = recognise(nest("O[k m q1] W[c k d e] I[c m+d q1+e]", plain))  # nothing to go by: the first is the height
    assert (found.y.outputs, found.y.taps, found.x.outputs, found.x.taps) == (5, 2, 7, 3)


def test_groups_depthwise_and_one_dimension():
    found = recognise(nest("O[g k x] W[g k c r] I[g c x+r]", {"g": 4, "k": 2, "c": 3, "x": 9, "r": 3}))
    assert (found.groups, found.output_channels, found.input_channels) == (4, 2, 3)
    assert (found.y.outputs, found.y.taps, found.x.outputs, found.x.taps) == (1, 1, 9, 3)
    assert found.dimensions()["K"] == 8 and found.dimensions()["G"] == 4 and found.input_shape()[1] == 12
    depthwise = recognise(nest("O[c y x] W[c r s] I[c y+r x+s]", {"c": 6, "y": 4, "x": 4, "r": 3, "s": 3}))
    assert (depthwise.groups, depthwise.output_channels, depthwise.input_channels) == (6, 1, 1)


def test_matrix_products():
    found = recognise(nest("Z[m n] A[m k] B[n k]", {"m": 7, "n": 3, "k": 4}))  # rows are pixels, the second operand the weights
    assert (found.y.outputs, found.x.outputs, found.output_channels, found.input_channels, found.batch) == (7, 1, 3, 4, 1)
    assert found.activations == "A" and not found.is_linear
    turned = recognise(nest("Z[m n] A[m k] B[n k]", {"m": 7, "n": 3, "k": 4}, weights="A"))
    assert (turned.batch, turned.output_channels, turned.activations) == (3, 7, "B")  # and n is a name for batches
    batch = recognise(nest("O[b k] I[b c] W[c k]", {"b": 7, "k": 3, "c": 4}, weights="W"))
    assert batch.is_linear and batch.batch == 7 and batch.dimensions() == {"K": 3}
    heads = recognise(nest("O[h q k] A[h q d] B[h d k]", {"h": 2, "q": 5, "k": 6, "d": 8}))
    assert (heads.groups, heads.y.outputs, heads.output_channels, heads.input_channels) == (2, 5, 6, 8)


def test_long_matrices_become_images():
    assert matrix_rows(4095, where="") == (4095, 1)
    assert matrix_rows(4096, where="") == (64, 64) and matrix_rows(12544, where="") == (112, 112)
    assert recognise(nest("Z[m n] A[m k] B[n k]", {"m": 2 * 4093, "n": 1, "k": 1})).input_shape() == (1, 1, 4093, 2)
    with pytest.raises(InputError, match="^M: rows that are no product of two sizes, got 4099; allowed: sizes of 1 to 4095; add rows"):
        matrix_rows(4099, where="M")


def test_loops_of_one_pass_do_no_harm():
    """A third axis of one, sums with more terms, loops in a single tensor."""
    found = recognise(nest("O[k y x z] W[k c r s t] I[c y+r+u x+s z+t v]",
                           {"k": 2, "c": 3, "y": 4, "x": 5, "z": 1, "r": 3, "s": 3, "t": 1, "u": 1, "v": 1}))
    assert (found.y.outputs, found.y.taps, found.x.outputs, found.x.taps, found.input_channels) == (4, 3, 5, 3, 3)


@pytest.mark.parametrize("text, sizes, what", [
    ("O[k y+r] W[k r] I[k y]", {"k": 2, "y": 3, "r": 3},
     "O[1]: the output's index is a sum or has a coefficient: a transposed or dilated output, no convolution, got 'y+r'"),
    ("O[k y] W[k 2*c r] I[c y+r]", {"k": 2, "y": 3, "c": 3, "r": 2}, "W[1]: the weights' index is a sum or has a coefficient: no "
                                                                     "convolution, got '2*c'"),
    ("O[k y] W[k y+c] I[c y+c]", {"k": 2, "y": 3, "c": 3}, "I[1]: both inputs have sums of loops: no convolution, got 'y+c'"),
    ("O[k y x z] W[k r s t] I[y+r x+s z+t]", {"k": 2, "y": 3, "x": 3, "z": 3, "r": 3, "s": 3, "t": 3},
     "I[2]: a third axis that a filter moves along: 3-D convolutions are not supported, got 'z+t'"),
    ("O[k y] W[k c] I[c y+c]", {"k": 2, "y": 3, "c": 3}, "I[1]: c indexes I twice: a diagonal, no convolution, got 'y+c'"),
    ("O[k y x] W[k c] I[c y+x]", {"k": 2, "y": 3, "x": 3, "c": 3},
     "I[1]: neither a loop nor an output's position times stride plus a filter's times dilation: no convolution, got 'y+x'"),
    ("O[y] W[r] I[y+r s]", {"y": 3, "r": 2, "s": 4}, "I[1]: s indexes I alone: it sums one input alone, no convolution or matrix "
                                                     "product, got 's'"),
    ("O[y q] W[r] I[y+r]", {"y": 3, "r": 2, "q": 4}, "O[1]: q indexes O alone: it repeats the result, no convolution or matrix product, "
                                                     "got 'q'"),
    ("O[m n] A[m k] B[k n]", {"m": 2, "n": 2, "k": 2, "z": 3}, "nest: a loop that indexes nothing, got 'z'"),
    ("O[m n] A[m k] B[k n]", {"m": 2, "n": 2}, "B[0]: k is no loop of the nest, got 'k'; allowed: m, n"),
    ("O[m n] A[m k] B[k n]", {"m": 2, "n": 2, "k": 0}, "nest.k: out of range, got 0; allowed: 1 to 281474976710656"),
    ("O[m n] A[m k] B[k n]", {"m": 2, "n": 2, "k": True}, "nest.k: must be a whole number, got True; allowed: 1 to 281474976710656"),
    ("O[y] W[r] I[y+0*r]", {"y": 3, "r": 2}, "I[0]: coefficients must be at least 1, got 'y+0*r'"),
    ("O[m n] A[m k] B[k n]", {str(at): 1 for at in range(33)}, "nest: too many loops, got 33; allowed: at most 32")])
def test_what_is_none_is_refused_by_its_index(text, sizes, what):
    assert message(text, sizes) == what


# -- point by point ---------------------------------------------------------------------------------------------------


def evaluate(given: Nest, output: np.ndarray, one: np.ndarray, other: np.ndarray) -> None:
    """The nest as it is written."""
    loops = list(given.sizes)
    for point in points(*(range(given.sizes[loop]) for loop in loops)):
        at = dict(zip(loops, point, strict=True))
        places = [tuple(sum(at[loop] * times for loop, times in index.terms) for index in operand.indices)
                  for operand in (given.output, *given.inputs)]
        output[places[0]] += one[places[1]] * other[places[2]]


def extent(given: Nest, operand: Operand) -> list[int]:
    return [sum((given.sizes[loop] - 1) * times for loop, times in index.terms) + 1 for index in operand.indices]


sizes = st.integers(1, 3)


@settings(max_examples=30)  # a nest of up to 6,561 points in Python each
@given(st.fixed_dictionaries({loop: sizes for loop in "gbkcyxrs"}), st.tuples(*[st.integers(1, 3)] * 4), st.randoms(use_true_random=False))
def test_the_same_numbers_as_a_convolution(found, coefficients, random):
    """Order and names of loops and indices at random; the result against a grouped convolution written out with NumPy."""
    names = dict(zip("gbkcyxrs", random.sample([f"d{at}" for at in range(20)], 8), strict=True))
    sy, dy, sx, dx = coefficients
    tensors = {"O": ["g", "b", "k", "y", "x"], "W": ["g", "k", "c", "r", "s"], "I": ["g", "b", "c", f"{sy}*y+{dy}*r", f"{sx}*x+{dx}*s"]}
    written = {}
    for name, indices in tensors.items():
        order = list(indices) if name == "I" else random.sample(indices, len(indices))
        written[name] = (indices, order)
    text = " ".join(f"{name}[{' '.join(written[name][1])}]" for name in ("O", *random.sample(["W", "I"], 2)))
    for letter, name in names.items():
        text = text.replace(f"*{letter}", f"*{name}").replace(f"[{letter} ", f"[{name} ").replace(f"[{letter}]", f"[{name}]")
        text = text.replace(f" {letter} ", f" {name} ").replace(f" {letter}]", f" {name}]")
    loops = [(names[letter], size) for letter, size in found.items()]
    random.shuffle(loops)
    given_nest = nest(text, dict(loops), weights="W")
    product = recognise(given_nest)
    assert product.batch * product.groups * product.output_channels * product.input_channels * prod(
        axis.outputs * axis.taps for axis in (product.y, product.x)) == prod(found.values())
    generator = np.random.default_rng(random.randrange(1 << 30))
    arrays = [generator.integers(-9, 9, extent(given_nest, operand)) for operand in given_nest.inputs]
    result = np.zeros(extent(given_nest, given_nest.output), int)
    evaluate(given_nest, result, *arrays)
    weights, inputs = (arrays[[operand.name for operand in given_nest.inputs].index(name)] for name in ("W", "I"))
    weights = weights.transpose([written["W"][1].index(index) for index in written["W"][0]])
    result = result.transpose([written["O"][1].index(index) for index in written["O"][0]])
    expected = np.zeros_like(result)
    for r, s in points(range(found["r"]), range(found["s"])):
        window = inputs[..., r * dy:r * dy + sy * found["y"]:sy, s * dx:s * dx + sx * found["x"]:sx]
        window = window[..., :found["y"], :found["x"]]
        expected += np.einsum("gbcyx,gkc->gbkyx", window, weights[..., r, s])
    assert np.array_equal(result, expected)
    axes = {(axis.outputs, axis.taps, axis.stride, axis.dilation) for axis in (product.y, product.x)}
    assert axes == {(found["y"], found["r"], sy, dy), (found["x"], found["s"], sx, dx)}
    assert product.input_shape()[2:] == (inputs.shape[3], inputs.shape[4])


def test_an_axis_that_is_not_there():
    assert Axis().inputs == 1
