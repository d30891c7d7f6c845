"""The reading pages over the demo: the questions are answered, and threads are shown."""

import pytest
from flask.testing import FlaskClient

from service.demo.fill import Question, questions
from service.place import Place
from tests.helpers.worlds import House
from tests.spec.reading_visits import entered, opened, page, text


@pytest.fixture(scope="module")
def visit(demo_store: tuple[Place, str]) -> FlaskClient:
    path, token = demo_store
    return entered(House(path).app, token)


@pytest.mark.parametrize("asked", questions(), ids=lambda one: one.question)
def test_the_first_result_of_a_question_opens_at_its_answer(
    visit: FlaskClient, asked: Question
) -> None:
    html = opened(visit, asked.question)
    assert asked.answer in text(html)
    assert f"<code>{asked.id}</code>" in html


@pytest.mark.parametrize(
    "id, others",
    [
        ("gmail-home/messages:m_0001", ("Re: Lisbon, fifteen years later", "18 May 2025, 21:10")),
        ("slack-team/messages:c00004", ("I have booked a room", "Pinned to the front page")),
    ],
)
def test_a_mail_and_a_chat_message_are_shown_with_their_thread(
    visit: FlaskClient, id: str, others: tuple[str, ...]
) -> None:
    thread = text(page(visit, f"/read/{id}")).partition(" Thread ")[2]
    assert all(words in thread for words in others), thread


def test_a_calendar_entry_says_where_and_an_empty_field_is_left_out(visit: FlaskClient) -> None:
    shown = text(page(visit, "/read/calendar/events:dentist"))
    assert "Where Praxis Dr. Yılmaz" in shown and "attendees" not in shown


def test_a_time_with_an_offset_shows_the_offset(visit: FlaskClient) -> None:
    shown = text(page(visit, "/read/calendar/events:e_0019"))
    assert "When 4 Nov 2025, 16:00 UTC+09:00 " in shown


def test_an_attachment_is_listed_once(visit: FlaskClient) -> None:
    assert page(visit, "/read/gmail-home/messages:m_0001").count("Alfama.png</a>") == 1


def test_an_attachment_has_its_name_while_vectors_are_missing(
    demo_store: tuple[Place, str],
) -> None:
    path, token = demo_store
    endpoint = {"RUNG_EMBEDDINGS_URL": "http://127.0.0.1:9/v1", "RUNG_EMBEDDINGS_MODEL": "any"}
    visit = entered(House(path, endpoint).app, token)
    assert page(visit, "/read/gmail-home/messages:m_0001").count("Alfama.png</a>") == 1
