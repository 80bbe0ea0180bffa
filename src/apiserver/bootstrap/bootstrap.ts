/**
 * Creates the objects that every cluster has (L3), recreates them when they are deleted, and has the endpoints of the `kubernetes` service kept.
 * Existing objects are not changed, except the fields that the reconciler owns.
 * Upstream: pkg/controlplane/controller/kubernetesservice, systemnamespaces, defaultservicecidr (v1.36).
 */
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { ApiRequest, Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import { deepEqual } from '../core/sameObject.ts'
import { defaultServiceCidrName, serviceRanges } from '../kinds/services/ipAllocator.ts'
import type { EndpointReconciler } from './endpointReconciler.ts'
import { ensureFlowControl, type FoundRight } from './flowControl.ts'
import { type Advertised, kubernetesService, systemNamespaces, systemPriorityClasses } from './objects.ts'

/** Upstream's interval for the `kubernetes` service and the default ServiceCIDR. */
const keepIntervalMs = 10_000
/** Namespaces and flow control are checked once a minute. */
const looksPerRound = 6

export interface BootstrapConfig {
  readonly serviceCidr: string
  /** Undefined: no `kubernetes` service. */
  advertised(): Advertised | undefined
}

export interface BootstrapDeps {
  readonly endpoints: EndpointReconciler
  readonly reader: ObjectReader
  readonly transport: Transport
  readonly clock: Clock
  readonly log: Logger
}

type ResourceName = { readonly group: string; readonly resource: string }
const serviceResources: readonly ResourceName[] = [
  { group: '', resource: 'services' },
  { group: 'networking.k8s.io', resource: 'servicecidrs' },
]
const otherResources: readonly ResourceName[] = [
  { group: '', resource: 'namespaces' },
  { group: 'scheduling.k8s.io', resource: 'priorityclasses' },
  { group: 'flowcontrol.apiserver.k8s.io', resource: 'flowschemas' },
  { group: 'flowcontrol.apiserver.k8s.io', resource: 'prioritylevelconfigurations' },
]

/** Restores bootstrap objects that are changed or deleted while the server runs, until the signal aborts. Skips a round if nothing has changed. */
export async function keepBootstrapped(deps: BootstrapDeps, config: BootstrapConfig, signal: AbortSignal): Promise<void> {
  const right: FoundRight = new WeakSet()
  const services = followChanges(deps.reader, serviceResources)
  const others = followChanges(deps.reader, otherResources)
  let advertised = ''
  for (let look = 1; !signal.aborted; look++) {
    await deps.clock.sleep(keepIntervalMs, signal).catch(() => undefined)
    if (signal.aborted) break
    const { address = '', port } = config.advertised() ?? {}
    const moved = advertised !== `${address} ${port}`
    advertised = `${address} ${port}`
    await deps.endpoints.reconcile(signal).catch((error) => {
      if (!signal.aborted) deps.log.error(error, 'Publishing this API server failed; trying again later')
    })
    const isAtServices = services.take() || moved
    const isAtOthers = look % looksPerRound === 0 && others.take()
    if (!isAtServices && !isAtOthers) continue
    const looking = isAtOthers ? bootstrap(deps, config, signal, right) : keepServices(deps, config, signal)
    await looking.catch((error) => {
      if (signal.aborted) return
      services.again()
      if (isAtOthers) others.again()
      deps.log.error(error, 'Restoring the objects of every cluster failed; trying again later')
    })
  }
  services.stop()
  others.stop()
}

interface Changes {
  /** Whether there were changes since the last call; true on the first. */
  take(): boolean
  /** The changes were not processed: the next `take` returns true. */
  again(): void
  stop(): void
}

function followChanges(reader: ObjectReader, resources: readonly ResourceName[]): Changes {
  let any = true
  const stops = resources.map((resource) =>
    reader.onChange(resource, () => {
      any = true
    }),
  )
  return {
    take() {
      const was = any
      any = false
      return was
    },
    again: () => {
      any = true
    },
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}

/** Creates objects that the cache does not have, after reading them from the store. Safe to run again at any time. */
export async function bootstrap(deps: BootstrapDeps, config: BootstrapConfig, signal: AbortSignal, right: FoundRight = new WeakSet()): Promise<void> {
  // Together, so that they share flushes of the disk.
  await Promise.all([
    ...systemNamespaces.map((name) => ensure(deps, '', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, signal)),
    ...systemPriorityClasses.map((one) => {
      const body = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', ...one }
      return ensure(deps, 'scheduling.k8s.io', '/apis/scheduling.k8s.io/v1/priorityclasses', body, signal)
    }),
    ensureServiceCidr(deps, config, signal),
    ensureFlowControl(deps.reader, deps.transport, right, signal),
  ])
  await keepService(deps, config, signal)
}

type Wanted = Pick<KubeObject, 'metadata'> & Record<string, unknown>

async function ensure({ reader, transport }: BootstrapDeps, group: string, path: string, body: Wanted, signal: AbortSignal): Promise<void> {
  const resource = path.slice(path.lastIndexOf('/') + 1)
  if (!reader.get({ group, resource }, '', body.metadata.name ?? '')) await createIfMissing(transport, { method: 'POST', path, body }, signal)
}

async function ensureServiceCidr(deps: BootstrapDeps, config: BootstrapConfig, signal: AbortSignal): Promise<void> {
  const body = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: defaultServiceCidrName },
    spec: { cidrs: serviceRanges(config.serviceCidr).map(({ cidr }) => cidr) },
  }
  await ensure(deps, 'networking.k8s.io', '/apis/networking.k8s.io/v1/servicecidrs', body, signal)
}

