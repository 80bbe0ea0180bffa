/**
 * One watch of pods, one of nodes and one of each other selection for all simulated nodes of a process (L3): ten thousand kubelets would have thirty thousand
 * watches otherwise. Each kubelet gets what its own watches would deliver, a late one first what is there. One thing differs: what a kubelet follows of its Node is
 * synced when the Node is there, and not after a list without it.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { type AbortScope, abortScope } from '#base/abortScope'
import { aborted } from '#base/orAborted'
import { nodes, pods } from '#client/builtIn'
import type { Resource } from '#client/client'
import type { KubeletSources, SourceDeps } from '../core/kubeletSources.ts'
import { type Followed, type Handler, isolated, listWatch, mirror, type OnChange, type Selection } from '../core/listWatch.ts'

/** @param signal ends all watches */
export function createSharedSources(deps: SourceDeps, signal: AbortSignal): KubeletSources {
  const followPods = podsByNode(deps, signal)
  const followNode = nodesByName(deps, signal)
  const shared = new Map<string, SharedMirror>()
  return {
    pods: followPods,
    node: followNode,
    objects: <T extends KubeObject>(resource: Resource<T>, selection: Selection, until: AbortSignal, onChange: OnChange<T> = () => {}): Followed<T> => {
      const key = [resource.group, resource.resource, selection.namespace, selection.fieldSelector].join('\n')
      const known = shared.get(key) ?? startMirror(deps, resource as Resource<KubeObject>, selection, signal)
      shared.set(key, known)
      known.listeners.add(onChange as OnChange<KubeObject>)
      // As from a list, after this call.
      const there = known.mirror.list() as readonly Frozen<T>[]
      queueMicrotask(() => {
        if (!until.aborted) for (const object of there) isolated(deps.log, object, () => onChange(object))
      })
      const done = aborted(until).then(() => {
        known.listeners.delete(onChange as OnChange<KubeObject>)
        if (known.listeners.size > 0 || shared.get(key) !== known) return
        shared.delete(key)
        known.stop.abort()
      })
      const { get, list, synced } = known.mirror as Followed<T>
      return { get, list, synced, done }
    },
  }
}

interface SharedMirror {
  readonly mirror: Followed<KubeObject>
  readonly listeners: Set<OnChange<KubeObject>>
  readonly stop: AbortScope
}

function startMirror(deps: SourceDeps, resource: Resource<KubeObject>, selection: Selection, signal: AbortSignal): SharedMirror {
  const stop = abortScope(signal)
  const listeners = new Set<OnChange<KubeObject>>()
  const tell = (object: Frozen<KubeObject>) => {
    for (const listener of listeners) isolated(deps.log, object, () => listener(object))
  }
  return { mirror: mirror(deps.client.of(resource), selection, deps, stop.signal, tell), listeners, stop }
}

/** The pods of the cluster by node: every change goes to the kubelet of its node alone. */
function podsByNode(deps: SourceDeps, signal: AbortSignal): KubeletSources['pods'] {
  const byNode = new Map<string, Map<string, Frozen<Pod>>>()
  const handlers = new Map<string, Handler<Pod>>()
  let isListed = false
  const podsOf = (nodeName: string) => [...(byNode.get(nodeName)?.values() ?? [])]
  const put = (pod: Frozen<Pod>): string | undefined => {
    const { nodeName } = pod.spec
    if (!nodeName) return undefined
    const own = byNode.get(nodeName) ?? new Map<string, Frozen<Pod>>()
    byNode.set(nodeName, own.set(keyOf(pod), pod))
    return nodeName
  }
  const all: Handler<Pod> = {
    replace: (items) => {
      byNode.clear()
      for (const pod of items) put(pod)
      isListed = true
      for (const [nodeName, handler] of handlers) handler.replace(podsOf(nodeName))
    },
    changed: (pod) => {
      const nodeName = put(pod)
      if (nodeName) handlers.get(nodeName)?.changed(pod)
    },
    deleted: (pod) => {
      const { nodeName } = pod.spec
      if (!nodeName) return
      const own = byNode.get(nodeName)
      own?.delete(keyOf(pod))
      if (own?.size === 0) byNode.delete(nodeName)
      handlers.get(nodeName)?.deleted(pod)
    },
  }
  void listWatch(deps.client.of(pods), {}, all, deps, signal)
  return async (nodeName, handler, until) => {
    handlers.set(nodeName, handler)
    if (isListed) handler.replace(podsOf(nodeName))
    await aborted(until)
    if (handlers.get(nodeName) === handler) handlers.delete(nodeName)
  }
}

/** All nodes of the cluster: a kubelet sees its own. */
function nodesByName(deps: SourceDeps, signal: AbortSignal): KubeletSources['node'] {
  const listeners = new Map<string, OnChange<Node>>()
  const all = mirror(deps.client.of(nodes), {}, deps, signal, (node) => listeners.get(node.metadata.name ?? '')?.(node))
  return (nodeName, until, onChange) => {
    let markSynced = () => {}
    const synced = new Promise<void>((resolve) => {
      markSynced = resolve
    })
    const seen = (node: Frozen<Node>) => {
      onChange(node)
      markSynced()
    }
    listeners.set(nodeName, seen)
    const get = (key: string) => (key === nodeName ? all.get(key) : undefined)
    const known = get(nodeName)
    if (known) seen(known)
    const done = aborted(until).then(() => {
      if (listeners.get(nodeName) === seen) listeners.delete(nodeName)
    })
    return { get, list: () => [get(nodeName)].filter((node) => node !== undefined), synced, done }
  }
}
