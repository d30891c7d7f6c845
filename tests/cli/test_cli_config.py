"""The configuration of commands: what it fills in, what comes before it, what is wrong in it."""

import os
from pathlib import Path

import pytest
from click.testing import Result

from service.__main__ import rung
from service.cli import config
from service.settings.explanation import shown
from tests.helpers.archive import Archive
from tests.helpers.loopback import as_json, answering
from tests.helpers.papers import RELEASES
from tests.helpers.shell import Shell
from tests.helpers.snapshots import DATA

QUERY = ("query", "notes", "--limit", "1", "--fields", "title", "--json")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where commands look for their configuration."""
    path = tmp_path / "xdg" / "rung" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def shell(file: Path) -> Shell:
    """A shell in whose environment nothing but the folder of configurations is named."""
    return Shell({"XDG_CONFIG_HOME": str(file.parents[1]), "NO_PROXY": "127.0.0.1"})


def write(file: Path, *lines: str, mode: int = 0o600) -> None:
    file.write_text("\n".join(lines), encoding="utf-8")
    file.chmod(mode)


def title(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return "found" if '"title"' in result.stdout else result.stdout


def test_a_command_needs_no_options_where_the_file_has_them(
    archive: Archive, shell: Shell, file: Path
) -> None:
    write(file, f'store = "{archive.house.path}"', f'token = "{archive.token}"')
    assert title(shell.ok(*QUERY)) == "found"
    assert "notes: 233 records" in shell.ok("stats").stdout


def test_paths_are_meant_from_the_folder_of_the_file(
    archive: Archive, shell: Shell, file: Path
) -> None:
    token = file.with_name("token")
    token.write_text(archive.token)
    token.chmod(0o600)
    (file.parent / "link.db").symlink_to(archive.house.path)
    write(file, 'store = "link.db"', 'token_file = "token"')
    result = shell.ok(*QUERY)
    assert title(result) == "found" and result.stderr == ""


def test_a_running_rung_and_a_provider_can_be_named(
    archive: Archive, url: str, shell: Shell, file: Path
) -> None:
    for key in ("url", "provider_url"):
        write(file, f'{key} = "{url}"', f'token = "{archive.token}"')
        assert title(shell.ok(*QUERY)) == "found"


def test_the_environment_comes_before_the_file_and_options_before_both(
    archive: Archive, shell: Shell, file: Path
) -> None:
    write(file, 'store = "of the file"', f'token = "{archive.token}"')
    assert "of the file" in shell.run(*QUERY).stderr
    other = Shell({**shell.environ, "RUNG_STORE": "of the environment"})
    assert "of the environment" in other.run(*QUERY).stderr
    typed = other.run(*QUERY, "--store", "of the command line")
    assert "of the command line" in typed.stderr


def test_rung_config_names_another_file(archive: Archive, shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "mine.toml", f'store = "{archive.house.path}"')
    named = Shell({**shell.environ, "RUNG_CONFIG": str(tmp_path / "mine.toml")})
    assert "notes: 233 records" in named.ok("stats").stdout


def test_papers_are_found_by_the_file(shell: Shell, file: Path) -> None:
    (file.parent / "papers.db").symlink_to(DATA / RELEASES[0] / "snapshot.db")
    write(file, 'papers_db = "papers.db"')
    assert "2015" in shell.ok("papers", "search", "deep learning").stdout


@pytest.mark.parametrize("key", ["url", "provider_url"])
def test_the_token_of_the_file_goes_to_no_other_server(shell: Shell, file: Path, key: str) -> None:
    option = f"--{key.replace('_', '-')}"
    with answering(lambda asked: as_json({}, 404)) as server:
        for source in (f'{key} = "https://rung.example"', 'store = "x.db"', ""):
            write(file, source, 'token = "rung_of_the_file"')
            assert shell.run(*QUERY, option, server.url).exit_code != 0
            named = Shell({**shell.environ, "RUNG_URL": server.url})
            assert named.run(*QUERY).exit_code == 3
        assert "rung_of_the_file" not in {asked.token for asked in server.asked}
        before = len(server.asked)  # without a token, the server is asked for its sign-in
        write(file, f'{key} = "{server.url}"', 'token = "rung_of_the_file"')
        shell.run(*QUERY, option, server.url)
        assert {asked.token for asked in server.asked[before:]} == {"rung_of_the_file"}


def test_a_token_on_the_command_line_or_in_the_environment_comes_first(
    shell: Shell, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("in_a_file")
    (tmp_path / "token").chmod(0o600)
    with answering(lambda asked: as_json({}, 404)) as server:
        write(file, f'url = "{server.url}"', 'token = "of_the_file"')
        shell.run(*QUERY, "--token", "typed")
        shell.run(*QUERY, "--token-file", str(tmp_path / "token"))
        Shell({**shell.environ, "RUNG_TOKEN": "of_the_environment"}).run(*QUERY)
        asked = [asked.token for asked in server.asked]
    assert list(dict.fromkeys(asked)) == ["typed", "in_a_file", "of_the_environment"]


def test_members_of_packages_and_clients_get_no_token_of_the_file(file: Path) -> None:
    written = {"token": "t", "token_file": "f", "url": "u", "store": "s"}
    found = config.defaults(rung, written)
    assert found["query"] == written and found["export"]["field"] == written
    assert found["package"]["create"] == {"store": "s"} and found["import"] == {"store": "s"}
    assert "token" not in found["connect"]


def test_every_fault_is_said_at_once_with_an_example(shell: Shell, file: Path) -> None:
    write(
        file,
        "# of a person",
        'urll = "https://a.example"',
        'url = "ftp://a.example"',
        'provider-url = "https://b.example"',
        "store = 5",
        'token = "two words"',
        "[papers]",
        'db = "x"',
    )
    result = shell.run("stats")
    assert result.exit_code == 2 and result.stdout == ""
    lines = result.stderr.removeprefix("Error: ").splitlines()
    assert [line.partition(": ")[0] for line in lines] == [str(file)] * 6
    assert "Did you mean url?" in lines[0] and "https://rung.example.com" in lines[1]
    assert "Did you mean provider_url?" in lines[2] and 'store = "/data/rung.db"' in lines[3]
    assert "two words" not in result.stderr, "a token is not shown"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("store = 'x'", "url = rung.example"), "line 2: "),
        (("store = 'x'", "", "token = 'x"), "line 3: "),
        (("url = 'https://a.example'", "provider_url = 'https://b.example'"), "Remove one."),
        (("token = 'x'", "token_file = 'y'"), "Remove one."),
        (("store = ''",), 'for example store = "/data/rung.db"'),
    ],
)
def test_a_file_that_cannot_be_used_says_where(
    shell: Shell, file: Path, lines: tuple[str, ...], said: str
) -> None:
    write(file, *lines)
    result = shell.run("stats")
    assert result.exit_code == 2 and said in result.stderr


def test_a_named_file_must_be_there(shell: Shell, tmp_path: Path) -> None:
    named = Shell({**shell.environ, "RUNG_CONFIG": str(tmp_path / "no.toml")})
    result = named.run("stats")
    assert result.exit_code == 2 and "RUNG_CONFIG" in result.stderr


def test_a_pipe_and_a_large_file_are_no_configuration(
    shell: Shell, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(file)
    assert "not a regular file" in shell.run("stats").stderr
    file.unlink()
    write(file, *(f'key_{number} = "x"' for number in range(5_000)))
    result = shell.run("stats")
    assert result.exit_code == 2 and "65536 bytes" in result.stderr
    monkeypatch.chdir(tmp_path)  # the checkout may have a store
    named = Shell({**shell.environ, "RUNG_CONFIG": os.devnull})
    assert "no store" in named.run("stats").stderr


@pytest.mark.parametrize("value", ["[" * 3_000, "9" * 5_000, '"""' + "\\u0000" * 100])
def test_values_no_parser_can_take_are_refused_in_a_line(
    shell: Shell, file: Path, value: str
) -> None:
    write(file, f"url = {value}")
    result = shell.run("stats")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert f"{file}" in result.stderr and len(result.stderr) < 1_000


