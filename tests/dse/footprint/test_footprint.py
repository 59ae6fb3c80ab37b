"""Footprints against published figures: Graphcore's article of 2017, torchsummary's reports, and counts by hand."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.footprint.footprint import Footprint, Options
from dse.workload.builder import NetworkBuilder
from dse.workload.line import network_of
from dse.workload.network import Network
from dse.workload.zoo import load_network
from hdl.layer import Layer

MB, MIB = 1e6, 1 << 20


def footprint(network: Network | str, bits: int | None = 32, **options) -> Footprint:
    found = load_network(network) if isinstance(network, str) else network
    return Footprint(found, Options(weight_bits=bits, activation_bits=bits, **options))


# -- Graphcore, "Why is so much memory needed for deep neural networks?", 2017 -------------------------------------------------


def network_of_the_article() -> Network:
    """A layer with the article's round figures: 26 M weights, 16 M activations."""
    return network_of(Layer.conv(K=4_000, C=6_500, OY=50, OX=80, FY=1, FX=1))


def resnet50_of_the_paper() -> Network:
    """With the strides in the first convolution of a block, as in 2015; torchvision's has them in the second."""
    b = NetworkBuilder("resnet50-v1")
    x = b.max_pool(conv(b, b.input((1, 3, 224, 224)), K=64, F=7, S=2, P=3), F=3, S=2, P=1)
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for index in range(count):
            stride = 2 if stage and not index else 1
            y = conv(b, conv(b, x, K=width, F=1, S=stride), K=width, F=3, P=1)
            y = b.batch_norm(b.conv(y, K=4 * width, F=1, bias=False))
            if not index:
                x = b.batch_norm(b.conv(x, K=4 * width, F=1, S=stride, bias=False))
            x = b.relu(b.add(y, x))
    b.linear(b.flatten(b.global_average_pool(x)), K=1000)
    return b.build()


def conv(b: NetworkBuilder, x: str, **dimensions: int) -> str:
    return b.relu(b.batch_norm(b.conv(x, bias=False, **dimensions)))


def test_our_resnet50_has_the_articles_counts():
    """About 26 M weights, about 16 M activations; the paper's network is the nearer one."""
    ours, paper = footprint("resnet50"), footprint(resnet50_of_the_paper())
    assert round(ours.weight_bytes / 4 / 1e6) == round(paper.weight_bytes / 4 / 1e6) == 26
    assert round(paper.activations / 1e6) == 16 and 16e6 < ours.activations < 17e6
    for bits, printed_mb in ((32, 168), (16, 84), (8, 42)):
        for network, tolerance in (("resnet50", 0.01), (resnet50_of_the_paper(), 0.004)):
            found = footprint(network, bits)
            assert (found.weight_bytes + found.activation_bytes) / MB == pytest.approx(printed_mb, rel=tolerance)


@pytest.mark.parametrize("bits, weights, activations, both", [(32, 104, 64, 168), (16, 52, 32, 84), (8, 26, 16, 42)])
def test_the_articles_megabytes(bits, weights, activations, both):
    """From the article's own round figures, to the byte."""
    found = footprint(network_of_the_article(), bits).to_dict()
    assert (found["weight_bytes"], found["activation_bytes"]) == (weights * MB, activations * MB)
    assert found["weight_and_activation_bytes"] == both * MB


def test_a_mini_batch_of_32_takes_over_two_gigabytes():
    found = footprint(network_of_the_article(), batch=32).to_dict()
    assert found["weight_and_activation_bytes"] == 2.152e9
    assert 2e9 < footprint("resnet50", batch=32).activation_bytes


def test_training_adds_a_gradient_for_every_weight():
    found = footprint(network_of_the_article(), is_training=True)
    assert (found.weight_gradient_bytes, found.optimizer_bytes) == (104 * MB, 0)
    assert footprint(network_of_the_article(), is_training=True, optimizer="momentum").optimizer_bytes == 104 * MB
    assert footprint(network_of_the_article(), is_training=True, optimizer="adam").optimizer_bytes == 208 * MB
    # weights and gradients; at most input (6,500 x 4,000), output and its gradient.
    assert found.total_bytes == 4 * (2 * 26_000_000 + 26_000_000 + 2 * 16_000_000)


