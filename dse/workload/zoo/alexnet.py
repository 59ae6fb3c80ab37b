"""AlexNet: the original with two groups, and the variant for one GPU.

``alexnet``: A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet Classification with Deep Convolutional Neural Networks", NIPS 2012:
input 227 x 227 (the paper prints 224, which its 55 x 55 maps contradict), conv2, conv4 and conv5 in two groups. Published counts:
60,965,224 parameters and 724,406,816 MACs (netscope and Caffe's model zoo; "60 million parameters" in the paper); convolutions 2.3 M
weights and 666 M MACs (Chen et al., Eyeriss, ISSCC 2016). conv3 reads both halves, so it has no groups.

``alexnet-owt``: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014, as in torchvision: input 224 x
224, no groups, fewer channels, no response normalisation. torchvision documents 61,100,840 parameters and 0.714 GMAC. Its adaptive
pooling to 6 x 6 does nothing at this input size.
"""

from __future__ import annotations

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network


def alexnet(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("alexnet", weight_bits=weight_bits, activation_bits=activation_bits,
                       title="AlexNet 2012, two groups")
    x = b.input((1, 3, 227, 227))
    x = b.relu(b.conv(x, "conv1", K=96, F=11, S=4))
    x = b.max_pool(b.local_response_norm(x, "norm1"), "pool1", F=3, S=2)
    x = b.relu(b.conv(x, "conv2", K=256, F=5, P=2, G=2))
    x = b.max_pool(b.local_response_norm(x, "norm2"), "pool2", F=3, S=2)
    x = b.relu(b.conv(x, "conv3", K=384, F=3, P=1))
    x = b.relu(b.conv(x, "conv4", K=384, F=3, P=1, G=2))
    x = b.relu(b.conv(x, "conv5", K=256, F=3, P=1, G=2))
    x = b.flatten(b.max_pool(x, "pool5", F=3, S=2))
    x = b.relu(b.linear(x, "fc6", K=4096))
    x = b.relu(b.linear(x, "fc7", K=4096))
    b.softmax(b.linear(x, "fc8", K=1000), "softmax")
    return b.build()


def alexnet_owt(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("alexnet-owt", weight_bits=weight_bits, activation_bits=activation_bits,
                       title="AlexNet for one GPU")
    x = b.input((1, 3, 224, 224))
    x = b.max_pool(b.relu(b.conv(x, "conv1", K=64, F=11, S=4, P=2)), "pool1", F=3, S=2)
    x = b.max_pool(b.relu(b.conv(x, "conv2", K=192, F=5, P=2)), "pool2", F=3, S=2)
    for name, channels in (("conv3", 384), ("conv4", 256), ("conv5", 256)):
        x = b.relu(b.conv(x, name, K=channels, F=3, P=1))
    x = b.flatten(b.max_pool(x, "pool5", F=3, S=2))
    x = b.relu(b.linear(x, "fc6", K=4096))
    x = b.relu(b.linear(x, "fc7", K=4096))
    b.linear(x, "fc8", K=1000)
    return b.build()


NETWORKS = {"alexnet": alexnet, "alexnet-owt": alexnet_owt}
