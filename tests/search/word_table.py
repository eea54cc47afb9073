"""Makes the table of word vectors of wordllama's: the parts of words that a text can have, each with its vector.

python -m tests.search.word_table
"""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from notebook_sync.search.embed_static import SPACE, WORD, lower

STATIC = Path(__file__).parents[2] / "notebook_sync/search/static"
# Before it are single bytes, of letters that the vocabulary lacks.
_FIRST = 259


def package() -> Path:
    """The folder of wordllama, which is not imported: that tries to download."""
    return Path(getattr(find_spec("wordllama"), "origin", "")).parent


def tables() -> tuple[str, bytes]:
    """The contents of `words.txt` and `vectors.bin`."""
    config = json.loads((package() / "tokenizers/l2_supercat_tokenizer_config.json").read_text(encoding="utf-8"))
    texts = {token: text for text, token in config["model"]["vocab"].items() if token >= _FIRST and _is_part(text)}
    weights = (package() / "weights/l2_supercat_256.safetensors").read_bytes()
    start = 8 + int.from_bytes(weights[:8], "little")
    (tensor,) = json.loads(weights[8:start]).values()
    stored = np.frombuffer(weights, np.float16, offset=start).reshape(tensor["shape"]).astype(np.float64)
    rows = stored[sorted(texts)]
    # A frequent word's vector is short. Divided by the root of its length, it still weighs less than others.
    rows /= np.sqrt(np.linalg.norm(rows, axis=1, keepdims=True))
    codes = np.clip(np.rint(rows * 127), -128, 127) + 128
    return "\n".join(text for _, text in sorted(texts.items())) + "\n", codes.astype(np.uint8).tobytes()


def _is_part(text: str) -> bool:
    word = text.removeprefix(SPACE)
    return lower(word) == word and (not word or WORD.fullmatch(word) is not None)


if __name__ == "__main__":
    words, vectors = tables()
    STATIC.mkdir(exist_ok=True)
    (STATIC / "words.txt").write_text(words, encoding="utf-8")
    (STATIC / "vectors.bin").write_bytes(vectors)
