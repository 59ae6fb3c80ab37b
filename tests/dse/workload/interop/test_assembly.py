"""Names, connections and remarks of imported layers."""

from __future__ import annotations

from dataclasses import replace

from dse.workload.interop.assembly import Assembly, clean_name, listed


def test_names():
    assert clean_name("a  b\tc\n") == "a_b_c" and clean_name("\x00 \u200b") == "" and len(clean_name("x" * 500)) == 180
    assembly = Assembly("some dir/my net.v2.yaml", weight_bits=8, activation_bits=8)
    assert assembly.builder.name == "my_net.v2"
    assert [assembly.name("a", otherwise="l") for _ in range(3)] == ["a", "a_2", "a_3"] and assembly.name(" ", otherwise="l") == "l"
    assert Assembly("\x01.csv", weight_bits=1, activation_bits=1).builder.name == "network"


def test_an_input_takes_no_name_of_a_layer():
    assembly = Assembly("net.csv", weight_bits=8, activation_bits=8)
    first = assembly.layer(assembly.name("a_input", otherwise=""), (1, 4, 1, 1), {"K": 2})
    assembly.layer(assembly.name("a", otherwise=""), (1, 2, 1, 1), {"K": 2})
    network = assembly.build()
    assert first == "a_input" and [node.name for node in network.nodes] == ["a_input_input", "a_input", "a_input_2", "a"]


def test_connections():
    assembly = Assembly("net.csv", weight_bits=8, activation_bits=8)
    last = assembly.layer("a", (2, 4, 3, 3), {"K": 2, "FY": 1, "FX": 1})
    assert assembly.reads(last, (2, 2, 3, 3), is_linear=False) == "a"
    assert assembly.reads(last, (2, 18, 1, 1), is_linear=False) is None and assembly.reads(last, (2, 17, 1, 1), is_linear=True) is None
    assert assembly.reads(last, (2, 18, 1, 1), is_linear=True) == "a_flat"


def test_remarks_of_the_same_kind_are_one():
    assembly = Assembly("net.csv", weight_bits=8, activation_bits=8)
    assembly.layer("a", (1, 4, 1, 1), {"K": 2})
    for name in ("a", "a", "b", "c", "d", "e"):
        assembly.remark("odd", name)
    assembly.remark("a file")
    network = assembly.build()
    assert network.remarks == ("net.csv: a, b, c, d and 1 more: odd", "net.csv: a file")
    assert network.to_dict()["remarks"] == list(network.remarks)
    assert network == replace(network, remarks=())  # they are about the file, not the network
    assert listed([]) == "" and listed(["x"]) == "x"
