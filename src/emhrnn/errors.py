"""What went wrong, in one line a user can act on: what was given, what is allowed, what to do."""


class EmhrnnError(Exception):
    """Base of every error that a user's input can cause. The command line prints it and exits with code 2."""


class DataError(EmhrnnError, ValueError):
    """A document, file or column that cannot be used as given. A ValueError, as scikit-learn and its users expect."""


class ConfigError(EmhrnnError, ValueError):
    """A setting that is unknown, out of range or at odds with another. A ValueError, as scikit-learn's are."""


class ExtraError(ConfigError):
    """A library that only an extra of the package installs is missing."""


class CheckpointError(EmhrnnError):
    """A run, checkpoint or prepared corpus that is missing, corrupt or of another version."""


class TrainingError(EmhrnnError):
    """Training that cannot go on, for example because a loss is not a number."""


class PeerError(EmhrnnError):
    """Another process of the same job has failed and tells why, so this one ends without a word."""
