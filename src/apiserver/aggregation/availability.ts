/**
 * Decides whether an APIService is available (L3): its Service and endpoints are there, and one of them answers discovery.
 * Upstream: kube-aggregator/pkg/controllers/status/{local,remote}.
 */
import type { APIService, APIServiceCondition } from '#api/gen/types/apiregistration.v1'
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ObjectReader } from '../core/objectReader.ts'
import { portOf, readyPlaces, services, slicesOf } from './serviceResolver.ts'

export type Availability = Pick<APIServiceCondition, 'status' | 'reason' | 'message'> & { readonly message: string; readonly reason: string }

export const localAvailability: Availability = { status: 'True', reason: 'Local', message: 'Local APIServices are always available' }
export const passed: Availability = { status: 'True', reason: 'Passed', message: 'all checks passed' }

export function failedDiscoveryCheck(message: string): Availability {
  return unavailable('FailedDiscoveryCheck', message)
}

/** The reason why the Service or its endpoints make it unavailable; undefined when the server must be probed. */
export function objectsAgainst(reader: ObjectReader, apiService: Frozen<APIService>): Availability | undefined {
  const reference = apiService.spec.service
  if (!reference) return undefined
  const { namespace = '', name = '' } = reference
  const place = `service/${name} in ${JSON.stringify(namespace)}`
  const service = reader.get<KubeObject>(services, namespace, name) as Frozen<Service> | undefined
  if (!service) return unavailable('ServiceNotFound', `${place} is not present`)
  if ((service.spec?.type ?? 'ClusterIP') !== 'ClusterIP') return undefined
  const port = service.spec?.ports?.find((one) => one.port === portOf(reference))
  if (!port) return unavailable('ServicePortError', `${place} is not listening on port ${portOf(reference)}`)
  const slices = slicesOf(reader, namespace, name)
  if (slices.length === 0) return unavailable('EndpointsNotFound', `cannot find endpointslices for ${place}`)
  const portName = port.name ?? ''
  if (slices.some((slice) => readyPlaces(slice, portName).length > 0)) return undefined
  return unavailable('MissingEndpoints', `endpointslices for ${place} have no addresses with port name ${JSON.stringify(portName)}`)
}

function unavailable(reason: string, message: string): Availability {
  return { status: 'False', reason, message }
}

/**
 * The conditions with this availability; undefined when nothing changes.
 * lastTransitionTime changes only with the status.
 */
export function withAvailability(
  conditions: readonly Readonly<APIServiceCondition>[] | undefined,
  wanted: Availability,
  now: string,
): APIServiceCondition[] | undefined {
  const found = conditions?.find(({ type }) => type === 'Available')
  if (found && found.status === wanted.status && found.reason === wanted.reason && found.message === wanted.message) return undefined
  const lastTransitionTime = found && found.status === wanted.status ? found.lastTransitionTime : now
  const others = (conditions ?? []).filter(({ type }) => type !== 'Available')
  return [...others, { type: 'Available', lastTransitionTime, ...wanted }]
}