def test_inference_needs_the_current_layers_activations_only():
    """The peak is the addition of the first block: two operands and the sum, each 256 x 56 x 56."""
    found = footprint("resnet50")
    assert found.inference_peak_bytes == 3 * 256 * 56 * 56 * 4
    assert found.total_bytes == found.weight_bytes + found.inference_peak_bytes
    assert footprint("resnet50", is_training=True).inference_peak_bytes == found.inference_peak_bytes


def test_recomputing_in_place_and_narrow_elements_take_less():
    """The article's ways to need less, each for more compute or none."""
    plain = footprint("resnet50", is_training=True, is_unfused=True)
    cheap, root = (footprint("resnet50", is_training=True, is_unfused=True, recompute=how) for how in ("cheap", "sqrt"))
    over = footprint("resnet50", is_training=True, is_unfused=True, in_place=True)
    narrow = footprint("resnet50", 16, is_training=True, is_unfused=True)
    for less in (cheap, root, over, narrow):
        assert less.total_bytes < plain.total_bytes and less.kept_bytes < plain.kept_bytes
    assert plain.recomputed_operations == over.recomputed_operations == 0
    assert 0 < cheap.recomputed_operations < 0.01 * plain.forward_operations
    assert 0.5 * plain.forward_operations < root.recomputed_operations < plain.forward_operations
    assert narrow.total_bytes * 2 == plain.total_bytes


@pytest.mark.parametrize("layer, inflation, asymptotic", [
    (Layer.conv(K=8, C=4, IY=16, IX=16, FY=3, FX=3, PT=1, PL=1, PB=1, PR=1), 9.0, 9.0),
    (Layer.conv(K=8, C=4, IY=16, IX=16, FY=3, FX=3, SY=2, SX=2, PT=1, PL=1, PB=1, PR=1), 9 / 4, 9 / 4),
    (Layer.conv(K=8, C=4, IY=16, IX=16, FY=5, FX=3), 15 * 12 * 14 / 256, 15.0),
    (Layer.conv(K=8, C=4, IY=16, IX=16, FY=1, FX=1, SY=2, SX=2), 1 / 4, 1 / 4)])
def test_lowering_inflates_the_input(layer, inflation, asymptotic):
    """By FY*FX*OY*OX / (IY*IX), about FY*FX/(SY*SX): 9 for 3x3 at stride 1."""
    found = footprint(network_of(layer), 8, lowering="im2col", batch=3)
    row = found.layers[0]
    assert (row.inflation, row.asymptotic_inflation) == (pytest.approx(inflation), asymptotic)
    assert row.lowering_bytes == found.lowering_bytes == round(inflation * 3 * 4 * 16 * 16)
    assert found.total_bytes == footprint(network_of(layer), 8, batch=3).total_bytes + found.lowering_bytes


def test_pixels_and_linear_layers_are_matrices_already():
    for layer in (Layer.conv(K=8, C=4, IY=16, IX=16, FY=1, FX=1), Layer.linear(K=8, C=4)):
        found = footprint(network_of(layer), lowering="im2col")
        assert found.lowering_bytes == 0 and found.layers[0].inflation is None


def test_lowering_is_the_matrix_that_numpy_makes():
    import numpy as np

    layer = Layer.conv(K=2, C=3, IY=9, IX=7, FY=3, FX=2, SY=2, SX=1, PT=1)
    image = np.zeros((3, 10, 7))
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), axis=(1, 2))[:, ::2, ::1]
    assert footprint(network_of(layer), 8, lowering="im2col").lowering_bytes == windows.size


# -- torchsummary (github.com/sksq96/pytorch-summary): tensors of every module at fp32, twice, in MiB --------------------------


@pytest.mark.parametrize("name, both_mib, weights_mib, uncounted", [
    ("resnet18", 62.79, 44.59, 0),  # it counts a block's output where we count the addition
    ("resnet50", 286.56, 97.49, 0),
    ("vgg16", 218.59, 527.79, 2 * 4096),  # two dropouts
    # The outputs of the 7 blocks without an addition, which it counts again.
    ("mobilenetv2", 152.87, 13.37, 16 * 112**2 + 24 * 56**2 + 32 * 28**2 + (64 + 96) * 14**2 + (160 + 320) * 7**2)])
def test_unfused_networks_are_those_of_torchsummary(name, both_mib, weights_mib, uncounted):
    found = footprint(name, is_unfused=True)
    assert round(2 * 4 * (found.activations + uncounted) / MIB, 2) == both_mib
    assert round(found.weight_bytes / MIB, 2) == weights_mib
    assert round(found.input_bytes / MIB, 2) == 0.57