def test_many_faults_are_all_said(shell: Shell, file: Path) -> None:
    write(file, *(f'key_{number} = "x"' for number in range(2_000)))
    lines = shell.run("stats").stderr.splitlines()
    assert len(lines) == 2_000 and lines[-1].startswith(f"{file}: Unknown key key_1999")


def test_where_there_is_no_home_there_is_no_file(shell: Shell, tmp_path: Path) -> None:
    nobody = "~nobody-of-that-name"
    assert config.load({"XDG_CONFIG_HOME": nobody}).written == {}
    with pytest.raises(config.ConfigError, match="RUNG_CONFIG"):
        config.load({"RUNG_CONFIG": f"{nobody}/rung.toml"})
    write(tmp_path / "mine.toml", f'store = "{nobody}/rung.db"')
    with pytest.raises(config.ConfigError, match="home directory is unknown"):
        config.load({"RUNG_CONFIG": str(tmp_path / "mine.toml")})


def test_a_token_that_is_none_is_blamed_where_it_was_given(shell: Shell) -> None:
    source = ("--url", "https://rung.invalid")
    assert "--token contains no token" in shell.run(*QUERY, *source, "--token", "a b").stderr
    named = Shell({**shell.environ, "RUNG_TOKEN": "a b"})
    assert "RUNG_TOKEN contains no token" in named.run(*QUERY, *source).stderr


