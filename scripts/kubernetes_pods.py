#!/usr/bin/env python3
"""The part of scripts/kubernetes_proof.sh that a kubelet would do: checks the pods that the
controllers made, and runs their commands as processes of this host, with their arguments, variables
and volumes. Only addresses and paths are replaced: the bus is on loopback, and a volume is a
folder.

    scripts/kubernetes_pods.py WORK THRONG WORKERS BUS-PORT
"""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

work, throng, workers, bus_port = (
    pathlib.Path(sys.argv[1]),
    sys.argv[2],
    int(sys.argv[3]),
    sys.argv[4],
)
INDEX = "batch.kubernetes.io/job-completion-index"
PROGRAMS = {"nats": shutil.which("nats-server"), "worker": throng, "coordinator": throng}
RUN_WITHIN_S = 120


def items(kind):
    return json.loads((work / f"{kind}.json").read_text())["items"]


def data(kind, name):
    found = next(item for item in items(kind) if item["metadata"]["name"] == name)["data"]
    return {
        key: base64.b64decode(value) if kind == "secrets" else value.encode()
        for key, value in found.items()
    }


def component(pod):
    return pod["metadata"]["labels"]["app.kubernetes.io/component"]


def field(pod, path):
    """What a fieldRef says: metadata.name, metadata.labels['KEY'], metadata.annotations['KEY']."""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
    return (
        pod["metadata"][keyed[1]][keyed[2]]
        if keyed
        else pod["metadata"][path.removeprefix("metadata.")]
    )


def expanded(text, variables):
    """$(NAME), as Kubernetes replaces it in arguments and in variables further down."""
    return re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda name: variables.get(name[1], name[0]), text)


def variables(pod, container):
    values = {}
    for entry in container["env"]:
        source = entry.get("valueFrom", {})
        if "secretKeyRef" in source:
            reference = source["secretKeyRef"]
            values[entry["name"]] = data("secrets", reference["name"])[reference["key"]].decode()
        elif "fieldRef" in source:
            values[entry["name"]] = field(pod, source["fieldRef"]["fieldPath"])
        else:
            values[entry["name"]] = expanded(entry.get("value", ""), values)
    return values


def volumes(pod, container):
    """A folder for each path at which the container has a volume."""
    folders = {}
    by_name = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    for mount in container["volumeMounts"]:
        volume = by_name[mount["name"]]
        shared = "persistentVolumeClaim" in volume
        folder = (
            work / "volumes" / ("claim" if shared else pod["metadata"]["name"]) / volume["name"]
        )
        folder.mkdir(parents=True, exist_ok=True)
        if "secret" in volume:
            secret = data("secrets", volume["secret"]["secretName"])
            for item in volume["secret"]["items"]:
                (folder / item["path"]).write_bytes(secret[item["key"]])
        if "configMap" in volume:
            for key, content in data("configmaps", volume["configMap"]["name"]).items():
                (folder / key).write_bytes(content)
        folders[mount["mountPath"]] = str(folder)
    return folders


def here(text, folders):
    """A text with paths and addresses of this host."""
    if folders:
        # In one pass: the folders are below paths of this host that may be a pod's as well.
        paths = "|".join(map(re.escape, folders))
        text = re.sub(rf"(?<![\w/])({paths})(?=/|\"|$)", lambda path: folders[path[1]], text)
    text = text.replace("@proof-bus:4222", f"@127.0.0.1:{bus_port}")
    return text.replace('"0.0.0.0:4222"', f'"127.0.0.1:{bus_port}"')


def start(pod):
    container = pod["spec"]["containers"][0]
    folders = volumes(pod, container)
    if component(pod) == "bus":
        config = pathlib.Path(folders["/etc/nats"]) / "nats.conf"
        config.write_text(here(config.read_text(), folders))
    values = variables(pod, container)
    arguments = [here(expanded(argument, values), folders) for argument in container["args"]]
    command = [PROGRAMS[container["name"]], *arguments]
    if hostname := pod["spec"].get("hostname"):
        # A pod has a host's name of its own.
        command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', hostname, *command]
    environment = {name: here(value, {}) for name, value in values.items()}
    log = (work / f"{pod['metadata']['name']}.log").open("w")
    root = work / "root"
    root.mkdir(exist_ok=True)
    print("  " + " ".join([container["name"], *arguments]))
    return subprocess.Popen(
        command, env=environment | {"PATH": os.environ["PATH"]}, cwd=root, stdout=log, stderr=log
    )


def said(pod):
    return (work / f"{pod['metadata']['name']}.log").read_text()


def check_pods(by_component):
    counts = {name: len(pods) for name, pods in by_component.items()}
    assert counts == {"bus": 1, "worker": workers, "coordinator": 1}, counts
    for number, pod in enumerate(by_component["worker"]):
        annotation = pod["metadata"]["annotations"][INDEX]
        assert annotation == pod["metadata"]["labels"][INDEX] == str(number), pod["metadata"]
        assert pod["spec"]["hostname"] == f"proof-workers-{number}", pod["spec"]["hostname"]
        container = pod["spec"]["containers"][0]
        index = [entry for entry in container["env"] if entry["name"] == "JOB_COMPLETION_INDEX"]
        assert len(index) == 1 and INDEX in index[0]["valueFrom"]["fieldRef"]["fieldPath"], index
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    for pod in sum(by_component.values(), []):
        container, context = pod["spec"]["containers"][0], pod["spec"]["securityContext"]
        assert context["runAsNonRoot"] and context["seccompProfile"]["type"] == "RuntimeDefault"
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    print(
        f"pods have the indices 0 to {workers - 1}, requests, and the restricted security context"
    )


def ended(process, pod, until):
    try:
        code = process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        sys.exit(f"{pod['metadata']['name']} did not end:\n{said(pod)}")
    if code != 0:
        sys.exit(f"{pod['metadata']['name']} ended with {code}:\n{said(pod)}")


def check_run(coordinator):
    folder = work / "volumes/claim/runs" / coordinator["metadata"]["name"]
    summary = json.loads((folder / "summary.json").read_text())
    names = sorted(worker["name"] for worker in summary["generator"]["workers"])
    assert names == [f"proof-workers-{number}" for number in range(workers)], names
    again = subprocess.run([throng, "report", folder, "--json"], capture_output=True, check=False)
    assert again.returncode == 0, again.stderr.decode()
    print(said(coordinator))
    print(f"the run folder has the rows of {', '.join(names)}, and its report can be made again")


def main():
    by_component = {}
    for pod in sorted(items("pods"), key=lambda pod: int(pod["metadata"]["labels"].get(INDEX, 0))):
        by_component.setdefault(component(pod), []).append(pod)
    check_pods(by_component)
    processes = []
    try:
        print("their commands:")
        players = by_component["worker"] + by_component["coordinator"]
        processes = [(pod, start(pod)) for pod in players]
        # The bus comes last, as it may in a cluster.
        time.sleep(2)
        bus = by_component["bus"][0]
        processes.append((bus, start(bus)))
        until = time.monotonic() + RUN_WITHIN_S
        for pod, process in processes[: len(players)][::-1]:
            ended(process, pod, until)
    finally:
        for _, process in processes:
            if process.poll() is None:
                process.terminate()
                process.wait()
    check_run(by_component["coordinator"][0])


main()
