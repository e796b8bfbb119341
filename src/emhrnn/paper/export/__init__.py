"""`emhrnn export --onnx`: em-hrnn for programs without this package."""
