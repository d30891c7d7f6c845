"""The extras: packages that only part of Rung needs, and the command that installs them."""

from typing import Final

#: What needs the packages of each extra in setup.cfg, and the packages as arguments of pip.
EXTRAS: Final = {
    "documents": (
        "Outlook messages, and the text of PDF and RTF files",
        "'olefile>=0.47' 'pypdf>=6' 'striprtf>=0.0.28'",
    ),
    "postgres": ("a store in PostgreSQL", "'psycopg[binary,pool]>=3.3,<4'"),
    "redis": ("`RUNG_RATE_LIMIT_STORAGE`", "'redis>=6'"),
    "semantic": (
        "search by meaning",
        "'numpy>=2' 'onnxruntime>=1.32,<2' 'sentencepiece>=0.2,<0.3'",
    ),
    "sync": (
        "sources of the kind `imap`, imports of changed files within seconds, and passwords in the "
        "system keyring",
        "'imapclient>=4.0,<5' 'keyring>=25' 'watchfiles>=1.1,<2'",
    ),
    "xlsx": ("Excel workbooks", "'openpyxl>=3.1,<4'"),
}


def install_command(extra: str) -> str:
    """The command that adds the packages of an extra to the environment of Rung.

    It names the packages and not Rung, so it is the same for a checkout, a wheel and a container.
    """
    return f"pip install {EXTRAS[extra][1]}"
