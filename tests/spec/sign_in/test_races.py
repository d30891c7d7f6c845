"""What requests under way must not outlive: the end of sessions, passphrases and tokens."""

from concurrent.futures import ThreadPoolExecutor
from secrets import token_urlsafe

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.owner import Owner, Passkeys
from service.access.signins import REFRESHES, Signins
from tests.helpers.passkeys import Device
from tests.helpers.worlds import House

ORIGIN = "http://localhost:8000"


def test_a_session_that_has_ended_is_not_revived_by_requests_under_way(house: House) -> None:
    owner = Owner(Entries(open_sidecar(house.path)))
    for _ in range(20):
        session = owner.sign_in(owner.new_code(), "/s/x")
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(owner.is_signed_in, session) for _ in range(40)]
            owner.sign_out(session)
        assert all(one.exception() is None for one in asking)
        assert not owner.is_signed_in(session)


def test_a_sign_in_under_way_does_not_outlive_the_passphrase(house: House) -> None:
    owner = Owner(Entries(open_sidecar(house.path)))
    owner.set_passphrase("passphrase number 0")
    for number in range(5):
        with ThreadPoolExecutor(4) as pool:
            tried = f"passphrase number {number}"
            asking = [pool.submit(owner.sign_in, tried, "/s/x") for _ in range(3)]
            owner.set_passphrase(f"passphrase number {number + 1}")
        sessions = [one.result() for one in asking if one.exception() is None]
        assert not [session for session in sessions if owner.is_signed_in(session)]


def test_a_sign_in_under_way_does_not_outlive_its_passkey(house: House) -> None:
    owner = Owner(Entries(open_sidecar(house.path)))
    passkeys = Passkeys(owner, ORIGIN)
    for _ in range(10):
        device, (first, *others) = Device(ORIGIN), [token_urlsafe() for _ in range(4)]
        created = device.create(passkeys.creation(first))
        with owner.entries.changing() as kept:
            passkeys.add(kept, first, created, "")
        answers = [device.get(passkeys.request(challenge)) for challenge in others]
        with ThreadPoolExecutor(3) as pool:
            asking = [
                pool.submit(passkeys.sign_in, challenge, answer, "/s/x")
                for challenge, answer in zip(others, answers, strict=True)
            ]
            with owner.entries.changing() as kept:
                passkeys.remove(kept, device.id.hex())
        sessions = [one.result() for one in asking if one.exception() is None]
        assert not [session for session in sessions if owner.is_signed_in(session)]
        assert device.id.hex() not in passkeys.listed()


def test_no_refresh_under_way_outlives_the_end_of_the_tokens(house: House) -> None:
    signins = Signins(Entries(open_sidecar(house.path)))
    body = {"client_id": "c_1", "scope": "rung:read", "resource": [], "paths": []}
    for number in range(20):
        code = signins.consented(f"grt_{number}", {}, body)
        first = signins.exchange(code, body, None)["refresh_token"]
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(signins.rotate, first, body, None) for _ in range(REFRESHES[0])]
            signins.revoke(first, "c_1")
        given = [one.result() for one in asking]
        assert not [one for one in given if one and signins.grant_of(one["access_token"])]
        assert not [one for one in given if one and signins.refresh_token(one["refresh_token"])]