def test_bytes_that_are_no_text_are_no_configuration(shell: Shell, file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    assert "UTF-8" in shell.run("stats").stderr


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("completion", "zsh")])
def test_help_and_what_explains_the_file_work_without_it(
    shell: Shell, file: Path, words: tuple[str, ...]
) -> None:
    write(file, "no toml")
    assert shell.run(*words).exit_code == 0


def test_rung_config_shows_the_settings_beside_what_is_wrong_with_the_file(
    shell: Shell, file: Path
) -> None:
    write(file, "no toml")
    result = shell.run("config")
    assert "RUNG_STORE=" in result.stdout and f"{file}, line 1" in result.stderr


def test_others_who_can_read_a_token_are_warned_of(
    archive: Archive, shell: Shell, file: Path
) -> None:
    write(file, f'store = "{archive.house.path}"', 'token = "x"', mode=0o644)
    assert f"chmod 600 {file}" in shell.ok("stats").stderr
    write(file, f'store = "{archive.house.path}"', mode=0o644)
    assert shell.ok("stats").stderr == ""


def test_each_value_tells_where_it_comes_from(file: Path) -> None:
    write(file, 'url = "https://a.example/x?key=1"', 'token = "secret"')
    with pytest.raises(config.ConfigError, match="without a user name"):
        config.load({"RUNG_CONFIG": str(file)})
    write(file, 'url = "https://a.example"', 'token = "secret"')
    values = config.load({"RUNG_CONFIG": str(file), "RUNG_STORE": "x.db"})
    found = {one.setting.name: (shown(one), one.origin) for one in values.effective}
    assert found == {
        "url": ("https://a.example", str(file)),
        "provider_url": ("none", "default"),
        "store": ("x.db", "RUNG_STORE"),
        "papers_db": ("none", "default"),
        "token": ("(hidden)", str(file)),
        "token_file": ("none", "default"),
    }


def test_the_store_of_the_file_may_be_a_database(file: Path) -> None:
    write(file, 'store = "postgresql://ada:secret@db.example/rung"')
    values = config.load({"RUNG_CONFIG": str(file)})
    (store,) = [one for one in values.effective if one.setting.name == "store"]
    assert store.value == "postgresql://ada:secret@db.example/rung"
    assert "secret" not in shown(store)
    write(file, 'store = "mysql://db.example/rung"')
    with pytest.raises(config.ConfigError, match="must be a path or a postgresql:// URL"):
        config.load({"RUNG_CONFIG": str(file)})


def test_no_file_is_no_fault(shell: Shell) -> None:
    assert "query" in shell.ok("--help").stdout
    assert config.load({"XDG_CONFIG_HOME": "/nowhere"}).written == {}
