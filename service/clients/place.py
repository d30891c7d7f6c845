"""Locations of client configuration files on each system."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """One file. `linux` is the path on all other systems.

    `~` is the home folder, `%APPDATA%` that of Windows; other paths are relative to the
    folder of a project. If the environment sets `variable`, it names the folder instead.
    """

    linux: str
    macos: str = ""
    windows: str = ""
    variable: str = ""

    def path(self, system: str, home: Path, folder: Path, environment: Mapping[str, str]) -> Path:
        """The file on a system, named as `sys.platform` does."""
        own = {"darwin": self.macos, "win32": self.windows}.get(system)
        spelled = (own or self.linux).replace("\\", "/")
        chosen = environment.get(self.variable, "") if self.variable else ""
        if chosen:
            return Path(chosen).expanduser() / spelled.rpartition("/")[2]
        if spelled.startswith("%APPDATA%/"):
            roaming = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
            return roaming / spelled.removeprefix("%APPDATA%/")
        if spelled.startswith("~/"):
            return home / spelled.removeprefix("~/")
        return folder / spelled

    @property
    def shown(self) -> str:
        """The paths for all systems, as shown to a person."""
        if not (self.macos or self.windows):
            return self.linux
        return f"{self.linux} (Linux), {self.macos} (macOS), {self.windows} (Windows)"
