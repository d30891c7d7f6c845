"""The archive of Twitter: posts, threads, likes, long posts, messages and pictures."""

import json
from typing import Any

from tests.formats.owner import Owner, counts, write, zipped


def post(key: str, text: str, at: str, **more: Any) -> dict[str, Any]:
    entities = {"hashtags": [], "symbols": [], "user_mentions": [], "urls": []}
    numbers = {"id": key, "id_str": key, "favorite_count": "2", "retweet_count": "0"}
    return {"tweet": {**numbers, "created_at": at, "full_text": text, "entities": entities} | more}


def part(kind: str, entries: list[Any], number: int = 0) -> str:
    return f"window.YTD.{kind}.part{number} = {json.dumps(entries, indent=2, ensure_ascii=False)}"


REPLY = {"in_reply_to_status_id_str": "1500000000000000001", "in_reply_to_screen_name": "ada_hafen"}
LINKED = {
    "hashtags": [{"text": "Küste", "indices": ["0", "5"]}],
    "urls": [{"url": "https://t.co/x", "expanded_url": "https://x.org/turm"}],
    "user_mentions": [{"name": "Noor", "screen_name": "noor", "id_str": "9", "id": "9"}],
}
TWEETS = [
    post("1500000000000000003", "RT @noor: Ebbe um 6", "Wed Mar 04 08:00:00 +0000 2026"),
    post(
        "1500000000000000002", "Und die Flut &lt; 3 m 🌊", "Tue Mar 03 09:16:00 +0000 2026", **REPLY
    ),
    post(
        "1500000000000000001",
        "Der Leuchtturm &amp; die Lampe @noor #Küste https://t.co/x",
        "Tue Mar 03 09:15:00 +0000 2026",
        entities=LINKED,
    ),
    {"tweet": {"full_text": "no id"}},
]
NOTE = {
    "noteTweetId": "77",
    "createdAt": "2026-03-05T10:00:00.000Z",
    "core": {"text": "A long post about kelp. " * 40, "mentions": [{"screenName": "noor"}]},
}
LIKE = {"tweetId": "1500000000000000001", "fullText": "gull", "expandedUrl": "https://x.com/i/1"}
MESSAGE = {
    "id": "1600000000000000001",
    "senderId": "42",
    "recipientId": "9",
    "text": "Wann kommt die Fähre?",
    "createdAt": "2026-03-06T07:00:00.000Z",
    "urls": [{"url": "https://t.co/y", "expanded": "https://x.org/fahrplan"}],
    "mediaUrls": [],
    "reactions": [{"senderId": "9", "reactionKey": "like", "eventId": "1"}],
}
ANSWER = {**MESSAGE, "id": "1600000000000000002", "senderId": "9", "text": "Um 8", "urls": []}
RENAMED = {"conversationNameUpdate": {"initiatingUserId": "9", "name": "Lotsen"}}
ACCOUNT = {"accountId": "42", "username": "ada_hafen", "accountDisplayName": "Ada König"}
CONVERSATION = {
    "dmConversation": {
        "conversationId": "42-9",
        "messages": [{"messageCreate": ANSWER}, {"messageCreate": MESSAGE}],
    }
}
ARCHIVE: dict[str, bytes | str] = {
    "data/manifest.js": "window.__THAR_CONFIG = {}",
    "data/account.js": part("account", [{"account": ACCOUNT}]),
    "data/tweets.js": part("tweets", TWEETS),
    "data/deleted-tweets.js": part(
        "deleted_tweets", [post("15", "weg damit", "Tue Mar 03 09:00:00 +0000 2026")]
    ),
    "data/note-tweet.js": part("note_tweet", [{"noteTweet": NOTE}]),
    "data/like.js": part("like", [{"like": LIKE}]),
    "data/direct-messages.js": part("direct_messages", [CONVERSATION]),
    "data/direct-messages-group.js": part(
        "direct_messages_group",
        [
            {
                "dmConversation": {
                    "conversationId": "5",
                    "messages": [RENAMED, {"messageCreate": {**MESSAGE, "id": "17"}}],
                }
            }
        ],
    ),
    "data/tweets_media/1500000000000000001-Fab.jpg": b"\xff\xd8\xff",
    "data/ad-engagements.js": part("ad_engagements", []),
    "data/ip-audit.js": part("ip_audit", []),
}


def test_an_archive_of_twitter_is_posts_in_threads_likes_and_messages(owner: Owner) -> None:
    path = zipped(owner.home / "twitter-2026.zip", ARCHIVE)
    report = owner.bring(path, code=3)
    assert "as twitter" in report and "This entry has no id" in report
    assert "2 files that look like a Twitter archive file that has no posts" in report
    assert "Notices (such as a new name or member) left out of conversations: 1." in report
    rows = {row["id"]: row["data"] for row in owner.rows("posts")}
    assert rows.keys() == {
        *("1500000000000000001", "1500000000000000002", "1500000000000000003"),
        *("15", "note-77", "like-1500000000000000001"),
    }
    assert rows["1500000000000000001"] == {
        "id": "1500000000000000001",
        "thread_id": "1500000000000000001",
        "author": "ada_hafen",
        "text": "Der Leuchtturm & die Lampe @noor #Küste https://t.co/x",
        "written_at": "2026-03-03T09:15:00Z",
        "position": 357627868652,
        "kind": "post",
        "tags": ["Küste"],
        "mentions": ["noor"],
        "links": ["https://x.org/turm"],
        "likes": 2,
        "reposts": 0,
    }
    answer = rows["1500000000000000002"]
    assert (answer["kind"], answer["thread_id"]) == ("reply", "1500000000000000001")
    assert answer["text"] == "Und die Flut < 3 m 🌊"
    assert rows["1500000000000000003"]["kind"] == "repost" and rows["15"]["kind"] == "deleted"
    assert len(rows["note-77"]["text"]) > 900 and rows["note-77"]["kind"] == "note"
    assert rows["like-1500000000000000001"] == {
        "id": "like-1500000000000000001",
        "kind": "like",
        "text": "gull",
        "links": ["https://x.com/i/1"],
    }
    (picture,) = [row["data"] for row in owner.rows("attachments")]
    assert picture["message_id"] == "1500000000000000001"
    messages = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert messages["1600000000000000001"] == {
        "id": "1600000000000000001",
        "thread_id": "42-9",
        "conversation_id": "42-9",
        "conversation": "ada_hafen, 9",
        "author": "ada_hafen",
        "text": "Wann kommt die Fähre?",
        "sent_at": "2026-03-06T07:00:00.000Z",
        "position": 381469726562,
        "app": "Twitter",
        "reactions": ["like 9"],
        "links": ["https://x.org/fahrplan"],
    }
    assert messages["17"]["conversation"] == "Lotsen"
    owner.again(path, code=3)


def test_one_file_of_an_old_archive_without_wrappers_is_read(owner: Owner) -> None:
    bare = [post("7", "Priel", "Tue Mar 03 09:15:00 +0000 2026")["tweet"]]
    path = write(owner.home / "x", {"tweet.js": part("tweet", bare)}) / "tweet.js"
    assert counts(owner.bring(path))["new"] == 1
    (row,) = owner.rows("posts")
    assert row["data"]["text"] == "Priel" and "author" not in row["data"]
    owner.finds("Priel", "posts:7")
