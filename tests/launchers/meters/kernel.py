"""The files in which a kernel shows its meters, below a folder."""

from pathlib import Path


class Kernel:
    """A tree of sysfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sys = str(folder)

    def writes(self, path: str, value: object) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        return file

    def zone(self, name: str, called: str, energy_uj: int, most_uj: int = 262143328850) -> None:
        self.writes(f"class/powercap/{name}/name", called)
        self.writes(f"class/powercap/{name}/max_energy_range_uj", most_uj)
        self.counts(name, energy_uj)

    def counts(self, name: str, energy_uj: int) -> None:
        self.writes(f"class/powercap/{name}/energy_uj", energy_uj)

    def card(self, number: int, vendor: str = "0x1002", **files: object) -> None:
        device = f"class/drm/card{number}/device"
        self.writes(f"{device}/vendor", vendor)
        for name, value in files.items():
            is_sensor = name.startswith(("power1", "energy1"))
            self.writes(f"{device}/{'hwmon/hwmon3/' if is_sensor else ''}{name}", value)
