"""`emhrnn export`: a trained model as ONNX, for programs that do not have this package."""
