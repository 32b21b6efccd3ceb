"""What CI and `make test` install: every package with one version and a hash for each file, and nothing but that."""

import re
import tomllib
from pathlib import Path

import yaml

HERE = Path(__file__).parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; ([^\\]+?))? \\$")
LISTS = [HERE / ".ci" / name for name in ("locked.txt", "locked_clients.txt")]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, dict[str, list[str]]]:
    """Of each package its versions, and of each version its hashes; every line has to be one or the other."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in text.splitlines():
        if pin := PIN.match(line):
            found.setdefault(plain(pin[1]), {})[pin[2]] = hashes = []
        else:
            one = re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})(?: \\)?", line)
            assert one, f"neither a package nor a hash: {line}"
            hashes.append(one[1])
    return found


def locked() -> dict[str, dict[str, list[str]]]:
    return {name: versions for file in LISTS for name, versions in pins(file.read_text()).items()}


def test_every_version_has_hashes():
    for name, versions in locked().items():
        for version, hashes in versions.items():
            assert hashes, f"{name} {version} has no hash"
            assert len(set(hashes)) == len(hashes)


def test_what_is_pinned_is_locked_as_pinned():
    """Whoever changes constraints.txt writes the lists anew: `make lock`."""
    found = locked()
    for line in (HERE / "constraints.txt").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        name, version = line.partition(";")[0].strip().split("==")
        assert version in found.get(plain(name), {}), f"{line}: run `make lock`"


def test_every_extra_is_locked():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())
    needs = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    needs += [need for extra in project["project"]["optional-dependencies"].values() for need in extra]
    found = locked()
    absent = {need for need in needs if plain(re.match(r"[A-Za-z0-9._-]+", need)[0]) not in found}
    assert not absent, f"{sorted(absent)}: run `make lock`"


def test_no_package_twice_and_no_index_named():
    texts = [pins(file.read_text()) for file in LISTS]
    assert not set(texts[0]) & set(texts[1]), "a package is in both lists"
    for file in [*LISTS, HERE / "constraints.txt"]:
        assert "://" not in file.read_text()


def test_workflows_name_actions_by_commit_and_may_only_read():
    """A tag of somebody else's action can be moved to other code, a commit cannot."""
    files = sorted((HERE / ".github" / "workflows").glob("*.yml"))
    assert files
    for file in files:
        flow = yaml.safe_load(file.read_text())
        assert flow["permissions"] == {"contents": "read"}
        for job in flow["jobs"].values():
            steps = job["steps"]
            assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
            for script in re.findall(r"\.ci/[\w.]+", " ".join(step.get("run", "") for step in steps)):
                assert (HERE / script).is_file(), f"{file.name} names {script}"
