"""`emhrnn export`: a trained model as ONNX, for programs that do not have this package."""

from emhrnn.products.export.onnx_file import Exported, export_onnx

__all__ = ["Exported", "export_onnx"]
