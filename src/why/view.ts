/** What an explanation sees of the cluster (L2): objects by resource and name. It keeps what the reader may not see, so that the answer says it. */
import type { Event, Pod } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { timeOfEvent } from '#api/helpers/events'
import { isControlledBy } from '#api/helpers/owners'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ObjectReader, Query, Seen } from './reader.ts'

/** Where each resource is served that explanations read. */
const roots = {
  apiservices: '/apis/apiregistration.k8s.io/v1',
  csidrivers: '/apis/storage.k8s.io/v1',
  customresourcedefinitions: '/apis/apiextensions.k8s.io/v1',
  endpointslices: '/apis/discovery.k8s.io/v1',
  events: '/api/v1',
  gatewayclasses: '/apis/gateway.networking.k8s.io/v1',
  gateways: '/apis/gateway.networking.k8s.io/v1',
  ingressclasses: '/apis/networking.k8s.io/v1',
  jobs: '/apis/batch/v1',
  mutatingwebhookconfigurations: '/apis/admissionregistration.k8s.io/v1',
  nodes: '/api/v1',
  persistentvolumeclaims: '/api/v1',
  persistentvolumes: '/api/v1',
  pods: '/api/v1',
  replicasets: '/apis/apps/v1',
  secrets: '/api/v1',
  services: '/api/v1',
  storageclasses: '/apis/storage.k8s.io/v1',
  validatingwebhookconfigurations: '/apis/admissionregistration.k8s.io/v1',
} as const

export type Resource = keyof typeof roots

/** Objects of one kind that are listed at most. */
const mostListed = 500

export class View {
  readonly #reader: ObjectReader
  readonly #notRead = new Set<string>()
  readonly #answers = new Map<string, Promise<Seen<unknown>>>()

  constructor(reader: ObjectReader) {
    this.#reader = reader
  }

  get notRead(): readonly string[] {
    return [...this.#notRead]
  }

  /** `isAbsent`: there is none; false when the reader may not know. */
  async get<T>(
    resource: Resource,
    namespace: string | undefined,
    name: string,
  ): Promise<{ readonly object?: Frozen<T> | undefined; readonly isAbsent: boolean }> {
    const path = `${pathOf(resource, namespace)}/${encodeURIComponent(name)}`
    const { found, notShown } = await this.#once<T>(path, () => this.#reader.get<T>(path))
    return { object: found, isAbsent: found === undefined && notShown === undefined }
  }

  /** The first ones; undefined when the reader may not list them. */
  async list<T>(resource: Resource, namespace: string | undefined, query: Query = {}): Promise<readonly Frozen<T>[] | undefined> {
    const path = pathOf(resource, namespace)
    const whole = { ...query, limit: String(mostListed) }
    const { found, notShown } = await this.#once<readonly T[]>(`${path}?${JSON.stringify(whole)}`, () => this.#reader.list<T>(path, whole))
    if (found?.length === mostListed) this.#notRead.add(`more than ${mostListed} ${resource}`)
    return found ?? (notShown === undefined ? [] : undefined)
  }

  async #once<T>(key: string, ask: () => Promise<Seen<T>>): Promise<Seen<T>> {
    const known = this.#answers.get(key) ?? ask()
    this.#answers.set(key, known)
    const seen = (await known) as Seen<T>
    if (seen.notShown !== undefined) this.#notRead.add(seen.notShown)
    return seen
  }

  /** The newest first. */
  async eventsOf({ kind, metadata: { namespace, name = '', uid = '' } }: Frozen<KubeObject>): Promise<readonly Frozen<Event>[]> {
    // Events of a Node have its name as uid.
    const selector =
      namespace === undefined ? `involvedObject.kind=${kind},involvedObject.name=${name.replace(/[\\,=]/g, '\\$&')}` : `involvedObject.uid=${uid}`
    const found = (await this.list<Event>('events', namespace ?? 'default', { fieldSelector: selector })) ?? []
    return [...found].sort((one, other) => timeOfEvent(other).localeCompare(timeOfEvent(one)))
  }

  /** The newest warning for one of these reasons; without reasons, the newest warning. */
  async warningOf(object: Frozen<KubeObject>, ...reasons: readonly string[]): Promise<Frozen<Event> | undefined> {
    return (await this.eventsOf(object)).find(({ type, reason = '' }) => type === 'Warning' && (reasons.length === 0 || reasons.includes(reason)))
  }

  /** The pods that a selector of an object selects and the object controls. */
  async podsOf(owner: Frozen<KubeObject>, selector: Frozen<LabelSelector> | undefined): Promise<readonly Frozen<Pod>[] | undefined> {
    const pods = await this.list<Pod>('pods', owner.metadata.namespace, { labelSelector: selectorOf(selector).toString() })
    return pods?.filter((pod) => isControlledBy(pod, owner))
  }
}

function pathOf(resource: Resource, namespace: string | undefined): string {
  return `${roots[resource]}${namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`}/${resource}`
}

/** `event Reason: message`. */
export function eventText({ reason = '', message = '' }: Frozen<Event>): string {
  return `event ${reason}: ${message}`
}
