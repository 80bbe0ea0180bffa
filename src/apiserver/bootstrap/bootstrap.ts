/**
 * Makes a fresh store a cluster (L3), and keeps the `kubernetes` service pointing at this server. Everything is created only where it is
 * missing; what the reconciler owns is put right when it differs.
 * Upstream: pkg/controlplane/controller/kubernetesservice, systemnamespaces, defaultservicecidr.
 */
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { ApiRequest, Transport } from '#client/transport'
import { deepEqual } from '../registry/sameObject.ts'
import { defaultServiceCidrName, serviceRanges } from '../registry/services/ipAllocator.ts'
import { type Advertised, kubernetesEndpointSlice, kubernetesEndpoints, kubernetesService, systemNamespaces, systemPriorityClasses } from './objects.ts'

export interface BootstrapConfig {
  readonly serviceCidr: string
  /** Absent: no `kubernetes` service. */
  readonly advertised?: Advertised | undefined
}

/** Creates what is missing. Safe to run again at any time. */
export async function bootstrap(transport: Transport, config: BootstrapConfig, signal: AbortSignal): Promise<void> {
  const ensure = (path: string, body: object) => createIfMissing(transport, { method: 'POST', path, body }, signal)
  // Together, so that they share flushes of the disk.
  await Promise.all([
    ...systemNamespaces.map((name) => ensure('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    ...systemPriorityClasses.map((one) =>
      ensure('/apis/scheduling.k8s.io/v1/priorityclasses', { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', ...one }),
    ),
    ensure('/apis/networking.k8s.io/v1/servicecidrs', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'ServiceCIDR',
      metadata: { name: defaultServiceCidrName },
      spec: { cidrs: serviceRanges(config.serviceCidr).map(({ cidr }) => cidr) },
    }),
  ])
  if (config.advertised) await kubernetesServiceReconciled(transport, config.advertised, config.serviceCidr, signal)
}

async function kubernetesServiceReconciled(transport: Transport, advertised: Advertised, cidr: string, signal: AbortSignal): Promise<void> {
  const service = kubernetesService(serviceRanges(cidr)[0]?.first ?? '', advertised)
  await createIfMissing(transport, { method: 'POST', path: '/api/v1/namespaces/default/services', body: service }, signal)
  await reconcile(transport, '/api/v1/namespaces/default/endpoints', kubernetesEndpoints(advertised), ['subsets'], signal)
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  await reconcile(transport, slices, kubernetesEndpointSlice(advertised), ['endpoints', 'ports'], signal)
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

/** Puts the named fields right. */
export async function reconcile(transport: Transport, path: string, wanted: object, fields: readonly string[], signal: AbortSignal): Promise<void> {
  const object = wanted as KubeObject & Record<string, unknown>
  if (await createIfMissing(transport, { method: 'POST', path, body: wanted }, signal)) return
  const at = `${path}/${object.metadata.name}`
  const found = (await exists(transport, at, signal)) as (KubeObject & Record<string, unknown>) | undefined
  if (!found || fields.every((field) => deepEqual(found[field], object[field]))) return
  const body = Object.fromEntries(fields.map((field) => [field, object[field]]))
  await transport.request({ method: 'PATCH', path: at, contentType: 'application/merge-patch+json', body }, signal)
}
