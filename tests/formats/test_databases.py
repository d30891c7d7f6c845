"""SQLite databases, as Dogsheep tools write them: tables are streams with keys and relations."""

from pathlib import Path

from sqlite_utils import Database

from tests.formats.owner import Owner, counts, zipped


def github(path: Path) -> Path:
    """A database as `github-to-sqlite` writes it."""
    database = Database(path)
    users = [
        {"id": 7, "login": "ada", "name": "Ada König", "type": "User"},
        {"id": 8, "login": "noor", "name": "Noor", "type": "User"},
    ]
    database["users"].insert_all(users, pk="id")
    database["repos"].insert(
        {"id": 1, "full_name": "harbour/tides", "description": "Gezeiten", "owner": 7},
        pk="id",
        foreign_keys=[("owner", "users", "id")],
    )
    issue = {"number": 4, "state": "open", "repo": 1, "created_at": "2026-03-03T10:00:00Z"}
    issues = [
        {"id": 100, "title": "Lamp flickers", "body": "Only at spring tide 🌊", "user": 7, **issue},
        {"id": 101, "title": "Docs", "body": None, "user": 8, **issue},
    ]
    keys = [("user", "users", "id"), ("repo", "repos", "id")]
    database["issues"].insert_all(issues, pk="id", foreign_keys=keys)
    database["issue_comments"].insert(
        {"id": 900, "issue": 100, "user": 8, "body": "Replaced the bulb.", "score": 0.1},
        pk="id",
        foreign_keys=[("issue", "issues", "id"), ("user", "users", "id")],
    )
    database["issues"].enable_fts(["title", "body"])
    database.create_view("recent", "select * from issues")
    database["files"].insert({"name": "lamp.png", "content": b"\x89PNG\x00"}, pk="name")
    database["stars"].insert_all(
        [{"user": 7, "repo": 1}, {"user": 8, "repo": 1}], pk=("user", "repo")
    )
    database.execute("create table odd (id integer primary key, text text, size real)")
    broken = "insert into odd values (1, cast(x'ff61' as text), 9e999), (2, 'nordlicht', 1.5)"
    database.execute(broken)
    database.conn.commit()
    database.close()
    return path


def test_tables_are_streams_with_keys_relations_and_names(owner: Owner) -> None:
    path = github(owner.home / "github.db")
    before = path.read_bytes()
    report = owner.bring(path, code=3)
    assert "github.db is read as sqlite." in report and "stream 'issues_fts" not in report
    assert counts(report)["new"] == 10 and counts(report)["refused"] == 1
    assert "odd: The text contains bytes that are invalid in its encoding" in report
    page = owner.finds("spring tide", "issues:100")
    assert "Lamp flickers" in page
    owner.finds("nordlicht", "odd:2")
    (row,) = [row["data"] for row in owner.rows("issue_comments")]
    assert row == {"id": 900, "issue": 100, "user": 8, "user_name": "Noor", "score": 0.1} | {
        "issue_name": "Lamp flickers",
        "body": "Replaced the bulb.",
    }
    words = ("c/issues:100", "--expand", "issue_comments", "--json")
    assert "Replaced the bulb." in owner.reader().ok("fetch", *words).stdout
    assert {row["id"] for row in owner.rows("stars")} == {'["7","1"]', '["8","1"]'}
    (file,) = owner.rows("files")
    assert file["data"]["content"]["size_bytes"] == 5
    owner.again(path, code=3)
    assert path.read_bytes() == before and sorted(one.name for one in owner.home.iterdir()) == [
        "github.db",
        "store",
    ]


def test_times_of_apple_health_are_times(owner: Owner) -> None:
    path = owner.home / "healthkit.db"
    database = Database(path)
    times = {"startDate": "2026-03-03 09:00:00 +0100", "endDate": "2026-03-03 09:31:30 +0100"}
    database["workouts"].insert({"id": "w1", "workoutActivityType": "Rowing", **times}, pk="id")
    database.close()
    assert "event-time startDate" in owner.bring(path)
    shown = owner.reader().ok("search", "rowing", "--since", "2026-03-03T08:00:00Z").stdout
    assert "first_id=c/workouts:w1" in shown
    later = owner.reader().ok("search", "rowing", "--since", "2026-03-03T08:00:01Z").stdout
    assert "hits=0" in later


def test_what_another_program_has_just_written_is_imported(owner: Owner) -> None:
    path = owner.home / "log.db"
    database = Database(path)
    database.enable_wal()
    database["events"].insert({"id": 1, "text": "bollard"}, pk="id")
    assert (owner.home / "log.db-wal").stat().st_size
    assert counts(owner.bring(path))["new"] == 1
    database.close()
    packed = zipped(owner.home / "log.zip", {"inner/log.db": path.read_bytes()})
    assert counts(owner.bring(packed))["unchanged"] == 1


def test_a_damaged_database_is_refused_with_its_name(owner: Owner) -> None:
    path = github(owner.home / "github.db")
    path.write_bytes(path.read_bytes()[:5_000])
    assert "github.db cannot be read" in owner.bring(path, code=1)


def test_rows_without_a_key_may_have_blobs(owner: Owner) -> None:
    database = Database(owner.home / "icons.db")
    database["icons"].insert_all([{"page": "x", "icon": b"\x00\xff"}, {"page": "y", "icon": b"z"}])
    database.close()
    assert counts(owner.bring(owner.home / "icons.db"))["new"] == 2
    owner.again(owner.home / "icons.db")