# -- the rest ----------------------------------------------------------------------------------------------------------------


def test_batch_times_activations_alone():
    one, many = footprint("mobilenetv2", 8), footprint("mobilenetv2", 8, batch=7)
    assert many.weight_bytes == one.weight_bytes
    assert many.total_bytes - many.fixed_bytes == 7 * (one.total_bytes - one.fixed_bytes)


def test_operators_have_their_own_bits_without_options():
    """w1a1: 1,542,848 binary weights of CNV; its first layer reads 8-bit pixels."""
    found = footprint("cnv", None)
    network = load_network("cnv")
    assert found.input_bytes == 3 * 32 * 32
    expected = sum(-(-node.parameters * node.weight_bits // 8) for node in network.array_operators)
    assert found.weight_bytes == expected + sum(-(-node.parameters // 8) for node in network.host_operators())
    split = Footprint(network, Options(weight_bits=4, activation_bits=16))
    assert split.weight_bytes == sum(-(-node.parameters * 4 // 8) for node in network.array_operators)
    assert split.input_bytes == 2 * 3 * 32 * 32


def test_unfused_steps_keep_parameters_and_operations():
    for name in ("resnet18", "mobilenetv2"):
        network = load_network(name)
        fused, unfused = footprint(name), footprint(name, is_unfused=True)
        assert fused.weight_bytes == unfused.weight_bytes == 4 * network.parameters
        host = sum(node.ops for node in network.host_operators())
        assert fused.forward_operations == 2 * network.macs + host < unfused.forward_operations


def test_layers_tell_where_memory_goes():
    found = footprint("digits-cnn", 8, is_training=True)
    assert [(row.name, row.parameter_bytes, row.output_bytes, row.storage) for row in found.layers] == [
        ("conv1", 80, 512, "kept"), ("conv2", 1168, 256, "kept"), ("conv3", 4640, 128, "kept"), ("flatten1", 0, 0, "view"),
        ("fc", 1290, 10, "kept"), ("softmax", 0, 10, "kept")]
    assert [row.live_bytes for row in found.layers] == [64 + 512, 64 + 768, 64 + 896, 0, 64 + 906, 64 + 916]
    assert found.layers[-1].backward_live_bytes == 64 + 916 + 10 + 10
    # Then outputs are freed from the end, and gradients grow: input, conv1, conv2, and the gradients of both.
    assert found.peak_event == "backward conv2"
    assert found.total_bytes == 2 * 7178 + 64 + 512 + 256 + 512 + 256
    assert [row.storage for row in footprint("digits-cnn", in_place=True).layers] == ["freed"] * 3 + ["view", "freed", "freed"]


def test_unknown_sizes_are_named():
    b = NetworkBuilder("odd")
    x = b.linear(b.input((1, 4, 1, 1)), K=2)
    b.host("non_zero", x, name="which", shape=(0,))
    assert footprint(b.build()).remarks == ["of unknown size, counted as nothing: which"]


@pytest.mark.parametrize("options, message", [
    ({"batch": 0}, "--batch: out of range, got 0; allowed: 1 to 1099511627776"),
    ({"optimizer": "adm", "is_training": True}, "--optimizer: unknown, got 'adm'; allowed: none, momentum, adam; nearest: adam"),
    ({"recompute": "root", "is_training": True}, "--recompute: unknown, got 'root'; allowed: none, cheap, sqrt; nearest: sqrt"),
    ({"lowering": "im2row"}, "--lowering: unknown, got 'im2row'; allowed: direct, im2col; nearest: im2col"),
    ({"optimizer": "adam"}, "--optimizer: is of training, got 'adam'; add --training"),
    ({"recompute": "sqrt"}, "--recompute: is of training, got 'sqrt'; add --training")])
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        Options(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize("bits, message", [((0, None), "--weights-bits: out of range, got 0; allowed: 1 to 64"),
                                           ((None, 65), "--activations-bits: out of range, got 65; allowed: 1 to 64")])
def test_wrong_bits(bits, message):
    with pytest.raises(InputError) as caught:
        Footprint(load_network("lenet5"), Options(weight_bits=bits[0], activation_bits=bits[1]))
    assert str(caught.value) == message
