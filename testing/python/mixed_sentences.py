"""One hundred sentences of every awkward kind, as a JSON array, to compare sentence encoders on.

    mixed_sentences.py OUTPUT.json

Empty, one character, one word, plain, questions, code, numbers, accents, CJK, right-to-left, emoji,
unknown scripts, control characters, and lengths up to beyond the limit of 512 tokens.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

ODD = [
    "",
    " ",
    "a",
    "?",
    "word",
    "antidisestablishmentarianism",
    "x" * 300,  # longer than the tokenizer's longest word: one unknown token
    "The cat sits on the mat.",
    "A kitten is resting on a rug.",
    "Stocks fell sharply after the announcement.",
    "Where is the nearest railway station?",
    "HOW MUCH DOES THIS COST?!",
    'fn main() { println!("{}", 1 << 20); }',
    "SELECT name FROM users WHERE id = 42 AND NOT deleted;",
    "3.14159 -2e10 0x1f 1,000,000 50%",
    "Caf\u00e9 na\u00efve fa\u00e7ade \u00fcber stra\u00dfe \u0141\u00f3d\u017a",
    "Cafe\u0301 with a combining accent",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u6563\u6b65\u3002",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\U0001f600",
    "Great job \U0001f389\U0001f389 see you \U0001f44b\U0001f3fd tomorrow",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family",
    "mixed \u4e2d\u6587 and English \u3068\u65e5\u672c\u8a9e \U0001f680",
    "tabs\tand\nnewlines\r\nhere",
    "zero\u200bwidth\u00adsoft\u00a0hyphen",
    "control\u0000\u0007characters\u001b[0m",
    "[CLS] special [SEP] tokens [MASK] in text [PAD]",
    "e-mail: someone@example.org, page: https://example.org/a?b=c#d",
]

NOUNS = "river engine teacher market garden signal winter bridge novel doctor harbour lamp".split()
VERBS = "crosses repairs follows describes paints measures forgets carries warms opens".split()
PLACES = "at dawn|in the old town|near the coast|without a sound|every year|after the storm".split(
    "|"
)


def plain(rng: np.random.Generator, words: int) -> str:
    """About `words` words of simple English."""
    parts: list[str] = []
    while sum(part.count(" ") + 1 for part in parts) < words:
        subject, target = rng.choice(NOUNS, 2)
        parts.append(f"The {subject} {rng.choice(VERBS)} the {target} {rng.choice(PLACES)}.")
    return " ".join(" ".join(parts).split()[:words])


def sentences() -> list[str]:
    """All one hundred; lengths cover the edges of power-of-two buckets."""
    rng = np.random.default_rng(100)
    lengths = [2, 3, 5, 6, 7, 13, 14, 15, 28, 29, 30, 31, 60, 62, 64, 100, 124, 126, 128, 200, 252]
    lengths += [256, 380, 440, 508, 509, 510, 511, 512, 513, 600]
    lengths += [int(value) for value in rng.integers(3, 40, 100 - len(ODD) - len(lengths))]
    return ODD + [plain(rng, length) for length in lengths]


def main() -> None:
    """Writes the array."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    arguments.output.write_text(json.dumps(sentences(), indent=0) + "\n")


if __name__ == "__main__":
    main()
