"""`emhrnn export`: a trained model for programs without this package: a web page (evidence) or ONNX (em-hrnn)."""

from emhrnn.errors import ConfigError

OPTIONS = {"evidence": "--web", "em-hrnn": "--onnx"}  # of the command, by model


def unsupported(what: str) -> ConfigError:
    """The error for a run that an export cannot take; `what` the run is."""
    known = " and ".join(f"{model} with {option}" for model, option in OPTIONS.items())
    return ConfigError(f"this run is {what}; only {known} can be exported, with learned segmentation; train one")
