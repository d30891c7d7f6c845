"""The requirements with hashes are those that hosts build from."""

from tests.figures.audit import LOCK, ROOT, pinned, unpinned

REQUIREMENTS = ROOT / "requirements.txt"


def test_the_lock_has_what_the_requirements_have() -> None:
    assert set(pinned(REQUIREMENTS.read_text())) <= set(pinned(LOCK.read_text()))


def test_every_requirement_has_a_hash() -> None:
    assert unpinned(LOCK.read_text()) == []
    assert unpinned("apispec==6.10.1\nclick==8.5.1 \\\n    --hash=sha256:00") == [
        "'apispec==6.10.1' has no hash"
    ]
