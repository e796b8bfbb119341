"""Pretrained encoders in Hugging Face's format, from the local disk: a folder with config.json, model.safetensors and a
tokenizer, or the name of a model in the local cache. Nothing is downloaded, and pickled weights are refused.

A run keeps the configuration and the tokenizer beside its own weights (`save`, `from_run`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from emhrnn.errors import ConfigError
from emhrnn.extras import need

WANTED = "give a folder with config.json, model.safetensors and a tokenizer, as transformers' save_pretrained writes it"
OFFLINE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
DROPOUTS = ("attention_probs_dropout_prob", "attention_dropout")  # of attention weights, in configurations


def load(source: str, *, attention: str | None = None, attention_dropout: float | None = None) -> tuple[Any, Any]:
    """Tokenizer and network. `attention` is the implementation, as transformers names it; None: its default."""
    check_source(source)
    with _read(source, "{source}: cannot be loaded ({reason}); " + WANTED) as (AutoModel, tokenizer, config):
        for name in DROPOUTS:
            if attention_dropout is not None and hasattr(config, name):
                setattr(config, name, attention_dropout)
        torch.manual_seed(0)  # parts that the file lacks are drawn at random
        network = AutoModel.from_pretrained(
            source, config=config, use_safetensors=True, dtype=torch.float32, attn_implementation=attention, **OFFLINE
        )
    return tokenizer, _without_pooler(network)


def from_run(folder: str, *, attention: str | None = None) -> tuple[Any, Any]:
    """Tokenizer and network as `save` left them; the network's weights are arbitrary."""
    with _read(folder, "{source} cannot be read: {reason}") as (AutoModel, tokenizer, config):
        network = AutoModel.from_config(
            config, trust_remote_code=False, dtype=torch.float32, attn_implementation=attention
        )
    return tokenizer, _without_pooler(network)


@contextmanager
def _read(source: str, told: str) -> Iterator[tuple[Any, Any, Any]]:
    """The class of networks, the tokenizer and the configuration, for a block that builds the network; what goes wrong
    is `told` as a ConfigError. Random numbers of torch are put back as they were."""
    need("transformers", "the model transformer", "transformers")
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call] # it is a second's work
    try:
        with torch.random.fork_rng(devices=[]):
            tokenizer = AutoTokenizer.from_pretrained(source, **OFFLINE)
            yield AutoModel, tokenizer, AutoConfig.from_pretrained(source, **OFFLINE)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ConfigError(told.format(source=source, reason=str(error).strip().splitlines()[0])) from None


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


def _without_pooler(network: Any) -> Any:
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # a layer on top of [CLS] that belongs to the pretraining task
    return network
