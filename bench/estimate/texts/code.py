"""Reads measurements from a folder of CSV files and writes a summary."""
from __future__ import annotations

import csv
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Iterator

logger = logging.getLogger(__name__)


@dataclass
class Station:
    name: str
    latitude: float
    longitude: float
    readings: list[float] = field(default_factory=list)

    def mean(self) -> float | None:
        if not self.readings:
            return None
        return sum(self.readings) / len(self.readings)


def read_rows(folder: Path, *, encoding: str = "utf-8") -> Iterator[dict[str, str]]:
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="", encoding=encoding) as handle:
            for number, row in enumerate(csv.DictReader(handle), start=2):
                if row.get("value") in (None, "", "n/a"):
                    logger.warning("%s:%d: no value", path.name, number)
                    continue
                yield row


def collect(rows: Iterable[dict[str, str]]) -> dict[str, Station]:
    stations: dict[str, Station] = {}
    errors = defaultdict(int)
    for row in rows:
        key = row["station_id"].strip().upper()
        try:
            value = float(row["value"])
        except ValueError as error:
            errors[key] += 1
            logger.debug("skipping %r: %s", row, error)
            continue
        station = stations.setdefault(key, Station(row["name"], float(row["lat"]), float(row["lon"])))
        station.readings.append(value)
    if errors:
        logger.info("%d stations with errors: %s", len(errors), dict(errors))
    return stations


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for key, station in sorted(collect(read_rows(Path("data"))).items()):
        print(f"{key:>8}  {station.name:<24}  {station.mean():8.3f}")
