"""`emhrnn export`: a trained model for programs without this package: a web page (evidence)."""

from emhrnn.errors import ConfigError


def unsupported(what: str) -> ConfigError:
    """The error for a run that an export cannot take; `what` the run is."""
    return ConfigError(f"this run is {what}; only evidence with learned segmentation can be exported; train one")
