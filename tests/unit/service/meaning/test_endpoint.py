"""An endpoint that embeds: what it is sent, what is accepted, and what it may not see."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from evidence.work import within
from service.meaning.encoder import Encoder, MeaningUnavailable
from service.meaning.endpoint import PROBES, cosine
from service.meaning.opening import encoder_of
from service.settings import SettingsError, load
from tests.helpers.loopback import Asked, Loopback, Reply, answering, as_json, silent
from tests.helpers.trigrams import DIMENSIONS, MODEL, Trigrams, answer, components


@pytest.fixture
def server() -> Iterator[Loopback]:
    with answering(answer) as running:
        yield running


def encoder(url: str, **changes: str) -> Encoder:
    """The encoder of a process with these settings."""
    environ = {"RUNG_EMBEDDINGS_URL": url, "RUNG_EMBEDDINGS_MODEL": MODEL, **changes}
    found = encoder_of(load(environ))
    assert found is not None
    return found


def test_vectors_are_those_of_the_endpoint_in_the_order_of_the_texts(server: Loopback) -> None:
    ours = encoder(server.url, RUNG_EMBEDDINGS_BATCH="2")
    texts = ["eins", "zwei", "drei", "vier", "fünf"]
    assert ours.passages(texts) == Trigrams().passages(texts)
    assert [len(orjson.loads(asked.body)["input"]) for asked in server.asked] == [2, 2, 1]
    assert {asked.target for asked in server.asked} == {"/v1/embeddings"}
    assert ours.question("eins", 1) == Trigrams().question("eins", 1)
    assert ours.dimensions == DIMENSIONS


def test_answers_in_another_order_are_put_in_order(server: Loopback) -> None:
    def reversed_answer(asked: Asked) -> Reply:
        body = orjson.loads(answer(asked).body)
        return as_json({"data": body["data"][::-1]})

    server.answer = reversed_answer
    assert encoder(server.url).passages(["a b c", "x y z"]) == Trigrams().passages(
        ["a b c", "x y z"]
    )


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/embeddings"])
def test_an_address_may_end_where_people_copy_it(server: Loopback, end: str) -> None:
    encoder(server.url + end).passage("text")
    assert server.asked[0].target == "/v1/embeddings"


def test_the_key_of_the_file_is_sent_as_a_bearer(server: Loopback, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-secret\n")
    encoder(server.url, RUNG_EMBEDDINGS_KEY_FILE=str(key)).passage("text")
    assert server.asked[0].token == "sk-secret"
    with pytest.raises(MeaningUnavailable, match="KEY_FILE"):
        encoder(server.url, RUNG_EMBEDDINGS_KEY_FILE=str(tmp_path / "none")).passage("text")


def test_the_same_model_has_an_id_that_matches_and_another_has_not(server: Loopback) -> None:
    ours = encoder(server.url)
    id = ours.id
    assert id.startswith(f"{MODEL}:") and ours.matches(id)

    def noisy(asked: Asked, noise: float) -> Reply:
        rows = [
            {"index": at, "embedding": [part + noise * (at + 1) for part in components(text)]}
            for at, text in enumerate(orjson.loads(asked.body)["input"])
        ]
        return as_json({"data": rows})

    server.answer = lambda asked: noisy(asked, 0.001)
    assert encoder(server.url).matches(id)
    server.answer = lambda asked: noisy(asked, 2)
    assert not encoder(server.url).matches(id)
    assert not ours.matches("another:" + id.partition(":")[2])
    assert not ours.matches("trigrams:3f9c21ab") and not ours.matches("trigrams")


def test_the_calibration_is_that_of_unrelated_texts(server: Loopback) -> None:
    vectors = Trigrams().passages(PROBES)
    pairs = [(0, 1), (0, 2), (1, 2)]
    mean, deviation = encoder(server.url).calibration
    assert mean == pytest.approx(sum(cosine(vectors[a], vectors[b]) for a, b in pairs) / 3)
    assert 0 < deviation < 1


BAD = {
    "an error": Reply(500),
    "a refusal": as_json({"error": "no such model"}, 404),
    "no JSON": Reply(200, b"<html>"),
    "no data": as_json({"data": []}),
    "no list": as_json([]),
    "no numbers": as_json({"data": [{"index": 0, "embedding": ["a", None]}]}),
    "no components": as_json({"data": [{"index": 0, "embedding": []}]}),
    "too many": as_json({"data": [{"index": at, "embedding": [1.0]} for at in range(2)]}),
    "a redirect": Reply(302, b"", {"Location": "https://elsewhere.example/"}),
}


@pytest.mark.parametrize("name", BAD)
def test_an_unusable_answer_is_meaning_unavailable(server: Loopback, name: str) -> None:
    server.answer = lambda asked: BAD[name]
    with pytest.raises(MeaningUnavailable) as raised:
        encoder(server.url).passage("private text")
    assert raised.value.code == "semantic_unavailable"
    assert "private" not in str(raised.value.body()) and "127.0.0.1" not in str(raised.value.body())


def test_vectors_of_another_length_than_the_first_are_refused(server: Loopback) -> None:
    ours = encoder(server.url)
    ours.load()
    server.answer = lambda asked: as_json({"data": [{"index": 0, "embedding": [1.0, 2.0]}]})
    with pytest.raises(MeaningUnavailable):
        ours.passage("text")


def test_a_question_is_given_up_in_time() -> None:
    with silent() as url, pytest.raises(MeaningUnavailable):
        encoder(url).question("text", 0.05)


def test_loading_ends_with_the_deadline_of_a_request() -> None:
    with silent() as url, within(0.05), pytest.raises(MeaningUnavailable):
        encoder(url).load()


def test_an_endpoint_that_fails_is_left_alone(server: Loopback) -> None:
    server.answer = lambda asked: Reply(503)
    ours = encoder(server.url)
    for _ in range(12):
        with pytest.raises(MeaningUnavailable):
            ours.question("text", 1)
    assert len(server.asked) < 12


def test_an_endpoint_on_this_machine_is_asked_without_a_proxy(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(lambda asked: Reply(500)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        encoder(server.url).passage("text")
        assert proxy.asked == []


def test_texts_leave_the_machine_only_with_permission() -> None:
    environ = {"RUNG_EMBEDDINGS_URL": "https://api.example.com/v1", "RUNG_EMBEDDINGS_MODEL": "m"}
    with pytest.raises(SettingsError, match="RUNG_EMBEDDINGS_SEND_TEXTS=yes"):
        load(environ)
    with pytest.raises(SettingsError, match="RUNG_EMBEDDINGS_SEND_TEXTS=yes"):
        load({**environ, "RUNG_EMBEDDINGS_SEND_TEXTS": "no"})
    assert load({**environ, "RUNG_EMBEDDINGS_SEND_TEXTS": "yes"}).embeddings_url


def test_an_endpoint_needs_the_name_of_its_model() -> None:
    with pytest.raises(SettingsError, match="requires RUNG_EMBEDDINGS_MODEL"):
        load({"RUNG_EMBEDDINGS_URL": "http://127.0.0.1:9"})


def test_search_by_meaning_can_be_turned_off(server: Loopback) -> None:
    environ = {"RUNG_EMBEDDINGS_URL": server.url, "RUNG_EMBEDDINGS_MODEL": MODEL}
    assert encoder_of(load({**environ, "RUNG_SEMANTIC": "off"})) is None
