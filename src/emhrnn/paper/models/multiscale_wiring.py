"""How the layers of a multiscale LSTM hang together (multiscale_lstm.py)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wiring:
    """How the layers hang together. `flush_own` keeps a layer's own state, too, out of the gates after its own end
    (MHS-RNN); HM-RNN lets it in."""

    layers: int
    size: int
    flush_own: bool = False

    def sources(self, layer: int) -> tuple[str, ...]:
        """What the gates of a layer read, in the order of the columns of its weight."""
        above = ("above",) if layer < self.layers - 1 else ()
        below = ("below",) if layer > 0 else ()
        return ("own", *above, *below)

    def has_detector(self, layer: int) -> bool:
        return layer < self.layers - 1

    def columns(self, layer: int, source: str) -> slice:
        at = self.sources(layer).index(source)
        return slice(at * self.size, (at + 1) * self.size)
