/**
 * ConfigMaps and Secrets of the pods on this node (L3): each is watched while a pod refers to it, so that volumes follow changes at once
 * and a kubelet needs to read nothing but what its pods name. Upstream: kubelet/util/manager watch_based_manager.go (v1.36).
 */
import type { ConfigMap, Secret } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import { type AbortScope, abortScope } from '#base/abortScope'
import { configMaps, secrets } from '#client/builtIn'
import type { Resource } from '#client/client'
import { allContainers, type FrozenPod } from './containers.ts'
import { type KubeletSources, ownSources, type SourceDeps } from './kubeletSources.ts'
import type { Mirror } from './listWatch.ts'

interface Watched<T extends KubeObject> {
  readonly mirror: Mirror<T>
  readonly stop: AbortScope
  readonly users: Set<string>
}

export interface ObjectCache {
  configMap(namespace: string, name: string): Promise<Frozen<ConfigMap>>
  secret(namespace: string, name: string): Promise<Frozen<Secret>>
  /** Starts to watch the objects that the pod refers to, the first 256 of them. */
  registerPod(pod: FrozenPod): void
  /** Stops watching what no other pod refers to. */
  unregisterPod(uid: string): void
}

/** Objects that are watched for one pod. A pod may name tens of thousands; the rest are read from the API server each time they are needed. */
const maxWatchedPerPod = 256

type Named = readonly [kind: 'configmaps' | 'secrets', name: string]

/** Every ConfigMap and Secret that a pod names, once. */
export function referencedObjects(pod: FrozenPod): Named[] {
  const found = new Map<string, Named>()
  const add = (kind: Named[0], name: string | undefined) => name && found.set(`${kind}/${name}`, [kind, name])
  for (const { name } of pod.spec.imagePullSecrets ?? []) add('secrets', name)
  for (const { container } of allContainers(pod)) {
    for (const source of container.envFrom ?? []) {
      add('configmaps', source.configMapRef?.name)
      add('secrets', source.secretRef?.name)
    }
    for (const { valueFrom } of container.env ?? []) {
      add('configmaps', valueFrom?.configMapKeyRef?.name)
      add('secrets', valueFrom?.secretKeyRef?.name)
    }
  }
  for (const volume of pod.spec.volumes ?? []) {
    add('configmaps', volume.configMap?.name)
    add('secrets', volume.secret?.secretName)
    for (const source of volume.projected?.sources ?? []) {
      add('configmaps', source.configMap?.name)
      add('secrets', source.secret?.name)
    }
  }
  return [...found.values()]
}

/** @param onChange called with the uids of the pods that refer to a changed object */
export function createObjectCache(
  deps: SourceDeps & { readonly sources?: KubeletSources | undefined },
  onChange: (podUids: readonly string[]) => void,
  signal: AbortSignal,
): ObjectCache {
  const { sources = ownSources(deps) } = deps
  const configMapWatches = new Map<string, Watched<ConfigMap>>()
  const secretWatches = new Map<string, Watched<Secret>>()
  const get = async <T extends KubeObject>(watches: Map<string, Watched<T>>, resource: Resource<T>, namespace: string, name: string) => {
    const watched = watches.get(`${namespace}/${name}`)
    if (!watched) return deps.client.of(resource).get({ namespace, name }, { signal })
    await watched.mirror.synced
    const object = watched.mirror.get(`${namespace}/${name}`)
    // In the singular, as in upstream's message.
    if (!object) throw notFound({ group: '', resource: resource.kind.toLowerCase() }, name)
    return object
  }
  const watch = <T extends KubeObject>(watches: Map<string, Watched<T>>, resource: Resource<T>, namespace: string, name: string, uid: string) => {
    const key = `${namespace}/${name}`
    const known = watches.get(key)
    if (known) {
      known.users.add(uid)
      return
    }
    const stop = abortScope(signal)
    const users = new Set([uid])
    const selection = { namespace, fieldSelector: `metadata.name=${name}` }
    let isListed = false
    const changed = () => {
      // The first list is not a change: readers wait for it anyway.
      if (isListed) onChange([...users])
    }
    const started = sources.objects(resource, selection, stop.signal, changed)
    void started.done
    void started.synced.then(() => {
      isListed = true
    })
    watches.set(key, { mirror: started, stop, users })
  }
  const release = <T extends KubeObject>(watches: Map<string, Watched<T>>, uid: string) => {
    for (const [key, watched] of watches) {
      if (!watched.users.delete(uid) || watched.users.size > 0) continue
      watched.stop.abort()
      watches.delete(key)
    }
  }
  return {
    configMap: (namespace, name) => get(configMapWatches, configMaps, namespace, name),
    secret: (namespace, name) => get(secretWatches, secrets, namespace, name),
    registerPod: (pod) => {
      const { namespace = '', uid = '' } = pod.metadata
      for (const [kind, name] of referencedObjects(pod).slice(0, maxWatchedPerPod)) {
        if (kind === 'configmaps') watch(configMapWatches, configMaps, namespace, name, uid)
        else watch(secretWatches, secrets, namespace, name, uid)
      }
    },
    unregisterPod: (uid) => {
      release(configMapWatches, uid)
      release(secretWatches, uid)
    },
  }
}