async function keepServices(deps: BootstrapDeps, config: BootstrapConfig, signal: AbortSignal): Promise<void> {
  await ensureServiceCidr(deps, config, signal)
  await keepService(deps, config, signal)
}

async function keepService({ reader, transport }: BootstrapDeps, config: BootstrapConfig, signal: AbortSignal): Promise<void> {
  const advertised = config.advertised()
  if (!advertised || reader.get<KubeObject>({ group: '', resource: 'services' }, 'default', 'kubernetes')) return
  const service = kubernetesService(serviceRanges(config.serviceCidr)[0]?.first ?? '', advertised)
  await createIfMissing(transport, { method: 'POST', path: '/api/v1/namespaces/default/services', body: service }, signal)
}

async function createIfMissing(transport: Transport, request: ApiRequest, signal: AbortSignal): Promise<boolean> {
  const { metadata } = request.body as KubeObject
  if (await exists(transport, `${request.path}/${metadata.name}`, signal)) return false
  try {
    await transport.request(request, signal)
    return true
  } catch (error) {
    // Another server was faster.
    if (isStatus(error, 'AlreadyExists')) return false
    throw error
  }
}

async function exists(transport: Transport, path: string, signal: AbortSignal): Promise<KubeObject | undefined> {
  try {
    return (await transport.request({ method: 'GET', path }, signal)).body as KubeObject
  } catch (error) {
    if (isStatus(error, 'NotFound')) return undefined
    throw error
  }
}

/** Restores the named fields. */
export async function reconcile(transport: Transport, path: string, wanted: object, fields: readonly string[], signal: AbortSignal): Promise<void> {
  const object = wanted as KubeObject & Record<string, unknown>
  if (await createIfMissing(transport, { method: 'POST', path, body: wanted }, signal)) return
  const at = `${path}/${object.metadata.name}`
  const found = (await exists(transport, at, signal)) as (KubeObject & Record<string, unknown>) | undefined
  if (!found || fields.every((field) => deepEqual(found[field], object[field]))) return
  const body = Object.fromEntries(fields.map((field) => [field, object[field]]))
  await transport.request({ method: 'PATCH', path: at, contentType: 'application/merge-patch+json', body }, signal)
}
