"""The records of the evidence benchmark: made-up mail and notes in three accounts.

A seed always gives the same records. 20 of them are long, 3 % have ids that are hard to carry, and
14 ids occur in two accounts.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

_HERE = Path(__file__).parent
TEXTS: dict[str, Any] = tomllib.loads((_HERE / "texts.toml").read_text(encoding="utf-8"))
QUERY_WORDS: list[str] = TEXTS["queries"].split()
FIELD = "body"
LONG_CHARS, LONG_RECORDS, PAIRS = 200_000, 20, 14
_FIRST_DAY = datetime(2025, 1, 6, 7, tzinfo=UTC)
_MINUTES = 480 * 24 * 60
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_ODD_IDS = (
    *("INBOX/2025/{}", "会議 {}", "draft copy {}", "メモ-{}", "a:b/c {}"),
    *("<{}:a@mail.example>", "50%25 off/{}", "réf. n°{}"),
)


@dataclass(frozen=True, slots=True)
class Account:
    """A connection with one stream. `ids` is the pattern of its ids."""

    connection: str
    label: str
    stream: str
    records: int
    ids: str

    @property
    def title(self) -> str:
        """The field of a record's title."""
        return "title" if self.stream == "notes" else "subject"


ACCOUNTS = (
    Account("mail-home", "Home mail", "messages", 800, "h{:05}"),
    Account("mail-work", "Work mail", "messages", 700, "w{:05}"),
    Account("notes-main", "Field notes", "notes", 500, "note-{:04}"),
)


@dataclass(eq=False, slots=True)
class Record:
    """A message or a note. It is `free` as long as no task asks for it."""

    account: Account
    id: str
    title: str
    paragraphs: list[str]
    folder: str
    sender: str
    sent_at: datetime
    long: bool = False
    odd: bool = False
    free: bool = True

    @property
    def text(self) -> str:
        return "\n\n".join(self.paragraphs)

    @property
    def row(self) -> dict[str, str]:
        """The record as it is imported."""
        return {
            "id": self.id,
            self.account.title: self.title,
            FIELD: self.text,
            "folder": self.folder,
            "sender": self.sender,
            "sent_at": self.sent_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


class Writer:
    """Texts of words that follow the frequencies of a language; none is a query word."""

    def __init__(self, random: Random) -> None:
        planted = tuple(QUERY_WORDS)  # and their inflected forms
        filler = (_HERE / "filler.txt").read_text(encoding="utf-8").split()
        self._random = random
        self._words = [word for word in filler if not word.startswith(planted)]
        self._weights = list(accumulate((n + 8) ** -1.02 for n in range(len(self._words))))
        self._codes = set[str]()

    def code(self) -> str:
        """A code that no other call returns, such as `KX-0412-BR`."""
        while True:
            first, last = ("".join(self._random.choices(_LETTERS, k=2)) for _ in range(2))
            code = f"{first}-{self._random.randrange(10_000):04}-{last}"
            if code not in self._codes:
                self._codes.add(code)
                return code

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def planted(self, kind: str, *words: str, code: str = "") -> str:
        """A sentence of `texts.toml` with query words and a code."""
        template: str = self._random.choice(TEXTS["sentences"][kind])
        return template.format(*words, code=code or self.code())

    def title(self) -> str:
        title = " ".join(self.words(self._random.randrange(3, 8))).capitalize()
        return self._random.choices(("", "Re: ", "Fwd: "), weights=(68, 25, 7))[0] + title

    def paragraphs(self, chars: int, *, foreign: bool = False) -> list[str]:
        """A text of at least `chars` characters about one topic."""
        topic, paragraphs, size = self._random.sample(self._words[150:], 30), list[str](), 0
        while size < chars:
            sentences = [self._sentence(topic) for _ in range(self._random.randrange(2, 7))]
            if foreign:
                sentences.append(self._random.choice(TEXTS["foreign"]))
            paragraphs.append(" ".join(sentences))
            size += len(paragraphs[-1]) + 2
        return paragraphs

    def _sentence(self, topic: list[str]) -> str:
        words = self.words(max(4, min(28, int(self._random.gauss(13, 5)))))
        for _ in range(self._random.randrange(3)):
            words[self._random.randrange(len(words))] = self._random.choice(topic)
        return " ".join(words).capitalize() + self._random.choice("....?!")


def plant(random: Random, record: Record, sentence: str, low: float = 0, high: float = 1) -> None:
    """Inserts a sentence between two sentences, in a share of the text between two bounds."""
    number = int(len(record.paragraphs) * random.uniform(low, high))
    number = min(number, len(record.paragraphs) - 1)
    sentences = re.split(r"(?<=[.!?]) ", record.paragraphs[number])
    sentences.insert(random.randrange(len(sentences) + 1), sentence)
    record.paragraphs[number] = " ".join(sentences)


def records(random: Random, writer: Writer, scale: float = 1) -> list[Record]:
    """The records without what tasks plant in them; `scale` makes fewer and shorter ones."""
    made = [record for account in ACCOUNTS for record in _account(random, writer, account, scale)]
    for record in random.sample(made, LONG_RECORDS):
        chars = int(random.gauss(LONG_CHARS * scale, LONG_CHARS * scale / 25))
        record.paragraphs = writer.paragraphs(chars, foreign=random.random() < 0.4)
        record.long, record.free = True, False
    for number in range(len(made) * 3 // 100):
        record = take(random, made, lambda record: True)
        record.id, record.odd = _ODD_IDS[number % len(_ODD_IDS)].format(number + 1), True
    return made


def pairs(random: Random, pool: list[Record]) -> Iterator[tuple[Record, Record]]:
    """Records of the two mail accounts that get the same id."""
    for number in range(PAIRS):
        home, work = (
            take(random, pool, lambda record: record.account is account) for account in ACCOUNTS[:2]
        )
        home.id = work.id = f"shared-{number * 3 + 1:03}"
        yield home, work


def take(random: Random, pool: list[Record], fits: Callable[[Record], bool]) -> Record:
    """A free record that fits, which is then not free."""
    record = random.choice([record for record in pool if record.free and fits(record)])
    record.free = False
    return record


def _account(random: Random, writer: Writer, account: Account, scale: float) -> Iterator[Record]:
    people, folders = TEXTS["people"], TEXTS["folders"]
    rarer = [1 / (number + 3) for number in range(len(people))]
    for number in range(int(account.records * scale)):
        chars = min(20_000, max(200, int(random.lognormvariate(7.3, 1))))
        yield Record(
            account,
            account.ids.format(number * 7 + 11),
            writer.title(),
            writer.paragraphs(chars, foreign=random.random() < 0.12),
            random.choices(folders, weights=range(len(folders) * 4, 0, -4))[0],
            random.choices(people, weights=rarer)[0],
            _FIRST_DAY + timedelta(minutes=random.randrange(_MINUTES)),
        )
