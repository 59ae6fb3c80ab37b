"""What a sweep is made from: differences by name, and keys that see them."""

from __future__ import annotations

import json

from dse.sweep.inputs import describe_differences, digest, versions

WAS = {"format": 1, "space": {"rows": [1, 2], "where": []}, "layers": [{"K": 3}, {"K": 4}]}


def changed(**changes):
    return {**json.loads(json.dumps(WAS)), **changes}


def test_no_difference():
    assert describe_differences(WAS, changed()) is None
    assert describe_differences({"a": (1, 2)}, {"a": [1, 2]}) is None  # the same in JSON


def test_differences_name_key_and_both_values():
    assert describe_differences(WAS, changed(space={"rows": [1, 2, 4], "where": []})) == "space.rows was [1, 2], is [1, 2, 4]"
    assert describe_differences(WAS, changed(layers=[{"K": 3}, {"K": 5}])) == "layers[1].K was 4, is 5"
    assert describe_differences(WAS, changed(layers=[{"K": 3}])) == "layers was 2 entries, is 1 entries"
    assert describe_differences(WAS, changed(space={"rows": [1, 2]})) == "space.where was [], is not there"
    assert describe_differences(WAS, changed(more=1)) == "more was not there, is 1"


def test_many_differences_are_counted():
    was, now = {str(at): at for at in range(5)}, {str(at): at + 1 for at in range(5)}
    assert describe_differences(was, now) == "0 was 0, is 1; 1 was 1, is 2; 2 was 2, is 3; and 2 more"


def test_the_key_sees_values_and_not_the_order_of_keys():
    assert digest(WAS) == digest(dict(reversed(WAS.items())))
    assert digest(WAS) != digest(changed(format=2))


def test_versions_name_what_could_change_a_byte():
    assert set(versions()) == {"nearmac", "source", "numpy", "pyarrow"}
    assert all(versions().values())
