/** Finds the Services that the rules of a route send requests to (L3, pure). Upstream: apis/v1/object_reference_types.go (v1.6.3). */
import type { Frozen } from '#api/machinery/meta'
import type { BackendRef } from '../route.ts'
import { backendTlsOf } from './backendTls.ts'
import { type Changes, changesOf } from './filters.ts'
import type { HttpBackendRef, ObjectReference } from './kinds.ts'
import { fails, type Outcome } from './outcome.ts'
import { type ClusterView, isGranted } from './view.ts'

export interface WeightedBackend {
  readonly weight: number
  /** Undefined: its share of the requests gets 500. */
  readonly backend: BackendRef | undefined
  readonly changes: Changes
}

/** @param problems gets why backends cannot be used */
export function backendsOf(
  refs: readonly Frozen<HttpBackendRef>[],
  from: { readonly kind: string; readonly namespace: string },
  view: ClusterView,
  problems: Outcome[],
): WeightedBackend[] {
  return refs.map((ref) => {
    const backend = backendOf(ref, from, view, problems)
    const changes = changesOf(ref.filters ?? [], (mirror) => backendOf(mirror, from, view, problems))
    const weight = ref.weight ?? 1
    if (typeof changes !== 'string') return { weight, backend, changes }
    problems.push(fails('ResolvedRefs', 'UnsupportedValue', `${changes} of a backend is not supported`))
    return { weight, backend: undefined, changes: {} }
  })
}

/** Undefined: it cannot be used, and `problems` gets the reason. */
export function backendOf(
  ref: Frozen<ObjectReference>,
  from: { readonly kind: string; readonly namespace: string },
  view: ClusterView,
  problems: Outcome[],
): BackendRef | undefined {
  const problem = problemOf(ref, from, view)
  if (problem) {
    problems.push(problem)
    return undefined
  }
  const service = serviceOf(ref, from.namespace)
  const { appProtocol, name = '' } = view.service(service)?.spec.ports?.find(({ port }) => port === ref.port) ?? {}
  const isHttp2 = from.kind === 'GRPCRoute' || appProtocol === 'kubernetes.io/h2c'
  const tls = backendTlsOf(service, name, view)
  return { service, port: ref.port ?? 0, ...(isHttp2 ? { protocol: 'h2' } : {}), ...(tls ? { tls } : {}) }
}

/** `namespace/name` of the Service. */
export function serviceOf({ namespace, name }: Frozen<ObjectReference>, ownNamespace: string): string {
  return `${namespace ?? ownNamespace}/${name}`
}

function problemOf(ref: Frozen<ObjectReference>, from: { readonly kind: string; readonly namespace: string }, view: ClusterView): Outcome | undefined {
  const { group = '', kind = 'Service', name, namespace = from.namespace, port } = ref
  const key = serviceOf(ref, from.namespace)
  if (group !== '' || kind !== 'Service') return fails('ResolvedRefs', 'InvalidKind', `Backends of kind ${kind} are not supported`)
  if (!isGranted(view, from, { group, kind, name, namespace })) {
    return fails('ResolvedRefs', 'RefNotPermitted', `No ReferenceGrant permits the reference to Service ${key}`)
  }
  const service = view.service(key)
  if (!service) return fails('ResolvedRefs', 'BackendNotFound', `There is no Service ${key}`)
  if (service.spec?.type === 'ExternalName') return fails('ResolvedRefs', 'UnsupportedValue', `Service ${key} is of type ExternalName`)
  if (!service.spec?.ports?.some((one) => one.port === port)) return fails('ResolvedRefs', 'BackendNotFound', `Service ${key} has no port ${port}`)
  return undefined
}
