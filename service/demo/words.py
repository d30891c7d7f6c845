"""Sentences in several languages, put together from the demo's own word lists."""

from dataclasses import dataclass
from random import Random

PEOPLE = (
    *("Ada Brandt", "Noor Haddad", "Kenji Mori", "Lucía Ferrer", "Tomáš Novák", "Amara Okeke"),
    *("Ingrid Sørensen", "Wei Zhang", "Samir Aziz", "Élodie Martin", "Jonas Weiß", "Priya Nair"),
)


@dataclass(frozen=True, slots=True)
class Language:
    """Templates with slots, and what may stand in them."""

    code: str
    templates: tuple[str, ...]
    things: tuple[str, ...]
    places: tuple[str, ...]
    days: tuple[str, ...]
    gap: str = " "


ENGLISH = Language(
    "en",
    (
        "{person} asked whether the {thing} could reach {place} by {day}.",
        "We moved the {thing} to {place}; {person} has the key.",
        "Please check the {thing} before {day}, it was late last time.",
        "The {thing} for {place} costs {number} euros more than planned.",
        "I promised {person} a short summary of the {thing} on {day}.",
        "Nobody in {place} remembers who ordered the {thing}.",
        "If it rains on {day}, we meet in {place} instead.",
        "Invoice {number} covers the {thing} and two nights in {place}.",
    ),
    (
        *("invoice", "garden plan", "train ticket", "insurance letter", "bicycle", "translation"),
        *(
            "budget sheet",
            "photo archive",
            "kitchen shelf",
            "release checklist",
            "piano",
            "contract",
        ),
    ),
    ("Lisbon", "the harbour office", "Gothenburg", "the old library", "Nairobi", "room 214"),
    ("Monday", "Tuesday", "Thursday", "Friday", "the weekend", "next week"),
)
GERMAN = Language(
    "de",
    (
        "{person} schickt {thing} am {day} nach {place}.",
        "Für {thing} fehlen noch {number} Euro, sagt {person}.",
        "Können wir am {day} über {thing} sprechen?",
        "Die Straße nach {place} ist bis {day} gesperrt.",
        "In {place} lag {thing} noch auf dem Tisch.",
    ),
    ("die Rechnung", "das Übergabeprotokoll", "den Schlüssel", "die Fahrkarte", "das Grundstück"),
    ("Köln", "München", "Görlitz", "Zürich", "Straßburg"),
    ("Montag", "Mittwoch", "Donnerstag", "Samstag"),
)
FRENCH = Language(
    "fr",
    (
        "{person} a réservé {thing} pour {day} à {place}.",
        "Il manque encore {number} euros pour {thing}.",
        "Nous avons reçu {thing} à {place}, merci {person}.",
    ),
    ("le déjeuner", "la chambre d’hôtel", "le cours de guitare", "la facture d’électricité"),
    ("Besançon", "Montréal", "Orléans", "Genève"),
    ("lundi", "mercredi", "samedi"),
)
JAPANESE = Language(
    "ja",
    (
        "{day}に{place}で{person}さんと{thing}について話しました。",
        "{thing}の請求書は{number}円です。",
        "{place}へ行く前に{thing}を確認してください。",
        "{person}さんから{thing}が届きました。",
    ),
    ("会議資料", "新幹線の切符", "庭の計画", "契約書", "写真"),
    ("東京", "京都の図書館", "札幌", "大阪支社"),
    ("月曜日", "水曜日", "金曜日", "来週"),
    gap="",
)
CHINESE = Language(
    "zh",
    (
        "{person}说{thing}会在{day}送到{place}。",
        "请在{day}之前检查{thing}。",
        "{thing}的发票是{number}元。",
        "我们在{place}讨论了{thing}。",
    ),
    ("合同", "火车票", "预算表", "照片档案", "花园计划"),
    ("北京", "上海办公室", "成都", "老图书馆"),
    ("星期一", "星期三", "周末", "下周"),
    gap="",
)
ARABIC = Language(
    "ar",
    (
        "سألني {person} عن {thing} في {place}.",
        "سنلتقي يوم {day} في {place}.",
        "تكلفة {thing} هي {number} دينار.",
    ),
    ("الفاتورة", "تذكرة القطار", "العقد", "خطة الحديقة"),
    ("عمّان", "بيروت", "المكتبة القديمة", "الدار البيضاء"),
    ("الاثنين", "الأربعاء", "الجمعة"),
)
EMOJI = Language(
    "emoji",
    (
        "🎉 {thing} in {place}! 👍🏽",
        "{person}: ☕️ at {place} on {day}? 😊",
        "{thing} ✅ {thing} ❌ {number} 🥐",
    ),
    ("cake", "release", "football", "📦", "🚲 ride", "👩‍🚀 talk"),
    ("🏠", "the café", "Zoom", "🏖️"),
    ("Friday", "tomorrow", "🗓️ 5/5"),
)
LANGUAGES = (ENGLISH, GERMAN, FRENCH, JAPANESE, CHINESE, ARABIC, EMOJI)
_MIX = (ENGLISH,) * 10 + (GERMAN,) * 4 + (FRENCH,) * 2 + (JAPANESE, CHINESE) * 2 + (ARABIC, EMOJI)


def choose_language(random: Random) -> Language:
    """A language; English half of the time."""
    return random.choice(_MIX)


def say(random: Random, language: Language) -> str:
    """One sentence."""
    return random.choice(language.templates).format(
        person=random.choice(PEOPLE),
        thing=random.choice(language.things),
        place=random.choice(language.places),
        day=random.choice(language.days),
        number=random.randint(12, 9_800),
    )


def tell(random: Random, language: Language, sentences: int) -> str:
    """A text of so many sentences, in paragraphs of about five."""
    told: list[str] = []
    for number in range(1, sentences + 1):
        told += (say(random, language), "\n\n" if number % 5 == 0 else language.gap)
    return "".join(told).strip()


def fill(random: Random, chars: int, *languages: Language) -> str:
    """A text of at least `chars` code points, changing between the languages."""
    parts: list[str] = []
    length = 0
    while length < chars:
        part = tell(random, languages[len(parts) % len(languages)], 20) + "\n\n"
        parts.append(part)
        length += len(part)
    return "".join(parts)
