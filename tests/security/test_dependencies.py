"""Rule: the tested set of packages is fixed to the byte. It has a version and a hash for each package, and satisfies
every minimum version in pyproject.toml.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def test_the_tested_set_has_an_allowed_version_of_each_dependency_and_hashes_for_all() -> None:
    lines = [line for line in (ROOT / ".ci/constraints.txt").read_text().splitlines() if not line.startswith("#")]
    found = [re.fullmatch(r"([\w.-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)", line) for line in lines]
    tested = {canonicalize_name(each[1]): each[2] for each in found if each}
    assert len(tested) == len(lines)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [project["project"]["dependencies"], *project["dependency-groups"].values()]
    required = [Requirement(each) for group in groups for each in group if isinstance(each, str)]
    refused = [str(each) for each in required if tested.get(canonicalize_name(each.name), "") not in each.specifier]
    assert (len(required) > 40, refused) == (True, [])


def test_what_the_readme_installs_is_the_tested_set() -> None:
    readme = (ROOT / "README.md").read_text()
    installed = re.findall(r"/pip install ([^&\n]*) \. &&", readme)
    assert ["-c .ci/versions.txt" in each for each in installed] == [True, True]
    versions, hashed = (
        [line.partition(" --hash")[0] for line in (ROOT / ".ci" / name).read_text().splitlines() if line[0] != "#"]
        for name in ("versions.txt", "constraints.txt")
    )
    assert versions == hashed
