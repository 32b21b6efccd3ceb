"""Writes what the wheel is made of and what its extras bring, as CycloneDX 1.6: `sbom.py WHEEL OUT.json`.

Packages are those that are installed here, from .ci/locked.txt; licences are what they say of themselves. The same
wheel and list give the same bytes: the time is SOURCE_DATE_EPOCH, the serial number follows from the content.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import sys
import tomllib
import uuid
from importlib import metadata
from pathlib import Path

from check_licences import CARRIED, DEVELOPERS, brought


def component(name: str, said: str, extras: list[str]) -> dict[str, object]:
    """One package, which extras bring it, and what it carries of others."""
    version = metadata.version(name)
    notes = [{"name": "tangere:extra", "value": extra} for extra in extras]
    notes += [{"name": "tangere:carries", "value": CARRIED[name]}] if name in CARRIED else []
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "purl": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "scope": "required" if "core" in extras else "optional",
        "licenses": [{"license": {"name": said}}] if said else [],
        "properties": notes,
    }


def main(wheel: Path, out: Path) -> None:
    """Walk through core and extras, then write."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, tuple[str, list[str]]] = {}
    for extra, needs in {"core": project["dependencies"], **project["optional-dependencies"]}.items():
        seen: dict[str, str | None] = {}
        for need in needs if extra not in DEVELOPERS else []:
            brought(need, seen)
        for name, said in seen.items():
            if said is not None:
                found.setdefault(name, (said, []))[1].append(extra)
    ours = f"pkg:pypi/{project['name']}@{project['version']}"
    components = [component(name, *found[name]) for name in sorted(found)]
    when = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.UTC)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": ours,
                "purl": ours,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
            },
        },
        "components": components,
        "dependencies": [{"ref": ours, "dependsOn": [c["bom-ref"] for c in components]}],
    }
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True)).urn
    out.write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    print(f"{out}: {len(components)} packages beside {wheel.name}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
