"""The ConfigMaps of a namespace with Debian's python3-kubernetes: a list, then watches from where the list or the last event was.

Prints what it knows, as one JSON object of name to value per line, after every change. Lines on standard input are applied: `name value`.
"""
import json
import sys
import threading
import time

import urllib3
from kubernetes import client, config, watch

namespace = sys.argv[1]
config.load_kube_config()
core = client.CoreV1Api()
known = {}
RESTART_SECONDS = 0.05


def show():
    print(json.dumps(dict(sorted(known.items()))), flush=True)


def note(kind, config_map):
    name = config_map.metadata.name
    if kind == "DELETED":
        known.pop(name, None)
    else:
        known[name] = (config_map.data or {}).get("value", "")


def apply(name, value):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}
    while True:
        try:
            core.api_client.call_api(
                f"/api/v1/namespaces/{namespace}/configmaps/{name}",
                "PATCH",
                query_params=[("fieldManager", "python-client"), ("force", "true")],
                header_params={"Content-Type": "application/apply-patch+yaml", "Accept": "application/json"},
                body=json.dumps(body),
                auth_settings=["BearerToken"],
                _preload_content=False,
            )
            return
        except (client.exceptions.ApiException, urllib3.exceptions.HTTPError):
            time.sleep(RESTART_SECONDS)


def read_commands():
    for line in sys.stdin:
        apply(*line.split())


def follow():
    """Lists, then watches until the version is too old to go on from."""
    listed = core.list_namespaced_config_map(namespace)
    known.clear()
    for config_map in listed.items:
        note("ADDED", config_map)
    show()
    version = listed.metadata.resource_version
    while True:
        try:
            for event in watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=60):
                note(event["type"], event["object"])
                version = event["object"].metadata.resource_version
                show()
        except client.exceptions.ApiException as error:
            if error.status == 410:
                return
            time.sleep(RESTART_SECONDS)
        except urllib3.exceptions.HTTPError:
            time.sleep(RESTART_SECONDS)


core.create_namespaced_config_map(namespace, {"metadata": {"name": "created"}, "data": {"value": "1"}})
threading.Thread(target=read_commands, daemon=True).start()
while True:
    try:
        follow()
    except (client.exceptions.ApiException, urllib3.exceptions.HTTPError):
        time.sleep(RESTART_SECONDS)
