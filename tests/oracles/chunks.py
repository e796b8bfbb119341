"""Agreement of boundaries with plain sets."""


def chunk_ends(tags: list[str]) -> set[int]:
    """Places of the last words of one sentence's chunks (words outside are chunks of their own), but for its last."""
    chunks: list[list[int]] = []
    for place, tag in enumerate(tags):
        if tag.startswith("I-") and chunks:
            chunks[-1].append(place)
        else:
            chunks.append([place])
    return {chunk[-1] for chunk in chunks} - {len(tags) - 1}


def scores(found: set, gold: set) -> tuple[float, float, float]:
    both = len(found & gold)
    precision, recall = both / max(len(found), 1), both / max(len(gold), 1)
    return precision, recall, 2 * precision * recall / (precision + recall) if both else 0.0
