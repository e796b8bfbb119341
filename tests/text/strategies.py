"""Texts that are hard to read: every kind of blank, mark, quote, emoji, markup and lone surrogate."""

from hypothesis import strategies as st

FRAGMENTS = [
    "Hello", "world", "don't", "it’s", "CAN'T", "we'll", "'s", "n't", "o'clock", "rock'n'roll", "'90s", "girls'",
    "well-known", "--", "-", "—", "U.S.", "Mr.", "e.g.", "etc.", "Ph.D.", "AT&T", "3.14", "1,000", "10/10", "9:30pm",
    "...", "....", "!!!", "?!", "!", "?", ".", ",", ":", ";", ":-)", ":)", "<3", "(", ")", '"', "“", "”", "‘", "’",
    "http://a.b/c?d=e.", "www.x.org,", "me@x.co.uk", "amazon.com", "#tag", "@user", "<br />", "<BR>", "<br/>", "<", ">",
    "<i>", "日本語", "テスト。", "한국어", "हिन्दी", "ไทย", "مرحبا؟", "שלום", "İ", "ß", "ſ", "e\u0301", "\u0301", "½",
    "👨‍👩‍👧", "👍🏽", "🇩🇪", "🇩", "❤️", "😀", "\u200d", "\ufe0f", "\x00", "\ufeff", "\ud800", "\udfff", "\U000e0001",
    "_", "__x", "plain", "plain.", '"plain', "(x)",
    " ", "  ", "\n", "\n\n", "\r\n\r\n", "\n \n", "\t", "\xa0", "\x85", "\u2028", "\u3000", "\x1c", "\x0b",
]  # fmt: skip

anything = st.text(st.characters(exclude_categories=[]), max_size=60)
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
texts = st.one_of(fragments, st.lists(st.one_of(fragments, anything), max_size=5).map("".join))

# Characters whose bytes, widths and neighbours matter: combining marks, emoji with joiners, both directions, line ends.
hard_texts = st.text(
    st.sampled_from("aB1 é\u0301\u0308😀👍\U0001f3fd\u200d\ufe0fשל\u202e\u2066م\r\n.,!?'’\"()-"), max_size=40
)
