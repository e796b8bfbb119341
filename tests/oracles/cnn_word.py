"""CNN-word, one document, one window at a time."""

import torch
from torch import Tensor


def convolve(layer, frames: list[Tensor]) -> list[Tensor]:
    width = layer.weight.shape[2]
    return [
        torch.relu(sum(layer.weight[:, :, j] @ frames[t + j] for j in range(width)) + layer.bias)
        for t in range(len(frames) - width + 1)
    ]


def pool(frames: list[Tensor]) -> list[Tensor]:
    return [torch.stack(frames[3 * t : 3 * t + 3]).max(0).values for t in range(len(frames) // 3)]


def logits(model, sentences: list[list[int]]) -> Tensor:
    vectors = model.embedding.vectors()
    words = [word for sentence in sentences for word in sentence][: model.length]
    frames = [vectors[word] for word in words] + [torch.zeros_like(vectors[0])] * (model.length - len(words))
    c1, c2, c3, c4, c5, c6 = model.convolutions
    frames = pool(convolve(c2, pool(convolve(c1, frames))))
    frames = pool(convolve(c6, convolve(c5, convolve(c4, convolve(c3, frames)))))
    v = torch.stack(frames, dim=1).flatten()
    for layer in (model.first, model.second):
        v = torch.relu(layer.weight @ v + layer.bias)
    return model.output.weight @ v + model.output.bias
