/**
 * As much of the API as one kubelet needs (tests only): objects in a map, watches, merge-like patches, deletion with grace periods.
 * It checks nothing and defaults nothing: what the API server does is tested on the API server.
 */
import type { Frozen, KubeObject, Unstructured } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import { deepCopy, deepFreeze } from '#base/frozen'
import { formatTime } from '#base/time'
import type { ApiRequest, ApiResponse, Transport, WatchEvent, WatchEventType } from '#client/transport'

interface Change {
  readonly collection: string
  readonly event: WatchEvent
}

const namespacedPath = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/

interface Target {
  readonly group: string
  readonly namespace: string
  readonly resource: string
  readonly name: string
  readonly subresource: string
}

function parse(path: string): Target {
  const [, group = '', namespace = '', resource = '', name = '', subresource = ''] = namespacedPath.exec(path) ?? []
  return { group, namespace, resource, name, subresource }
}

export class KubeletApi implements Transport {
  readonly requests: ApiRequest[] = []
  /** Called before each call; what it throws is the answer. */
  intercept: (request: ApiRequest) => void = () => {}
  readonly #objects = new Map<string, Frozen<KubeObject>>()
  readonly #watchers = new Set<(change: Change) => void>()
  readonly #nowMs: () => number
  #version = 1

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get<T>(resource: string, namespace: string, name: string): Frozen<T> | undefined {
    return this.#objects.get(`${resource}/${namespace}/${name}`) as Frozen<T> | undefined
  }

  list<T>(resource: string): Frozen<T>[] {
    return [...this.#objects].filter(([key]) => key.startsWith(`${resource}/`)).map(([, object]) => object as unknown as Frozen<T>)
  }

  put(resource: string, object: Unstructured | KubeObject): Frozen<KubeObject> {
    const metadata = { uid: `uid-${object.metadata.name}`, creationTimestamp: formatTime(this.#nowMs()), ...object.metadata }
    const key = `${resource}/${metadata.namespace ?? ''}/${metadata.name}`
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED'
    const stored = deepFreeze(deepCopy<KubeObject>({ ...object, metadata: { ...metadata, resourceVersion: String(++this.#version) } }))
    this.#objects.set(key, stored)
    this.#announce(resource, type, stored)
    return stored
  }

  /** What `kubectl delete pod` does: the kubelet is asked to end it. */
  deletePod(namespace: string, name: string, graceSeconds: number): void {
    const pod = deepCopy<KubeObject>(this.#objects.get(`pods/${namespace}/${name}`) as Frozen<KubeObject>)
    pod.metadata.deletionTimestamp = formatTime(this.#nowMs() + graceSeconds * 1000)
    pod.metadata.deletionGracePeriodSeconds = graceSeconds
    this.put('pods', pod)
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requests.push(request)
    this.intercept(request)
    const target = parse(request.path)
    const key = `${target.resource}/${target.namespace}/${target.name}`
    const known = this.#objects.get(key)
    const answer = (body: unknown): ApiResponse => ({ status: 200, body, warnings: [] })
    if (request.method === 'GET' && target.name === '') {
      const items = [...this.#objects]
        .filter(([, object]) => this.#selected(target, request, object))
        .filter(([name]) => name.startsWith(`${target.resource}/`))
      return answer({ kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: String(this.#version) }, items: items.map(([, object]) => object) })
    }
    if (request.method === 'POST' && target.subresource === 'token') {
      return answer({ ...(request.body as object), status: { token: 'a-token', expirationTimestamp: formatTime(this.#nowMs() + 3_600_000) } })
    }
    if (request.method === 'POST') {
      const object = request.body as Unstructured
      const taken = this.#objects.has(`${target.resource}/${target.namespace}/${object.metadata.name}`)
      if (taken) throw new StatusError('AlreadyExists', `${target.resource} "${object.metadata.name}" already exists`)
      return answer(this.put(target.resource, object))
    }
    if (!known) throw notFound({ group: '', resource: target.resource }, target.name)
    if (request.method === 'GET') return answer(known)
    if (request.method === 'PUT') return answer(this.put(target.resource, request.body as Unstructured))
    if (request.method === 'PATCH') return answer(this.put(target.resource, merge(deepCopy(known), request.body) as unknown as KubeObject))
    this.#objects.delete(key)
    this.#version++
    this.#announce(target.resource, 'DELETED', known)
    return answer(known)
  }

  async *watch(request: ApiRequest, signal: AbortSignal): AsyncGenerator<readonly WatchEvent[]> {
    const target = parse(request.path)
    const queue: WatchEvent[] = []
    const since = Number(request.query?.resourceVersion ?? 0)
    for (const [key, object] of this.#objects) {
      const missed = Number(object.metadata.resourceVersion) > since && key.startsWith(`${target.resource}/`)
      if (missed && this.#selected(target, request, object)) queue.push({ type: 'MODIFIED', object })
    }
    let wake = () => {}
    const listener = ({ collection, event }: Change) => {
      if (collection !== target.resource || !this.#selected(target, request, event.object)) return
      queue.push(event)
      wake()
    }
    this.#watchers.add(listener)
    const onAbort = () => wake()
    signal.addEventListener('abort', onAbort)
    try {
      while (!signal.aborted) {
        if (queue.length > 0) yield queue.splice(0)
        else
          await new Promise<void>((resolve) => {
            wake = resolve
            if (queue.length > 0 || signal.aborted) resolve()
          })
      }
    } finally {
      this.#watchers.delete(listener)
      signal.removeEventListener('abort', onAbort)
    }
  }

  #selected(target: Target, request: ApiRequest, object: Frozen<KubeObject>): boolean {
    if (target.namespace && object.metadata.namespace !== target.namespace) return false
    const [field = '', value] = String(request.query?.fieldSelector ?? '').split('=')
    if (field === 'metadata.name') return object.metadata.name === value
    if (field === 'spec.nodeName') return (object as unknown as { spec?: { nodeName?: string } }).spec?.nodeName === value
    return true
  }

  #announce(collection: string, type: WatchEventType, object: Frozen<KubeObject>): void {
    for (const watcher of this.#watchers) watcher({ collection, event: { type, object } })
  }
}

const mergeKeys: Readonly<Record<string, string>> = { conditions: 'type', podIPs: 'ip', hostIPs: 'ip', addresses: 'type' }

/** Enough of a strategic merge for status patches. */
function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = { ...(target as Record<string, unknown>) }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue
    if (value === null) delete result[key]
    else if (Array.isArray(value)) result[key] = mergeList(mergeKeys[key], (result[key] ?? []) as Item[], value as Item[])
    else result[key] = merge(result[key], value)
  }
  return result
}

type Item = Record<string, unknown>

function mergeList(mergeKey: string | undefined, before: Item[], patch: Item[]): Item[] {
  if (!mergeKey || patch.some((item) => item.$patch === 'replace')) return patch.filter((item) => item.$patch !== 'replace')
  const byKey = new Map(before.map((item) => [item[mergeKey], item]))
  for (const item of patch) {
    if (item.$patch === 'delete') byKey.delete(item[mergeKey])
    else byKey.set(item[mergeKey], merge(byKey.get(item[mergeKey]) ?? {}, item) as Item)
  }
  return [...byKey.values()]
}
