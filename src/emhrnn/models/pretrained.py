"""Pretrained encoders in Hugging Face's format, from the local disk: a folder with config.json, model.safetensors and a
tokenizer, or the name of a model in the local cache. Nothing is downloaded, and pickled weights are refused.

A run keeps the configuration and the tokenizer beside its own weights (`save`, `from_run`).
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from emhrnn.errors import ConfigError, ExtraError
from emhrnn.files import sha256

WANTED = "give a folder with config.json, model.safetensors and a tokenizer, as transformers' save_pretrained writes it"
DROPOUTS = ("attention_probs_dropout_prob", "attention_dropout")  # of attention weights, in configurations


def load(source: str, *, attention: str | None = None, attention_dropout: float | None = None) -> tuple[Any, Any]:
    """Tokenizer and network. `attention` is the implementation, as transformers names it; None: its default."""
    AutoConfig, AutoModel, AutoTokenizer = _transformers()
    check_source(source)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
        config = AutoConfig.from_pretrained(source, local_files_only=True, trust_remote_code=False)
        for name in DROPOUTS:
            if attention_dropout is not None and hasattr(config, name):
                setattr(config, name, attention_dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # parts that the file lacks are drawn at random
            network = AutoModel.from_pretrained(
                source, config=config, local_files_only=True, use_safetensors=True, trust_remote_code=False,
                dtype=torch.float32, attn_implementation=attention,
            )  # fmt: skip
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"{source}: cannot be loaded ({reason}); {WANTED}") from None
    return tokenizer, _without_pooler(network)


def from_run(folder: str, *, attention: str | None = None) -> tuple[Any, Any]:
    """Tokenizer and network as `save` left them; the network's weights are arbitrary."""
    AutoConfig, AutoModel, AutoTokenizer = _transformers()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.random.fork_rng(devices=[]):
            network = AutoModel.from_config(
                config, trust_remote_code=False, dtype=torch.float32, attn_implementation=attention
            )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"{folder} cannot be read: {reason}") from None
    return tokenizer, _without_pooler(network)


def save(folder: Path, tokenizer: Any, network: Any) -> None:
    """Write what a pretrained encoder is built from, without its weights."""
    network.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def check_source(source: str) -> None:
    """Raise a ConfigError for what can be seen to be wrong without loading it."""
    if not source:
        raise ConfigError(f"the model transformer needs pretrained weights; set model.pretrained: {WANTED}")
    folder = Path(source)
    if not folder.is_dir():
        if folder.is_absolute() or source.startswith("."):
            raise ConfigError(f"{source}: no such folder; {WANTED}")
        return  # the name of a model in the cache
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{folder}: no config.json; {WANTED}")
    if not any(folder.glob("*.safetensors")):
        pickled = [file.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for file in folder.glob(pattern)]
        if pickled:
            raise ConfigError(
                f"{folder / pickled[0]}: pickled weights are not loaded, a pickle can run any code; convert them to "
                "model.safetensors"
            )
        raise ConfigError(f"{folder}: no model.safetensors; {WANTED}")
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")):
        raise ConfigError(f"{folder}: no tokenizer; {WANTED}")


def folder_of(source: str) -> Path | None:
    """Where the weights lie; None: they are named as those of a model in the cache, or not at all."""
    return Path(source).resolve() if source and Path(source).is_dir() else None


def weights_sha256(folder: Path) -> str:
    """Checksum of the encoder's weight files."""
    return sha256(*sorted(folder.glob("*.safetensors")))


def read_config(folder: Path) -> dict[str, Any]:
    """What the folder says of its network, without loading transformers."""
    try:
        return dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise ConfigError(f"{folder / 'config.json'} cannot be read as JSON; {WANTED}") from None


def _transformers() -> tuple[Any, Any, Any]:
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar
    except ImportError:
        raise ExtraError("the model transformer needs transformers; pip install 'emhrnn[transformers]'") from None
    disable_progress_bar()  # type: ignore[no-untyped-call] # it is a second's work
    return AutoConfig, AutoModel, AutoTokenizer


def _without_pooler(network: Any) -> Any:
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # a layer on top of [CLS] that belongs to the pretraining task
    return network
