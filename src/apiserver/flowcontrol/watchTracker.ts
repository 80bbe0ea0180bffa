/**
 * Counts open watches by resource, namespace and name (L3): a write costs more if many watches get its event.
 * Upstream: apiserver/pkg/util/flowcontrol/watch_tracker.go.
 */
import { bareMap } from '#base/bareMap'
import { fieldTerms } from '../core/fieldTerms.ts'
import type { RequestInfo } from '../core/request.ts'

type Watched = Pick<RequestInfo, 'apiGroup' | 'resource' | 'namespace' | 'name' | 'fieldSelector'>

interface Counts {
  /** Watches of the whole resource. */
  all: number
  /** Watches by namespace; by `namespace/name` for single objects. */
  readonly narrower: Map<string, number>
}

/** Fields by which caches index watches: a write reaches only the watches of its value. */
const indexedFields: Readonly<Record<string, string>> = bareMap({ pods: 'spec.nodeName' })

export class WatchTracker {
  readonly #byResource = new Map<string, Counts>()

  /** Returns a function that removes it. */
  register(watched: Watched): () => void {
    if (!isCounted(watched)) return () => {}
    this.#add(watched, 1)
    return () => this.#add(watched, -1)
  }

  /** How many watches may be interested in a write. */
  interested({ apiGroup, resource, namespace, name }: RequestInfo): number {
    const counts = this.#byResource.get(`${apiGroup}/${resource}`)
    if (!counts) return 0
    if (counts.narrower.size === 0) return counts.all
    const inNamespace = namespace === '' ? 0 : (counts.narrower.get(namespace) ?? 0)
    return counts.all + inNamespace + (name === '' ? 0 : (counts.narrower.get(`${namespace}/${name}`) ?? 0))
  }

  #add({ apiGroup, resource, namespace, name }: Watched, by: number): void {
    const key = `${apiGroup}/${resource}`
    const counts = this.#byResource.get(key) ?? { all: 0, narrower: new Map<string, number>() }
    this.#byResource.set(key, counts)
    const place = name === '' ? namespace : `${namespace}/${name}`
    if (place === '') counts.all += by
    else {
      const left = (counts.narrower.get(place) ?? 0) + by
      if (left > 0) counts.narrower.set(place, left)
      else counts.narrower.delete(place)
    }
    if (counts.all === 0 && counts.narrower.size === 0) this.#byResource.delete(key)
  }
}

/** Most watches on one value of an indexed field do not get a write's event: as upstream, they are not counted. */
function isCounted({ resource, fieldSelector }: Watched): boolean {
  const field = indexedFields[resource]
  if (!field) return true
  const term = fieldTerms(fieldSelector)?.find((one) => one.field === field && one.operator === '=')
  return !term || term.value === ''
}
