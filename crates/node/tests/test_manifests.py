"""The compose file and the Kubernetes manifests of docs/cluster.md: what each kind needs is there, and names fit each other.

Where there is neither Docker nor a cluster, this stands for their linters: keys of other kinds are errors, too.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from cluster_processes import BINARY

PAGE = Path(__file__).parents[3] / "docs/cluster.md"
DOCUMENTS = [one for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.S) for one in yaml.safe_load_all(block)]
COMPOSE = [one for one in DOCUMENTS if "services" in one]
OBJECTS = [one for one in DOCUMENTS if "kind" in one]
QUANTITY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "K": 10**3, "M": 10**6, "G": 10**9, "KB": 10**3, "MB": 10**6, "GB": 10**9}
# Keys of each kind's spec: those that it must have, those that it may have.
SPECS = {
    ("apps/v1", "Deployment"): ({"selector", "template"}, {"replicas", "strategy"}),
    ("apps/v1", "StatefulSet"): ({"selector", "template", "serviceName"}, {"replicas", "podManagementPolicy"}),
    ("v1", "Service"): ({"selector", "ports"}, {"clusterIP", "publishNotReadyAddresses"}),
}
CONTAINER = {"name", "image", "args"}, {"env", "ports", "readinessProbe", "resources", "volumeMounts"}


def assert_keys(found: dict, keys: tuple[set[str], set[str]]) -> None:
    must, may = keys
    assert must <= set(found) <= must | may, set(found) ^ must


def bytes_of(text: str) -> int:
    figure, unit = re.fullmatch(r"(\d+)([KMG][iB]?)", text).groups()
    return int(figure) * QUANTITY[unit]


@cache
def flags(role: str) -> set[str]:
    said = subprocess.run([str(BINARY), role, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ +(--[a-z-]+)", said, re.M))


def arguments(command: list[str]) -> dict[str, str]:
    """The flags of a command line, each of which the program has."""
    role, *rest = command
    given = dict(zip(rest[::2], rest[1::2], strict=True))
    assert set(given) <= flags(role), set(given) - flags(role)
    if role == "executor":
        assert {"--scheduler", "--work-folder", "--host"} <= set(given)
    return given


def workloads() -> list[dict]:
    return [one for one in OBJECTS if one["kind"] != "Service"]


def service(name: str) -> dict:
    (found,) = [one for one in OBJECTS if one["kind"] == "Service" and one["metadata"]["name"] == name]
    return found["spec"]


def test_both_are_there():
    assert len(COMPOSE) == 1
    assert sorted(one["kind"] for one in OBJECTS) == ["Deployment", "Service", "Service", "StatefulSet"]


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_has_what_its_kind_needs(one):
    assert set(one) == {"apiVersion", "kind", "metadata", "spec"}
    assert_keys(one["spec"], SPECS[one["apiVersion"], one["kind"]])
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,62}", one["metadata"]["name"])


@pytest.mark.parametrize("one", workloads(), ids=lambda one: one["metadata"]["name"])
def test_a_workload_is_whole(one):
    spec = one["spec"]
    template = spec["template"]
    assert spec["selector"]["matchLabels"] == template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    assert_keys(container, CONTAINER)
    ports = {port["containerPort"] for port in container["ports"]}
    assert container["readinessProbe"]["tcpSocket"]["port"] in ports
    volumes = {volume["name"] for volume in template["spec"].get("volumes", [])}
    assert {mount["name"] for mount in container.get("volumeMounts", [])} == volumes
    # The pods are found by a service of their ports.
    found = service(spec.get("serviceName", one["metadata"]["name"]))
    assert found["selector"] == template["metadata"]["labels"]
    assert {port["port"] for port in found["ports"]} == ports
    assert len(found["ports"]) == 1 or all("name" in port for port in found["ports"])
    variables = {variable["name"] for variable in container.get("env", [])}
    assert all(isinstance(part, str) for part in container["args"])
    assert set(re.findall(r"\$\((\w+)\)", " ".join(container["args"]))) == variables
    given, limits = arguments(container["args"]), container["resources"]["limits"]
    if "--memory" in given:
        assert bytes_of(given["--memory"]) <= 0.75 * bytes_of(limits["memory"])
        assert given["--vcores"] == limits["cpu"]
        assert given["--work-folder"] in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_executors_find_the_scheduler():
    (executor,) = [one for one in OBJECTS if one["kind"] == "StatefulSet"]
    given = arguments(executor["spec"]["template"]["spec"]["containers"][0]["args"])
    name, port = given["--scheduler"].split(":")
    assert {"port": int(port)} in service(name)["ports"]
    assert service(executor["spec"]["serviceName"])["clusterIP"] == "None"
    assert given["--host"] == f"$(POD).{executor['spec']['serviceName']}"


def test_the_compose_file_is_whole():
    (compose,) = COMPOSE
    assert set(compose) == {"services", "volumes"}
    for one in compose["services"].values():
        assert_keys(one, ({"image", "command", "restart"}, {"entrypoint", "deploy", "volumes"}))
        # A single $ would be a variable of the file.
        assert not re.search(r"(?<!\$)\$(?!\$)", one["command"])
        (line,) = re.findall(r"(?:grouse-cluster )?((?:scheduler|executor) --[^']*)", one["command"])
        given = arguments(line.replace('"', "").replace("$$(hostname -i)", "ADDRESS").split())
        if "--memory" in given:
            limit = one["deploy"]["resources"]["limits"]["memory"]
            assert bytes_of(given["--memory"]) <= 0.75 * bytes_of(limit)
            name, _ = given["--scheduler"].split(":")
            assert name in compose["services"]
        named = {volume.split(":")[0] for volume in one.get("volumes", [])}
        assert named <= set(compose["volumes"])
