/**
 * A Transport over a list of events in memory: for unit tests of the client library, which need to break watches, compact history and refuse
 * calls at will. It knows resourceVersions and nothing else of the API's rules; everything else is tested on the real API server (apiServer.ts).
 */
import type { Frozen, KubeObject, Unstructured } from '#api/machinery/meta'
import { expired, notFound, StatusError } from '#api/machinery/status'
import { deepCopy, deepFreeze } from '#base/frozen'
import type { ApiRequest, ApiResponse, Transport, WatchEvent } from '#client/transport'

interface Change {
  readonly path: string
  readonly resourceVersion: number
  readonly event: WatchEvent
}

export class HistoryTransport implements Transport {
  readonly requests: ApiRequest[] = []
  /** Called before each call; what it throws is the answer. */
  intercept: (request: ApiRequest) => void | Promise<void> = () => {}
  readonly #objects = new Map<string, Frozen<KubeObject>>()
  readonly #waiting = new Set<() => void>()
  #history: Change[] = []
  #resourceVersion = 1
  #compacted = 0
  /** Grows when all open watches are to end. */
  #epoch = 0
  #breakWith: Error | undefined

  get resourceVersion(): string {
    return String(this.#resourceVersion)
  }

  objects(): readonly Frozen<KubeObject>[] {
    return [...this.#objects.values()]
  }

  /** Creates or replaces the object at `path` (of the object, not the collection). */
  put(path: string, object: KubeObject): Frozen<KubeObject> {
    const there = this.#objects.has(path)
    const stored = deepFreeze({ ...deepCopy(object), metadata: { ...deepCopy(object.metadata), resourceVersion: String(++this.#resourceVersion) } })
    this.#objects.set(path, stored)
    this.#record(path, { type: there ? 'MODIFIED' : 'ADDED', object: stored })
    return stored
  }

  remove(path: string): void {
    const last = this.#objects.get(path)
    if (!last) return
    this.#objects.delete(path)
    const object = deepFreeze({ ...deepCopy<KubeObject>(last), metadata: { ...last.metadata, resourceVersion: String(++this.#resourceVersion) } })
    this.#record(path, { type: 'DELETED', object: object as Frozen<KubeObject> })
  }

  /** Forgets history up to now: watches from before get 410 Expired. */
  compact(): void {
    this.#compacted = this.#resourceVersion
    this.#history = []
  }

  /** Ends all open watches: cleanly, or with an error. */
  endWatches(error?: Error): void {
    this.#epoch++
    this.#breakWith = error
    this.#wake()
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requests.push(request)
    await this.intercept(request)
    return { status: 200, warnings: [], body: this.#answer(request) }
  }

  async *watch(request: ApiRequest, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    this.requests.push(request)
    await this.intercept(request)
    const epoch = this.#epoch
    let at = Number(request.query?.resourceVersion || this.#resourceVersion)
    if (request.query?.sendInitialEvents === 'true') {
      at = this.#resourceVersion
      const batch: WatchEvent[] = this.#under(request.path).map((object) => ({ type: 'ADDED', object }))
      yield [...batch, { type: 'BOOKMARK', object: bookmark(at, { 'k8s.io/initial-events-end': 'true' }) }]
    }
    for (;;) {
      if (at < this.#compacted) throw expired(`too old resource version: ${at} (${this.#compacted})`)
      const ready = this.#history.filter((change) => change.resourceVersion > at && isUnder(change.path, request.path)).map(({ event }) => event)
      at = this.#resourceVersion
      if (ready.length > 0) yield ready
      if (signal.aborted) throw signal.reason
      if (this.#epoch !== epoch) {
        if (this.#breakWith) throw this.#breakWith
        return
      }
      if (at === this.#resourceVersion) await this.#changed(signal)
    }
  }

  #answer(request: ApiRequest): unknown {
    const { method, path } = request
    const there = this.#objects.get(path)
    const { resource, name } = namesOf(path)
    if (method === 'POST') {
      const object = request.body as KubeObject
      const at = `${path}/${object.metadata.name}`
      if (this.#objects.has(at)) throw new StatusError('AlreadyExists', `${object.metadata.name} already exists`)
      return this.put(at, object)
    }
    if (method === 'GET' && !there && this.#isCollection(path)) {
      return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: this.resourceVersion }, items: this.#under(path) }
    }
    if (!there) throw notFound({ group: '', resource }, name)
    if (method === 'DELETE') this.remove(path)
    if (method === 'PATCH') return this.put(path, mergePatch(deepCopy<KubeObject>(there), request.body) as KubeObject)
    if (method === 'PUT') {
      const object = request.body as KubeObject
      const { resourceVersion } = object.metadata
      if (resourceVersion && resourceVersion !== there.metadata.resourceVersion) throw new StatusError('Conflict', 'the object has been modified')
      return this.put(path, object)
    }
    return there
  }

  #isCollection(path: string): boolean {
    const parts = path.split('/').filter((part) => part !== '')
    const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
    return rest.length === 1 || (rest[0] === 'namespaces' && rest.length === 3)
  }

  #under(path: string): Frozen<KubeObject>[] {
    return [...this.#objects].filter(([at]) => isUnder(at, path)).map(([, object]) => object)
  }

  #record(path: string, event: WatchEvent): void {
    this.#history.push({ path, resourceVersion: this.#resourceVersion, event })
    this.#wake()
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  #changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake, { once: true })
    })
  }
}

/** Whether an object is in a collection; one of all namespaces leaves them out of its path. */
function isUnder(path: string, collection: string): boolean {
  const parent = path.slice(0, path.lastIndexOf('/'))
  return parent === collection || parent.replace(/\/namespaces\/[^/]+(?=\/)/, '') === collection
}

function namesOf(path: string): { resource: string; name: string } {
  const parts = path.split('/')
  return { resource: parts.at(-2) ?? '', name: parts.at(-1) ?? '' }
}

function bookmark(resourceVersion: number, annotations: Record<string, string>): Frozen<KubeObject> {
  return { apiVersion: 'v1', kind: 'Bookmark', metadata: { resourceVersion: String(resourceVersion), annotations } }
}

function mergePatch(into: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const target = (typeof into === 'object' && into !== null && !Array.isArray(into) ? into : {}) as Record<string, unknown>
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete target[key]
    else target[key] = mergePatch(target[key], value)
  }
  return target
}

/** A small object of any kind. */
export function anObject(kind: string, ref: { namespace?: string; name: string }, fields: Record<string, unknown> = {}): Unstructured {
  return { apiVersion: 'v1', kind, metadata: { ...ref }, ...fields }
}
