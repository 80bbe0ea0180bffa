//! Watches, server-side apply, a custom resource and the reflector of kube-rs. Nothing here knows that it is not upstream's server.
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

async fn namespace(client: &Client) -> Result<String> {
    let made: Namespace = serde_json::from_value(json!({"metadata": {"generateName": "kube-rs-"}}))?;
    Ok(Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &made).await?.name_any())
}

fn pod(name: &str) -> Result<Pod> {
    let spec = json!({"containers": [{"name": "main", "image": "example.com/app:1"}]});
    Ok(serde_json::from_value(json!({"metadata": {"name": name, "labels": {"suite": "kube-rs"}}, "spec": spec}))?)
}

#[tokio::test]
async fn a_watch_delivers_every_change_in_order() -> Result<()> {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client).await?);
    let version = maps.list(&ListParams::default()).await?.metadata.resource_version.context("a list has a version")?;
    let mut events = maps.watch(&WatchParams::default().fields("metadata.name=a"), &version).await?.boxed();
    let made: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"n": "1"}}))?;
    maps.create(&PostParams::default(), &made).await?;
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"n": "2"}}))).await?;
    maps.delete("a", &DeleteParams::default()).await?;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match tokio::time::timeout(PATIENCE, events.try_next()).await?? {
            Some(WatchEvent::Added(map)) => seen.push(format!("added {}", map.data.unwrap_or_default()["n"])),
            Some(WatchEvent::Modified(map)) => seen.push(format!("modified {}", map.data.unwrap_or_default()["n"])),
            Some(WatchEvent::Deleted(map)) => seen.push(format!("deleted {}", map.data.unwrap_or_default()["n"])),
            Some(WatchEvent::Bookmark(_)) => {}
            other => bail!("{other:?}"),
        }
    }
    assert_eq!(seen, ["added 1", "modified 2", "deleted 2"]);
    Ok(())
}

#[tokio::test]
async fn server_side_apply_keeps_owners_apart() -> Result<()> {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(&client).await?);
    let applied = |data: serde_json::Value| Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}));
    maps.patch("a", &PatchParams::apply("one"), &applied(json!({"x": "1", "y": "1"}))).await?;
    let refused = maps.patch("a", &PatchParams::apply("two"), &applied(json!({"x": "2"}))).await;
    match refused {
        Err(kube::Error::Api(status)) => assert_eq!((status.code, status.reason.as_str()), (409, "Conflict")),
        other => bail!("the second manager owns nothing: {other:?}"),
    }
    maps.patch("a", &PatchParams::apply("two").force(), &applied(json!({"x": "2"}))).await?;
    let map = maps.patch("a", &PatchParams::apply("one"), &applied(json!({"z": "1"}))).await?;
    assert_eq!(json!(map.data), json!({"x": "2", "z": "1"}));
    Ok(())
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "suite.skiff.dev", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
struct WidgetSpec {
    size: i64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct WidgetStatus {
    ready: bool,
}

#[tokio::test]
async fn a_derived_custom_resource_is_defined_stored_and_cached() -> Result<()> {
    let client = Client::try_default().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = Widget::crd();
    let name = definition.name_any();
    definitions.patch(&name, &PatchParams::apply("suite").force(), &Patch::Apply(&definition)).await?;
    tokio::time::timeout(PATIENCE, await_condition(definitions, &name, conditions::is_crd_established())).await??;

    let widgets: Api<Widget> = Api::namespaced(client.clone(), &namespace(&client).await?);
    let (reader, writer) = reflector::store();
    let cached = reflector(writer, watcher(widgets.clone(), watcher::Config::default())).default_backoff().touched_objects();
    let caching = tokio::spawn(cached.for_each(|_| std::future::ready(())));
    widgets.create(&PostParams::default(), &Widget::new("a", WidgetSpec { size: 3 })).await?;
    let status = Patch::Merge(json!({"status": {"ready": true}}));
    widgets.patch_status("a", &PatchParams::default(), &status).await?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !reader.state().iter().any(|widget| widget.spec.size == 3 && widget.status.as_ref().is_some_and(|status| status.ready)) {
        if tokio::time::Instant::now() > deadline {
            bail!("the cache has {:?}", reader.state());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let invalid = widgets.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": "large"}}))).await;
    assert!(matches!(&invalid, Err(kube::Error::Api(status)) if status.code == 422), "{invalid:?}");
    caching.abort();
    Ok(())
}

#[tokio::test]
async fn a_pod_runs_prints_and_ends() -> Result<()> {
    let client = Client::try_default().await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace(&client).await?);
    pods.create(&PostParams::default(), &pod("a")?).await?;
    tokio::time::timeout(PATIENCE, await_condition(pods.clone(), "a", conditions::is_pod_running())).await??;
    assert!(pods.logs("a", &LogParams::default()).await?.contains("started on a simulated node"));
    let uid = pods.get("a").await?.uid().context("a pod has a uid")?;
    pods.delete("a", &DeleteParams::default()).await?;
    tokio::time::timeout(PATIENCE, await_condition(pods, "a", conditions::is_deleted(&uid))).await??;
    Ok(())
}
