"""The generated parts of footprint.md: what Graphcore's article says about ResNet-50, and our counts."""

from __future__ import annotations

from dse.footprint.footprint import Footprint, Options
from dse.footprint.room import load_capacity, room
from dse.workload.zoo import load_network

BITS = 32


def _footprint(bits: int = BITS, **options: object) -> Footprint:
    given = {"weight_bits": bits, "activation_bits": bits, **options}
    return Footprint(load_network("resnet50"), Options(**given))  # type: ignore[arg-type]


def article() -> str:
    """Cited value, our value, the command."""
    plain, training = _footprint(), _footprint(is_training=True, optimizer="adam")
    lowered = {row.name: row for row in _footprint(lowering="im2col").layers}
    rows = [("weights, activations of one forward pass", "about 26 M, about 16 M",
             f"{plain.weight_bytes * 8 // BITS:,}, {plain.activations:,}", "--bits 32")]
    for bits, cited in ((32, "168 MB"), (16, "84 MB"), (8, "42 MB")):
        found = _footprint(bits)
        rows.append((f"both at {bits} bits", cited, _mb(found.weight_bytes + found.activation_bytes), f"--bits {bits}"))
    many = _footprint(batch=32)
    rows += [("both, mini-batch of 32", "2.152 GB", _mb(many.weight_bytes + many.activation_bytes), "--bits 32 --batch 32"),
             ("a gradient for every weight", "104 MB", _mb(training.weight_gradient_bytes), "--bits 32 --training"),
             ("inference: activations at a time", "the current layer's", _mb(plain.inference_peak_bytes), "--bits 32"),
             ("im2col of a 3x3 convolution, stride 1", "9x", f"{lowered['layer1.0.conv2'].inflation:g}x", "--bits 32 --lowering im2col")]
    lines = [f"| {what} | {cited} | {ours} | `{command}` |" for what, cited, ours, command in rows]
    return "\n".join(["| ResNet-50 | article | ours | `nearmac memory resnet50` .. |", "| --- | --- | --- | --- |", *lines])


def savings() -> str:
    """What each way to need less saves and costs, and the batch that a 4 GB device then takes."""
    ways: list[tuple[str, dict[str, object]]] = [
        ("--unfused", {}), ("--unfused --in-place", {"in_place": True}), ("--unfused --recompute cheap", {"recompute": "cheap"}),
        ("--unfused --recompute sqrt", {"recompute": "sqrt"})]
    device = load_capacity("gtx-1050-ti")
    plain = _footprint(batch=16, is_training=True)
    rows = [("", plain)] + [(text, _footprint(batch=16, is_training=True, is_unfused=True, **given)) for text, given in ways]
    lines = [f"| {f'`{text}`' if text else 'fused'} | {_mb(found.kept_bytes)} | {_mb(found.total_bytes)} | "
             f"{found.recomputed_operations / found.forward_operations:.1%} | {room(found, device).largest_batch} |"
             for text, found in rows]
    return "\n".join(["| ResNet-50, fp32, batch 16, training | kept | in all | computed again | largest batch in 4 GiB |",
                      "| --- | --- | --- | --- | --- |", *lines])


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"


PARTS = {"footprint of the article": article, "footprint savings": savings}
