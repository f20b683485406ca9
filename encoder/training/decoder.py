"""LASER's decoder: an LSTM that writes a translation from a sentence's vector alone.

Artetxe & Schwenk 2019, section 3.1. It is needed in training only.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from encoder.tokenizer import Tokens
from encoder.training.architectures.network import pad
from encoder.training.options import WORD_DIM, TrainingOptions

LANGUAGE_WIDTH = 32


class Decoder(nn.Module):
    """Predicts each token of a sentence from those before it, its language and a vector."""

    def __init__(
        self, options: TrainingOptions, *, vocabulary: int, dim: int, languages: int, hidden: int
    ) -> None:
        """For ``vocabulary`` tokens and the end, and sentence vectors of ``dim`` dimensions.

        Tokens have vectors as wide as those of the encoder, if it has LASER's architecture.
        """
        super().__init__()
        self._end = vocabulary
        self._dropout = options.dropout
        width = getattr(options.architecture, "word_dim", WORD_DIM)
        self.embed_tokens = nn.Embedding(vocabulary + 1, width)
        nn.init.normal_(self.embed_tokens.weight, std=0.1)
        self.embed_language = nn.Embedding(languages, LANGUAGE_WIDTH)
        self.start = nn.Linear(dim, 2 * hidden)  # the first hidden and cell states
        self.lstm = nn.LSTM(width + dim + LANGUAGE_WIDTH, hidden)
        self.output = nn.Linear(hidden, vocabulary + 1)

    def forward(self, vectors: Tensor, tokens: Tokens, language: int) -> tuple[Tensor, Tensor]:
        """Return logits (N, V + 1) of the N tokens of all sentences, with ends; and these, (N,).

        The vector (B, D) and the language stand beside the token before at every step.
        """
        device = vectors.device
        ids, lengths = pad(tokens, end=self._end)
        right = _packed(ids.to(device), lengths)
        # The end, which begins the sentence, and all tokens but the last.
        before = _packed(ids.roll(1, dims=1).index_fill(1, torch.tensor([0]), self._end), lengths)
        sentence = _sentence_of(right)
        language_vector = self.embed_language(torch.tensor(language, device=device))
        inputs = torch.cat(
            [
                functional.dropout(
                    self.embed_tokens(before.data.to(device)), self._dropout, self.training
                ),
                vectors[sentence],
                language_vector.expand(len(sentence), -1),
            ],
            dim=1,
        )
        hidden, cell = self.start(vectors).unsqueeze(0).chunk(2, dim=2)
        outputs, _ = self.lstm(
            right._replace(data=inputs), (hidden.contiguous(), cell.contiguous())
        )
        outputs = functional.dropout(outputs.data, self._dropout, self.training)
        return self.output(outputs), right.data


def _packed(ids: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(ids, lengths, batch_first=True, enforce_sorted=False)


def _sentence_of(packed: PackedSequence) -> Tensor:
    order = packed.sorted_indices
    assert order is not None
    return torch.cat([order[:size] for size in packed.batch_sizes.tolist()])
