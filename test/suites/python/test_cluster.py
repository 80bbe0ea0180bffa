"""The Python client and kopf, unmodified, against a Skiff cluster named by KUBECONFIG. Nothing here knows that it is not upstream's server."""
import os
import subprocess
import sys
import time
import unittest

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException
from kubernetes.stream import stream

PATIENCE = 60


def eventually(check):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = check()
            if found:
                return found
            problem = found
        except ApiException as error:
            problem = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE} s: {problem}")
        time.sleep(0.05)


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config.load_kube_config()
        cls.core = client.CoreV1Api()
        cls.namespace = cls.core.create_namespace({"metadata": {"generateName": "python-"}}).metadata.name

    @classmethod
    def tearDownClass(cls):
        cls.core.delete_namespace(cls.namespace)


class TestClient(Suite):
    def test_watch_delivers_every_change_in_order(self):
        version = self.core.list_namespaced_config_map(self.namespace).metadata.resource_version
        self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": "a"}, "data": {"n": "1"}})
        self.core.patch_namespaced_config_map("a", self.namespace, {"data": {"n": "2"}})
        self.core.delete_namespaced_config_map("a", self.namespace)
        seen = []
        source = watch.Watch()
        events = source.stream(
            self.core.list_namespaced_config_map, self.namespace, field_selector="metadata.name=a", resource_version=version, timeout_seconds=PATIENCE
        )
        for event in events:
            seen.append((event["type"], event["object"].data["n"]))
            if len(seen) == 3:
                source.stop()
        self.assertEqual(seen, [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")])

    def test_server_side_apply_of_the_dynamic_client_keeps_owners_apart(self):
        maps = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")

        def apply(manager, data, **more):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}
            return maps.server_side_apply(body=body, namespace=self.namespace, field_manager=manager, **more)

        apply("one", {"x": "1", "y": "1"})
        with self.assertRaises(ApiException) as refused:
            apply("two", {"x": "2"})
        self.assertEqual(refused.exception.status, 409)
        apply("two", {"x": "2"}, force_conflicts=True)
        self.assertEqual(apply("one", {"z": "1"}).data.to_dict(), {"x": "2", "z": "1"})

    def test_pod_runs_prints_and_answers_exec(self):
        answer = '{"echo hello": {"stdout": "hello\\n"}}'
        spec = {"containers": [{"name": "main", "image": "example.com/app:1"}]}
        metadata = {"name": "web", "annotations": {"skiff.dev/simulated-exec": answer}}
        self.core.create_namespaced_pod(self.namespace, {"metadata": metadata, "spec": spec})
        eventually(lambda: self.core.read_namespaced_pod("web", self.namespace).status.phase == "Running")
        self.assertIn("started on a simulated node", self.core.read_namespaced_pod_log("web", self.namespace))
        said = stream(
            self.core.connect_get_namespaced_pod_exec, "web", self.namespace, command=["echo", "hello"], stdout=True, stderr=True, stdin=False, tty=False
        )
        self.assertEqual(said, "hello\n")

    def test_deployment_scales_and_its_pods_go_with_it(self):
        apps = client.AppsV1Api()
        labels = {"app": "scaled"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        apps.create_namespaced_deployment(self.namespace, {"metadata": {"name": "scaled"}, "spec": spec})
        apps.patch_namespaced_deployment_scale("scaled", self.namespace, {"spec": {"replicas": 3}})
        eventually(lambda: apps.read_namespaced_deployment("scaled", self.namespace).status.ready_replicas == 3)
        apps.delete_namespaced_deployment("scaled", self.namespace, propagation_policy="Foreground")
        eventually(lambda: not self.core.list_namespaced_pod(self.namespace, label_selector="app=scaled").items)


class TestKopf(Suite):
    def setUp(self):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Page", "plural": "pages", "singular": "page"}
        definition = {
            "metadata": {"name": "pages.suite.skiff.dev"},
            "spec": {"group": "suite.skiff.dev", "scope": "Namespaced", "names": names, "versions": [version]},
        }
        client.ApiextensionsV1Api().create_custom_resource_definition(definition)
        here = os.path.dirname(os.path.abspath(__file__))
        command = [sys.executable, "-m", "kopf", "run", "--namespace", self.namespace, "--standalone", os.path.join(here, "operator_program.py")]
        self.operator = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def tearDown(self):
        self.operator.terminate()
        output, _ = self.operator.communicate(timeout=PATIENCE)
        if any(error for _, error in getattr(self._outcome, "errors", [])):
            print(output)
        client.ApiextensionsV1Api().delete_custom_resource_definition("pages.suite.skiff.dev")

    def test_operator_creates_changes_and_cleans_up(self):
        pages = client.CustomObjectsApi()
        kind = ("suite.skiff.dev", "v1", self.namespace, "pages")
        body = {"apiVersion": "suite.skiff.dev/v1", "kind": "Page", "metadata": {"name": "home"}, "spec": {"text": "hello"}}
        eventually(lambda: pages.create_namespaced_custom_object(*kind, body))
        read = lambda: self.core.read_namespaced_config_map("home", self.namespace)
        made = eventually(read)
        self.assertEqual((made.data, made.metadata.owner_references[0].kind), ({"text": "hello"}, "Page"))
        page = eventually(lambda: (found := pages.get_namespaced_custom_object(*kind, "home")).get("status", {}).get("created") and found)
        self.assertEqual((page["status"]["created"], page["metadata"]["finalizers"]), ({"text": "hello"}, ["suite.skiff.dev/kopf"]))
        eventually(lambda: any(event.reason == "Made" for event in self.core.list_namespaced_event(self.namespace).items))
        pages.patch_namespaced_custom_object(*kind, "home", {"spec": {"text": "changed"}})
        eventually(lambda: read().data == {"text": "changed"})
        pages.delete_namespaced_custom_object(*kind, "home")
        eventually(lambda: self.core.read_namespaced_config_map("home-was-deleted", self.namespace))

        def is_gone():
            try:
                read()
                return False
            except ApiException as error:
                return error.status == 404

        eventually(is_gone)


if __name__ == "__main__":
    unittest.main(verbosity=2)
