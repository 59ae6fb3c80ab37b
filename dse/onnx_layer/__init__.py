"""One layer of an ONNX model on the hardware, with the model's own numbers: :func:`~dse.onnx_layer.run.simulate_onnx_layer`."""
