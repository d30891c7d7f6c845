"""Exports of chats with values that no program writes."""

import json
import random
from collections.abc import Iterator

from tests.formats.exports import changed, chatgpt, claude, slack
from tests.formats.hostile.files import Hostile, kind, several
from tests.formats.owner import write


@kind
def archives_of_twitter() -> Iterator[Hostile]:
    begin, count = "window.YTD.tweets.part0 = ", 50_000
    chain = [
        {"tweet": {"id": str(n), "in_reply_to_status_id_str": str(n + 1)}} for n in range(count)
    ]
    ring = [{"id": str(n), "in_reply_to_status_id_str": str((n + 1) % 9)} for n in range(9)]
    bodies = {
        "chain": json.dumps(chain),
        "ring": json.dumps(ring),
        "deep": "[" * count,
        "cut": '[{"tweet": {"id": "1", "full_text": "' + "x" * 3_000_000,
        "types": '[{"tweet": {"id": [], "entities": 5}}, {"tweet": []}, 5, null, NaN]',
        "long": json.dumps([{"id": "9" * count, "full_text": "&" * count}]),
    }
    yield from several(".js", {f"tweets-{name}": begin + body for name, body in bodies.items()})
    yield from several(".js", {"header": "window.YTD.tweets.part0 =" + "=" * 3_000_000})


@kind
def parts_of_takeout() -> Iterator[Hostile]:
    begin = '[{"header": "Search", "title": "x", "products": []}, '
    deep = "<div>" * 50_000
    answers = [{"title": "x", "time": "y", "safeHtmlItem": [{"html": deep}]}]
    types = '{"header": 5, "title": [], "details": [{"name": 5}], "safeHtmlItem": [5, {"html": 5}]}'
    bodies = {"answer": json.dumps(answers)[1:], "types": f"{types}, 5]", "cut": '{"title": "'}
    bodies |= {"names": ", ".join(['{"header": "x"}'] * 50_000) + "]", "deep": "[" * 50_000}
    yield from several(".json", {f"activity-{name}": begin + body for name, body in bodies.items()})
    message = {"creator": {"name": []}, "topic_id": 5, "created_date": "9" * 100_000}
    chats = {
        "types": json.dumps({"messages": [message, 5, {"annotations": [5, {"url_metadata": 5}]}]}),
        "many": json.dumps({"messages": [message | {"created_date": "x"}] * 5_000}),
        "several": json.dumps({"messages": [message], "x": []})[:-1] + ', "messages": 5}',
    }
    yield from several(".json", {f"chat-{name}": text for name, text in chats.items()})


@kind
def exports_of_chats() -> Iterator[Hostile]:
    for seed in range(16):
        draw = random.Random(seed)
        files = slack()
        name = draw.choice(list(files))
        files[name] = changed(files[name], draw)
        folder = {f"slack/{key}": json.dumps(value) for key, value in files.items()}
        yield Hostile(f"slack-{seed}", lambda home, files=folder: write(home, files))
    for app, export in (("chatgpt", chatgpt()), ("claude", claude())):
        for seed in range(10):
            (chat,) = export
            contents = json.dumps(
                [chat, changed(chat, random.Random(seed)), {**chat, "id": "l", "uuid": "l"}]
            )
            yield from several(".json", {f"{app}-{seed}": contents})
    nodes = 50_000
    chain = {str(n): {"message": None, "children": [str((n + 1) % nodes)]} for n in range(nodes)}
    channels = [{"id": f"C{n}", "name": f"c{n}"} for n in range(3_000)]
    days = {f"wide/c{n}/2026-03-03.json": "[]" for n in range(3_000)}
    many = {"wide/users.json": "[]", "wide/channels.json": json.dumps(channels), **days}
    text = json.dumps(
        [{"ts": "1.1", "text": "<" * 500_000}, {"ts": "1.2", "text": "<@" + "a" * 500_000}]
    )
    yield Hostile("slack-channels", lambda home: write(home, many))
    yield Hostile(
        "slack-text",
        lambda home: write(
            home,
            {
                "s/users.json": "[]",
                "s/channels.json": '[{"id": "C", "name": "c"}]',
                "s/c/2026-03-03.json": text,
            },
        ),
    )
    yield from several(".json", {"chain": json.dumps([{"id": "x", "mapping": chain}])})
    lines = {
        "dates": "[99.99.99, 99:99:99] Ada: ebb\n" * 999,
        "names": "[03.03.26, 10:00:00] " + "a" * 900_000 + ": ebb\n",
        "brackets": "[03.03.26, 10:00:00] Ada: " + "<" * 300_000 + "\n",
        "files": "[03.03.26, 10:00:00] Ada: x\n" + "x.jpg (" * 50_000 + "\n",
        "attached": "[03.03.26, 10:00:00] Ada: <a: " + "../" * 9_000 + "etc/passwd.txt>\n",
        "signs": "\u200e" * 500_000 + "[03.03.26, 10:00:00] Ada: ebb\n",
        "same": "[03.03.26, 10:00:00] Ada: ebb\n" * 20_000,
    }
    yield from several(".txt", {f"whatsapp-{name}": "[03.03.26, 10:00:00] Ada: first\n" + text
                                for name, text in lines.items()})  # fmt: skip
