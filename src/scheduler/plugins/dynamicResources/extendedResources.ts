/**
 * Extended resources backed by device classes (L3): the class of each resource, and the device requests of a pod's containers.
 * The claim that carries these requests is extendedClaim.ts's matter. Upstream: dynamic-resource-allocation deviceclass/extendedresourcecache,
 * plugins/dynamicresources extendeddynamicresources.go createRequestsAndMappings (v1.36).
 */
import type { Container, ContainerExtendedResourceRequest, Pod } from '#api/gen/types/core.v1'
import type { DeviceClass, DeviceRequest } from '#api/gen/types/resource.v1'
import { resourceAmount } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { deviceClasses } from '#client/builtIn'
import type { ReadableStore } from '#client/cache/indexer'
import type { Handle } from '../../framework/handle.ts'

/** Every class gives a resource of this name, whatever else it gives. */
const implicitPrefix = 'deviceclass.resource.kubernetes.io/'

/** `vendor/name`, outside kubernetes.io. Upstream: pkg/apis/core/v1/helper IsExtendedResourceName. */
export function isExtendedResource(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.')
}

/** Finds the class of a resource. The index is built again at the first lookup after a class has changed. */
export class ExtendedResourceClasses {
  readonly #classes: ReadableStore<DeviceClass>
  #byResource: Map<string, Frozen<DeviceClass>> | undefined

  constructor(handle: Pick<Handle, 'watch'>) {
    const changed = () => {
      this.#byResource = undefined
    }
    this.#classes = handle.watch<DeviceClass>(deviceClasses, { onAdd: changed, onUpdate: changed, onDelete: changed })
  }

  /** @returns the name of the class that gives the resource */
  classOf(resource: string): string | undefined {
    if (!isExtendedResource(resource) && !resource.startsWith(implicitPrefix)) return undefined
    this.#byResource ??= indexOf(this.#classes.values())
    return this.#byResource.get(resource)?.metadata.name
  }

  /** The resources that some class provides. */
  givenBy(resources: readonly string[]): string[] {
    return resources.filter((name) => this.classOf(name) !== undefined)
  }
}

/** If two classes provide one resource the newer one counts, so that a class can replace another; if both are as old, the first by name. */
function indexOf(classes: Iterable<Frozen<DeviceClass>>): Map<string, Frozen<DeviceClass>> {
  const found = new Map<string, Frozen<DeviceClass>>()
  for (const one of classes) {
    found.set(`${implicitPrefix}${one.metadata.name}`, one)
    const name = one.spec.extendedResourceName
    const other = name === undefined ? undefined : found.get(name)
    if (name !== undefined && (!other || isPreferred(one, other))) found.set(name, one)
  }
  return found
}

function isPreferred({ metadata: one }: Frozen<DeviceClass>, { metadata: other }: Frozen<DeviceClass>): boolean {
  const [created = '', before = ''] = [one.creationTimestamp, other.creationTimestamp]
  return created === before ? (one.name ?? '') < (other.name ?? '') : created > before
}

export interface ExtendedRequests {
  readonly requests: readonly DeviceRequest[]
  /** Which container uses the devices of which request for which resource. */
  readonly mappings: readonly ContainerExtendedResourceRequest[]
}

/**
 * One request for each container that stays and each resource; init containers use the devices of those that come after them, and share one request for
 * what is more than that. `resources`: those that a class has to give.
 */
export function extendedRequests({ spec }: Frozen<Pod>, resources: readonly string[], classOf: (resource: string) => string | undefined): ExtendedRequests {
  const inits = spec.initContainers ?? []
  const containers = [...inits, ...spec.containers]
  const isPassing = (index: number) => index < inits.length && containers[index]?.restartPolicy !== 'Always'
  const requests: DeviceRequest[] = []
  const mappings: ContainerExtendedResourceRequest[] = []
  for (const resource of [...resources].sort()) {
    const deviceClass = classOf(resource)
    if (deviceClass === undefined) continue
    const found = requestsOf(containers, isPassing, resource, deviceClass)
    requests.push(...found.requests)
    mappings.push(...found.mappings)
  }
  return { requests: requests.sort((a, b) => (a.name < b.name ? -1 : 1)), mappings }
}

function requestsOf(containers: readonly Frozen<Container>[], isPassing: (index: number) => boolean, resource: string, deviceClass: string): ExtendedRequests {
  const lasting = new Map<number, DeviceRequest>()
  const mappings: ContainerExtendedResourceRequest[] = []
  const map = ({ name: containerName }: Frozen<Container>, requestName: string) => mappings.push({ containerName, resourceName: resource, requestName })
  for (const [index, container] of containers.entries()) {
    const amount = amountOf(container, resource)
    if (isPassing(index) || amount === 0) continue
    const request = requestOf(requestName(index, container, resource), deviceClass, amount)
    lasting.set(index, request)
    map(container, request.name)
  }
  const needs = [...containers.entries()].flatMap(([index, container]) => {
    const amount = amountOf(container, resource)
    if (!isPassing(index) || amount === 0) return []
    let given = 0
    for (const [at, { name, exactly }] of lasting) {
      if (at < index || given >= amount) continue
      given += exactly?.count ?? 0
      map(container, name)
    }
    return amount > given ? [{ container, amount: amount - given, name: requestName(index, container, resource) }] : []
  })
  const most = needs.reduce<(typeof needs)[number] | undefined>((best, one) => (best && best.amount >= one.amount ? best : one), undefined)
  // Init containers run one after another, so the largest request covers each of them.
  for (const { container } of needs) map(container, most?.name ?? '')
  return { requests: [...(most ? [requestOf(most.name, deviceClass, most.amount)] : []), ...lasting.values()], mappings }
}

function requestOf(name: string, deviceClassName: string, count: number): DeviceRequest {
  return { name, exactly: { deviceClassName, allocationMode: 'ExactCount', count } }
}

function amountOf({ resources }: Frozen<Container>, resource: string): number {
  const quantity = resources?.requests?.[resource]
  return quantity === undefined ? 0 : resourceAmount(resource, quantity)
}

/** The container's place among all, and the resource's among the container's. */
function requestName(index: number, { resources }: Frozen<Container>, resource: string): string {
  const place = Object.keys(resources?.requests ?? {})
    .sort()
    .indexOf(resource)
  return `container-${index}-request-${place}`
}
