"""`emhrnn export`: a trained model as ONNX or as a program of torch, for programs that do not have this package."""
