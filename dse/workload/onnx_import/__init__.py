"""ONNX models as networks: :func:`~dse.workload.onnx_import.importer.load_onnx`. The package ``onnx`` is imported when a model is read."""
