"""What fits: memories of devices, the largest batch and width."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.footprint.footprint import Footprint, Options
from dse.footprint.room import Capacity, load_capacity, room
from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network
from dse.workload.zoo import load_network

GIB = 1 << 30
WAYS = [{}, {"is_training": True, "optimizer": "adam", "recompute": "sqrt", "lowering": "im2col"},
        {"is_training": True, "is_unfused": True, "in_place": True, "recompute": "cheap"}]


def test_memories():
    assert load_capacity("gtx-1050-ti") == Capacity("gtx-1050-ti", 4 * GIB)
    assert load_capacity("dgx-1") == Capacity("dgx-1", 16 * GIB, 8)  # of each P100
    assert load_capacity("papilio-pro") == Capacity("papilio-pro", 8 << 20)  # its SDRAM


@pytest.mark.parametrize("name, message", [
    ("gtx-1050", "--device: unknown device, got 'gtx-1050'; allowed: a reference machine or a board of `nearmac boards`; "
                 "nearest: gtx-1050-ti"),
    ("Papilio", "--device: unknown device, got 'Papilio'; allowed: a reference machine or a board of `nearmac boards`; "
                "nearest: papilio-pro"),
    ("mimas", "--device: has no external memory, got 'mimas'"),
    ("vc707", "--device: the size of its memory is not known, got 'vc707'")])
def test_devices_that_cannot_be(name, message):
    with pytest.raises(InputError) as caught:
        load_capacity(name)
    assert str(caught.value) == message


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_one_more_would_not_fit(options):
    network = load_network("resnet18")
    found = Footprint(network, Options(weight_bits=32, activation_bits=32, batch=4, **options))
    left = room(found, Capacity("some", GIB))
    assert left.fits and left.free_bytes == GIB - found.total_bytes
    for batch, fits in ((left.largest_batch, True), (left.largest_batch + 1, False)):
        bigger = Footprint(network, Options(weight_bits=32, activation_bits=32, batch=batch, **options))
        assert (bigger.total_bytes <= GIB) is fits
    assert found.model.total_bytes(4, left.width_percent) <= GIB < found.model.total_bytes(4, left.width_percent + 1)


def test_resnet50_on_a_gtx_1050_ti():
    """The reader's question. By hand: a ResNet-50 of fp32 takes 2 x 4 x 25,557,032 bytes and about 4 x 16.8 M an image."""
    network = load_network("resnet50")
    found = Footprint(network, Options(weight_bits=32, activation_bits=32, is_training=True))
    left = room(found, load_capacity("gtx-1050-ti"))
    assert left.largest_batch == pytest.approx((4 * GIB - 8 * 25_557_032) / (4 * 16.84e6 + 4 * 150_528), rel=0.02)
    assert left.to_dict()["fits"] is True


def test_nothing_fits_where_weights_do_not():
    found = Footprint(load_network("vgg16"))
    left = room(found, Capacity("tiny", 1 << 20))
    assert not left.fits and left.largest_batch == 0 and left.free_bytes == (1 << 20) - found.total_bytes
    assert 0 <= left.width_percent < 10


def test_a_single_layer_has_no_width():
    """Its channels are the answer's; so are those of layers that are added to it."""
    b = NetworkBuilder("sum")
    x = b.input((1, 4, 1, 1))
    b.add(b.linear(x, K=4), b.linear(x, K=4))
    assert room(Footprint(b.build()), Capacity("some", GIB)).width_percent is None


def wide(times: int) -> Network:
    """Everything that grows with width: layers between others, a depthwise one, a residual branch, pooling; input and answer stay."""
    b = NetworkBuilder("wide")
    x = b.relu(b.batch_norm(b.conv(b.input((1, 3, 16, 16)), "stem", K=8 * times, F=3, P=1, bias=False)))
    y = b.conv(x, "depthwise", K=8 * times, F=3, P=1, G=8 * times)
    x = b.max_pool(b.add(x, b.conv(y, "point", K=8 * times, F=1), name="sum"), "pool", F=2, S=2)
    x = b.linear(b.flatten(x), "hidden", K=20 * times)
    b.softmax(b.linear(x, "answer", K=5), "softmax")
    return b.build()


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("times", [2, 3])
def test_width_is_that_of_a_network_with_as_many_channels(options, times):
    given = Options(weight_bits=16, activation_bits=8, **options)
    plain, wider = Footprint(wide(1), given), Footprint(wide(times), given)
    assert plain.model.total_bytes(1, 100 * times) == wider.total_bytes
    assert plain.model.fixed_bytes(100 * times) == wider.fixed_bytes
    assert room(plain, Capacity("just", wider.total_bytes)).width_percent == 100 * times
