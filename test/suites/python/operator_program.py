"""An operator on kopf: a Site gets a ConfigMap, a status and a finalizer; its deletion is reported."""
import kopf
import kubernetes


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = True
    settings.persistence.finalizer = "suite.skiff.dev/kopf"


@kopf.on.create("suite.skiff.dev", "v1", "pages")
def created(spec, name, namespace, body, **_):
    content = {"metadata": {"name": name}, "data": {"text": spec["text"]}}
    kopf.adopt(content)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, content)
    kopf.info(body, reason="Made", message="the page has its ConfigMap")
    return {"text": spec["text"]}


@kopf.on.field("suite.skiff.dev", "v1", "pages", field="spec.text")
def changed(old, new, name, namespace, **_):
    if old is not None:
        kubernetes.client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"text": new}})


@kopf.on.delete("suite.skiff.dev", "v1", "pages")
def deleted(name, namespace, **_):
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-was-deleted"}})


@kopf.on.login()
def login(**kwargs):
    kubernetes.config.load_kube_config()
    return kopf.login_via_client(**kwargs)
