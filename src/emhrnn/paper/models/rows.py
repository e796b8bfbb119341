"""The paper's other baselines, as rows of the table of systems (models/table.py finds them by name)."""

from collections.abc import Sequence

from torch import Tensor, nn

from emhrnn.models.row import LAYERS, VECTORS, Row, Sizes, given, gradient
from emhrnn.paper.models.basis_cust import BasisCust
from emhrnn.paper.models.cma import CMA
from emhrnn.paper.models.cnn_word import CNNWord
from emhrnn.paper.models.grnn import GRNN
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.lstm import MeanLSTM
from emhrnn.paper.models.mhs_rnn import MHSRNN

# The rest are imported when they are built: scikit-learn takes seconds to load.


def build_bag_of_means(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    """A new `bag-of-means`."""
    from emhrnn.paper.models.bag_of_means import BagOfMeans

    return BagOfMeans(table=table, classes=sizes.classes, means=sizes.means, **given(C=sizes.C))


def build_sswe(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    """A new `sswe-svm`."""
    from emhrnn.paper.models.sswe import SSWE

    return SSWE(table=table, classes=sizes.classes, **given(C=sizes.C, epochs=sizes.fit_epochs))


WITH_IDS = ("users", "products", "ids", "id_size")
IDS = "user and product ids"
ZHANG_PAPER = "Zhang et al., NIPS 2015"
TANG_PAPER = "Tang, Qin and Liu, EMNLP 2015"
MHS_PAPER = "Luo and Zhu, arXiv 2106.02562"

ROWS: dict[str, Row] = {
    "hm-rnn": gradient(
        HMRNN, ("layers", "word_size"), reference="Chung, Ahn and Bengio, ICLR 2017", shows=("boundaries",)
    ),
    "mhs-rnn": gradient(MHSRNN, LAYERS, fixed={"attention": False}, reference=MHS_PAPER, shows=("boundaries",)),
    "mhs-rnn-att": gradient(
        MHSRNN,
        LAYERS,
        fixed={"attention": True},
        reference=MHS_PAPER,
        shows=("words", "phrases", "sentences", "boundaries"),
    ),
    "lstm": gradient(MeanLSTM, ("word_size",), reference=ZHANG_PAPER),
    "cnn-word": gradient(
        CNNWord,
        ("features", "dense_size", "length"),
        reference=ZHANG_PAPER,
        # Deep and not normalised: it leaves the start after hundreds of small steps. Zhang's sizes want 0.0003 and 8.
        settings={"training": {"learning_rate": 0.001, "batch_documents": 16}},
    ),
    "conv-grnn": gradient(
        GRNN, ("word_size", "sentence_size"), fixed={"sentences": "convolution"}, reference=TANG_PAPER
    ),
    "lstm-grnn": gradient(GRNN, ("word_size", "sentence_size"), fixed={"sentences": "lstm"}, reference=TANG_PAPER),
    "cma": gradient(
        CMA,
        (*LAYERS, *WITH_IDS),
        reads=("id_count",),
        reference="Ma et al., IJCNLP 2017",
        needs=(IDS,),
        shows=("words", "sentences"),
    ),
    "basis-cust": gradient(
        BasisCust,
        ("word_size", "attention_size", "bases", "customize", *WITH_IDS),
        reads=("id_count",),
        reference="Kim et al., TACL 2019",
        needs=(IDS,),
        shows=("words", "sentences"),
    ),
    "bag-of-means": Row(
        build=build_bag_of_means,
        learns="fit",
        reference=ZHANG_PAPER,
        needs=(VECTORS,),
        reads=("embedding_size", "means", "C"),
    ),
    "sswe-svm": Row(
        build=build_sswe, learns="fit", reference="Tang et al., ACL 2014", reads=("embedding_size", "fit_epochs", "C")
    ),
}
