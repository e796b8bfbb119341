"""The paper's other baselines, and n-grams, as rows of the table of models (models/table.py finds them by name)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from emhrnn.models.model import DocumentModel
from emhrnn.models.row import VECTORS, Facts, IdsConfig, Row, network
from emhrnn.paper.models.bag_of_means import BagOfMeans, BagOfMeansConfig
from emhrnn.paper.models.basis_cust import BasisCust, BasisCustConfig
from emhrnn.paper.models.cma import CMA, CMAConfig
from emhrnn.paper.models.cnn_word import CNNWord, CNNWordConfig
from emhrnn.paper.models.grnn import GRNN, GRNNConfig
from emhrnn.paper.models.hm_rnn import HMRNN, HMRNNConfig
from emhrnn.paper.models.lstm import LSTMConfig, MeanLSTM
from emhrnn.paper.models.mhs_rnn import MHSRNN, MHSRNNAttConfig, MHSRNNConfig
from emhrnn.paper.models.product import NGramsConfig, build_ngrams
from emhrnn.paper.models.sswe import SSWE, SSWEConfig


def _with_ids(model: Callable[..., DocumentModel], config: type[IdsConfig], **facts: Any) -> Row:
    """A network that reads users and products."""

    def build(config: IdsConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int) -> DocumentModel:
        return model(
            config, table=table, classes=facts.classes, generator=torch.Generator().manual_seed(seed),
            users=facts.users, products=facts.products,
        )  # fmt: skip

    shows = ("words", "sentences")
    return Row(config=config, build=build, learns="gradient", needs=("user and product ids",), shows=shows, **facts)


def _fitted(model: Callable[..., DocumentModel]) -> Callable[..., DocumentModel]:
    """Builds a model that is fitted in one go from word vectors."""
    return lambda config, facts, table, vocabulary, seed: model(config, table=table, classes=facts.classes)


ZHANG_PAPER = "Zhang et al., NIPS 2015"
TANG_PAPER = "Tang, Qin and Liu, EMNLP 2015"
MHS_PAPER = "Luo and Zhu, arXiv 2106.02562"

ROWS: dict[str, Row] = {
    "hm-rnn": network(HMRNN, HMRNNConfig, reference="Chung, Ahn and Bengio, ICLR 2017", shows=("boundaries",)),
    "mhs-rnn": network(MHSRNN, MHSRNNConfig, reference=MHS_PAPER, shows=("boundaries",)),
    "mhs-rnn-att": network(
        MHSRNN, MHSRNNAttConfig, reference=MHS_PAPER, shows=("words", "phrases", "sentences", "boundaries")
    ),
    "lstm": network(MeanLSTM, LSTMConfig, reference=ZHANG_PAPER),
    "cnn-word": network(
        CNNWord,
        CNNWordConfig,
        reference=ZHANG_PAPER,
        # Deep and not normalised: it leaves the start after hundreds of small steps. Zhang's sizes want 0.0003 and 8.
        defaults={"training": {"learning_rate": 0.001, "batch_documents": 16}},
    ),
    "conv-grnn": network(partial(GRNN, sentences="convolution"), GRNNConfig, reference=TANG_PAPER),
    "lstm-grnn": network(partial(GRNN, sentences="lstm"), GRNNConfig, reference=TANG_PAPER),
    "cma": _with_ids(CMA, CMAConfig, reference="Ma et al., IJCNLP 2017"),
    "basis-cust": _with_ids(BasisCust, BasisCustConfig, reference="Kim et al., TACL 2019"),
    "bag-of-means": Row(
        config=BagOfMeansConfig,
        build=_fitted(BagOfMeans),
        learns="fit",
        reference=ZHANG_PAPER,
        needs=(VECTORS,),
    ),
    "ngrams": Row(config=NGramsConfig, build=build_ngrams, learns="gradient", reference="this project"),
    "sswe-svm": Row(config=SSWEConfig, build=_fitted(SSWE), learns="fit", reference="Tang et al., ACL 2014"),
}
