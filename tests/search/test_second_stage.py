"""The second stage: a model of sentences adds to the score, and its trouble costs nothing but that."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from notebook_sync import Notebook
from notebook_sync.errors import BackendDown, MissingExtra
from notebook_sync.search.embed import OnnxEmbedder, OpenAiEmbedder, second_stage_of
from notebook_sync.search.meaning import SECOND_STAGE
from notebook_sync.search.query import Found, Searcher
from notebook_sync.search.vectors import Vector, pack_vector
from notebook_sync.services.upkeep import embed_missing
from notebook_sync.services.watching import watch_notebook
from notebook_sync.settings import SearchTable
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is
from tests.search.conftest import ANALYZER, FakeEmbedder, add, ids
from tests.search.embedding_server import EmbeddingServer, vectors
from tests.services.conftest import write_files

NOTES = {
    "pages/a.md": "# Alpha\n\nThe ferry leaves at nine.\n",
    "pages/b.md": "# Beta\n\nThe ferry leaves at nine.\n",
    "pages/c.md": "# Gamma\n\nBoil leeks.\n",
}


EMBEDDED = ["Alpha\nThe ferry leaves at nine.", "Beta\nThe ferry leaves at nine.", "Gamma\nBoil leeks."]


class Preferring(FakeEmbedder):
    """Queries are near to the texts that have its word, and far from all others."""

    model = "preferring"

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.before(texts)
        self.asked += texts
        return [pack_vector([1, 0] if self.word in text else [0, 1]) for text in texts]

    def embed_query(self, query: str, rarity: Any) -> Vector:
        self.before([query])
        return pack_vector([1, 0])


def embed_all(searcher: Searcher) -> Preferring:
    """Make the vectors of the second stage; returns its embedder."""
    assert searcher.second
    assert searcher.second.embed(100).behind == 0
    assert isinstance(searcher.second.embedder, Preferring)
    return searcher.second.embedder


@pytest.fixture
def searcher(index: Index) -> Searcher:
    add(index, NOTES)
    return Searcher(index, ANALYZER, FakeEmbedder(), Preferring("Beta"))


# ---- its part of the score


def test_it_adds_to_the_score_of_what_is_found_and_finds_nothing_itself(index: Index, searcher: Searcher) -> None:
    alone = Searcher(index, ANALYZER, FakeEmbedder())
    first = alone.search("ferry nine", explain=True)
    embed_all(searcher)
    found = searcher.search("ferry nine", explain=True)
    assert (sorted(ids(first)), ids(found), found.degraded) == (["a", "b"], ["b", "a"], None)
    scores = {hit.id: hit.score for hit in first.hits}
    assert [hit.score - scores[hit.id] for hit in found.hits] == pytest.approx([0.3, 0.0])
    assert [hit.parts and hit.parts["second_stage"] for hit in found.hits] == [1.0, 0.0]
    assert ids(searcher.search("boat")) == []
    by_words = [each.search("ferry nine", mode="keyword").hits for each in (searcher, alone)]
    assert by_words[0] == by_words[1]


def test_neighbours_share_it(index: Index) -> None:
    add(index, {f"talks/{at}.md": f"# Talk\n\n{text}\n" for at, text in enumerate(["ferry", "pier Beta", "ferry"])})
    searcher = Searcher(index, ANALYZER, FakeEmbedder(), Preferring("Beta"))
    plain = {hit.id: hit.score for hit in Searcher(index, ANALYZER, FakeEmbedder()).search("ferry pier").hits}
    embed_all(searcher)
    raised = {hit.id: hit.score - plain[hit.id] for hit in searcher.search("ferry pier").hits}
    assert raised == pytest.approx({"talks/1": 0.3, "talks/0": 0.09, "talks/2": 0.09})


def test_facts_and_sections_are_found_with_and_without_it(searcher: Searcher) -> None:
    embed_all(searcher)
    assert ids(searcher.search("ferry", section="Alpha")) == ["a"]
    assert searcher.search("ferry", collection="facts") == Found([], None)


# ---- where it is missing


def test_without_its_vectors_the_first_stage_answers_and_says_so(index: Index, searcher: Searcher) -> None:
    first = Searcher(index, ANALYZER, FakeEmbedder()).search("ferry nine")
    found = searcher.search("ferry nine")
    assert found.hits == first.hits
    assert "second stage" in (found.degraded or "")
    assert embed_all(searcher).asked == EMBEDDED  # a search makes no vectors of notes
    assert searcher.search("ferry nine").degraded is None


@pytest.mark.parametrize("error", [BackendDown("a server", "status 503"), MissingExtra("the second stage", "onnx")])
def test_its_trouble_is_said_and_costs_nothing_else(index: Index, searcher: Searcher, error: Exception) -> None:
    def fail(_texts: Sequence[str]) -> None:
        raise error

    embed_all(searcher).before = fail
    found = searcher.search("ferry nine")
    assert found.hits == Searcher(index, ANALYZER, FakeEmbedder()).search("ferry nine").hits
    assert found.degraded == f"the second stage: {error}"


def test_its_vectors_go_with_their_note(index: Index, searcher: Searcher) -> None:
    embed_all(searcher)
    index.documents.rename({"pages/a": "pages/z"})
    index.documents.delete(["pages/b"])
    of_second = Is("model", "=", "preferring")
    kept = {id.removeprefix(f"{SECOND_STAGE}documents:") for (id,) in index.vectors.tuples(("id",), of_second)}
    assert kept == {"pages/z", "pages/c"}


# ---- who makes its vectors


def test_the_process_that_follows_the_notebook_makes_them(folder: Path, server: EmbeddingServer) -> None:
    server.answer = lambda texts: vectors([[1.0, 0.0] if "Beta" in text else [0.0, 1.0] for text in texts])
    toml = f'[search]\nsecond_stage = "openai:any"\nbase_url = "{server.url}"\n'
    with Notebook.open(write_files(folder, {**NOTES, "notebook.toml": toml})) as notebook:
        notebook.sync()
        assert server.asked == []
        events = watch_notebook(notebook.core)
        next(event for event in events if event.kind == "ready")
        while embed_missing(notebook.core, 1, "second_stage"):
            pass
        events.close()
        found = notebook.search("When does the ferry leave Beta")
        assert (found.results[0].path, found.degraded) == ("pages/b.md", None)
    assert {body["model"] for body, _ in server.asked} == {"any"}


def test_the_settings_name_it(tmp_path: Path) -> None:
    assert second_stage_of(SearchTable(), tmp_path) is None
    server = second_stage_of(SearchTable(second_stage="openai:m", base_url="http://127.0.0.1:9/v1"), tmp_path)
    model = second_stage_of(SearchTable(second_stage="onnx:models/mini"), tmp_path)
    assert isinstance(server, OpenAiEmbedder)
    assert isinstance(model, OnnxEmbedder)
    names = ("openai:m@http://127.0.0.1:9/v1", f"onnx:{tmp_path}/models/mini:")
    assert (server.model, model.model) == names


# ---- a model in a folder: the runtime is large, so a small one of the same interface replaces it


class Session:
    """`onnxruntime.InferenceSession` of a model that answers with a vector for each token: its id, and one."""

    names = ("input_ids", "attention_mask")
    answer: Any = None

    def __init__(self, path: str, _options: object, providers: list[str]) -> None:
        if not Path(path).read_bytes():
            raise RuntimeError("not a model\nmore")

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self.names]

    def run(self, _outputs: None, inputs: dict[str, Any]) -> list[Any]:
        assert tuple(inputs) == self.names
        if self.answer is not None:
            return [self.answer]
        token_ids = inputs["input_ids"].astype(np.float32)
        return [np.stack([token_ids, np.ones_like(token_ids)], axis=2)]


@pytest.fixture
def folder_of_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runtime = SimpleNamespace(InferenceSession=Session, SessionOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    vocabulary = Tokenizer(WordLevel({"[PAD]": 0, "ferry": 1, "pier": 3, "?": 2}, unk_token="?"))  # noqa: S106
    vocabulary.pre_tokenizer = Whitespace()
    vocabulary.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.onnx").write_bytes(b"model")
    return tmp_path


def test_a_text_is_the_mean_of_its_tokens_whatever_is_next_to_it(folder_of_model: Path) -> None:
    embedder = OnnxEmbedder(folder_of_model)
    found = embedder.embed(["ferry", "ferry pier pier", "pier " * 500, "\ud800"])
    assert found == [pack_vector(numbers) for numbers in ([1, 1], [7 / 3, 1], [3, 1], [2, 1])]
    assert embedder.embed_query("ferry", float) == found[0]
    assert embedder.embed([]) == []


def test_a_model_may_answer_with_a_vector_for_each_text(folder_of_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "names", ("input_ids", "attention_mask", "token_type_ids"))
    monkeypatch.setattr(Session, "answer", [[3.0, 4.0], [0.0, 0.0]])
    vectors_of_both = OnnxEmbedder(folder_of_model).embed(["pier", "ferry"])
    assert vectors_of_both == [pack_vector([3, 4]), bytes(2)]


@pytest.mark.parametrize("answer", [[[1.0]], [[[[1.0]]]], [[float("nan")], [1.0]], [["x"], ["y"]]])
def test_another_answer_is_an_error(folder_of_model: Path, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    monkeypatch.setattr(Session, "answer", answer)
    with pytest.raises(BackendDown, match="model in"):
        OnnxEmbedder(folder_of_model).embed(["ferry", "pier"])


@pytest.mark.parametrize(("name", "text"), [("model.onnx", None), ("model.onnx", b""), ("tokenizer.json", b"{}")])
def test_files_that_are_no_model_are_an_error_that_names_the_folder(
    folder_of_model: Path, name: str, text: bytes | None
) -> None:
    (folder_of_model / name).unlink()
    if text is not None:
        (folder_of_model / name).write_bytes(text)
    with pytest.raises(BackendDown, match=r"model\.onnx and tokenizer\.json") as caught:
        OnnxEmbedder(folder_of_model).embed(["ferry"])
    assert ("more" in str(caught.value), str(folder_of_model) in str(caught.value)) == (False, True)


def test_a_missing_package_says_what_to_install(folder_of_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra) as caught:
        OnnxEmbedder(folder_of_model).embed(["ferry"])
    assert "notebook-sync[search,onnx]" in caught.value.next
