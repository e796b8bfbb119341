"""Raw text to words: sentences, tokens with character offsets, vocabulary, pretrained vectors.

document = read_document("It's good.")           # words, their spans in the text, sentence ends
encoder = WordEncoder(vocabulary)                # encoder.encode(texts): word ids; locate(texts): spans, too
vectors = read_vectors(path)                     # vectors.lookup(vocabulary, generator=...)
"""

from emhrnn.text.encoder import Document as Document
from emhrnn.text.encoder import Encoded as Encoded
from emhrnn.text.encoder import Located as Located
from emhrnn.text.encoder import LocatedTexts as LocatedTexts
from emhrnn.text.encoder import Text as Text
from emhrnn.text.encoder import TextLimits as TextLimits
from emhrnn.text.encoder import TextSettings as TextSettings
from emhrnn.text.encoder import WordEncoder as WordEncoder
from emhrnn.text.encoder import read_document as read_document
from emhrnn.text.vectors import Vectors as Vectors
from emhrnn.text.vectors import read_vectors as read_vectors
from emhrnn.text.vocabulary import UNK as UNK
from emhrnn.text.vocabulary import Vocabulary as Vocabulary
from emhrnn.text.words import split_sentences as split_sentences
from emhrnn.text.words import tokenise as tokenise
