"""Search in scripts that the index of a snapshot writes in another way than people do."""

from collections.abc import Iterator

import pytest

from service.papers.search import search
from service.papers.snapshot import Snapshot
from service.papers.words import SPELLINGS_MAX
from service.ports.papers import PaperQuery
from tests.unit.service.papers.making import Made, made

NOTES = SPELLINGS_MAX + 10


def ids(snapshot: Snapshot, query: str) -> list[str]:
    return [hit.paper_id for hit in search(snapshot, PaperQuery(query, limit=100)).hits]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    found = made(
        tmp_path_factory.mktemp("scripts"),
        Made("fused", title="Fused", summary="我们提出AI模型，在GPT4之后使用BERT模型与Xformer之前"),
        Made("apart", title="Apart", summary="一个 AI 模型 与 Xformer"),
        *(Made(f"plain-{number}", summary="Xformer among others") for number in range(9)),
        *(Made(f"note-{number}", summary=f"笔记{number}号") for number in range(NOTES)),
        Made("run-on", title="Run on", summary="研究深度学习Yformer架构"),
        Made("russian", title="Обучение русский язык", authors=["Андрей Белый"]),
        Made("greek", title="Νευρωνικά δίκτυα"),
        Made("viet", title="Học sâu của Nguyễn Văn"),
        Made("german", title="Straßenverkehr und Größe"),
        Made("hindi", title="हिन्दी भाषा का परिचय"),
        Made("thai", title="ภาษาไทยเบื้องต้น"),
        Made("kana", title="ガンマ線がある"),
        Made("arabic", title="مقدمة في التعلم العميق"),
    )
    yield found
    found.close()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("AI模型", {"fused", "apart"}),
        ("xformer", {"fused", "apart"}),
        ("xform*", {"fused", "apart"}),
        ("gpt4", {"fused"}),
        ("GPT4之后", {"fused"}),
        ("与Xformer之前", {"fused", "apart"}),
        ("bert模型", {"fused", "apart"}),
        ("模型", {"fused", "apart"}),
        ("型", {"fused", "apart"}),
        ("用", {"fused"}),
        ("使用bert", {"fused"}),
        ("深度学习yformer", {"run-on"}),
        ("深度学习", {"run-on"}),
        ("yformer架构", {"run-on"}),
        ("русский", {"russian"}),
        ("РУССКИЙ ЯЗЫК", {"russian"}),
        ("author:белый", {"russian"}),
        ("νευρωνικα", {"greek"}),
        ("Νευρωνικά", {"greek"}),
        ("nguyen", {"viet"}),
        ("Nguyễn", {"viet"}),
        ("strassenverkehr", {"german"}),
        ("größe", {"german"}),
        ("grosse", {"german"}),
        ("हिन्दी", {"hindi"}),
        ("ไทย", {"thai"}),
        ("ガンマ", {"kana"}),
        ("線が", {"kana"}),
        ("العميق", {"arabic"}),
    ],
)
def test_a_script_finds_itself(scripts: Snapshot, query: str, wanted: set[str]) -> None:
    made_here = ("fused", "apart", "run-on", "russian", "greek", "viet", "german", "hindi")
    found = set(ids(scripts, query)) & {*made_here, "thai", "kana", "arabic"}
    assert found == wanted


def test_a_voiced_kana_is_not_its_plain_one(scripts: Snapshot) -> None:
    assert "kana" not in ids(scripts, "線か")


def test_words_of_their_own_come_before_fused_ones(scripts: Snapshot) -> None:
    found = ids(scripts, "xformer")
    assert len(found) == 11 and found[-1] == "fused"


def test_more_endings_than_spellings_are_found(scripts: Snapshot) -> None:
    found = ids(scripts, "笔记")
    assert len([each for each in found if each.startswith("note-")]) == NOTES
