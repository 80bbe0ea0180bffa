/** Decides what the listeners of a Gateway serve, and what their statuses say (L3, pure). Upstream: apis/v1/gateway_types.go (v1.6.3). */
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { type Gateway, gatewayGroup, type Listener, type RouteKind } from './kinds.ts'
import { fails, holds, isTrue, type Outcome } from './outcome.ts'
import { type ClusterView, isGranted } from './view.ts'

export type GatewayProtocol = 'HTTP' | 'HTTPS'

export interface CompiledListener {
  readonly name: string
  readonly port: number
  readonly protocol: GatewayProtocol | undefined
  /** In lower case, perhaps with a leading `*.`; empty: all hosts. */
  readonly host: string
  /** Routes may attach. */
  readonly isAccepted: boolean
  /** It answers requests. */
  readonly isServed: boolean
  /** `namespace/name` of the Secret with the certificate. */
  readonly secret: string | undefined
  readonly kinds: readonly string[]
  readonly admitsNamespace: (namespace: string) => boolean
  readonly outcomes: readonly Outcome[]
}

const routeKinds = ['HTTPRoute', 'GRPCRoute']

export function compileListeners(gateway: Frozen<Gateway>, view: ClusterView): CompiledListener[] {
  const listeners = gateway.spec.listeners ?? []
  return listeners.map((listener) => compileListener(gateway, listener, conflictOf(listener, listeners), view))
}

function compileListener(gateway: Frozen<Gateway>, listener: Frozen<Listener>, conflicted: Outcome, view: ClusterView): CompiledListener {
  const { name, port, hostname = '' } = listener
  const protocol = listener.protocol === 'HTTP' || listener.protocol === 'HTTPS' ? listener.protocol : undefined
  const { kinds, problem } = kindsOf(listener, protocol)
  const certificate = protocol === 'HTTPS' ? certificateOf(gateway, listener, view) : { secret: undefined, resolved: holds('ResolvedRefs') }
  const namespaces = namespacesOf(gateway, listener, view)
  const resolved = problem ?? certificate.resolved
  const accepted = acceptedOf(listener, protocol, conflicted, namespaces.problem)
  const isServed = isTrue(accepted) && kinds.length > 0 && (protocol === 'HTTP' || certificate.secret !== undefined)
  const programmed = isServed ? holds('Programmed') : fails('Programmed', 'Invalid', 'The listener is not served: see its other conditions')
  return {
    name,
    port,
    protocol,
    host: hostname.toLowerCase(),
    isAccepted: isTrue(accepted),
    isServed,
    secret: certificate.secret,
    kinds,
    admitsNamespace: namespaces.admits,
    outcomes: [accepted, programmed, resolved, conflicted],
  }
}

function acceptedOf(listener: Frozen<Listener>, protocol: GatewayProtocol | undefined, conflicted: Outcome, problem: string | undefined): Outcome {
  if (!protocol) return fails('Accepted', 'UnsupportedProtocol', `The protocol ${listener.protocol} is not supported`)
  if (isTrue(conflicted)) return fails('Accepted', conflicted.reason, conflicted.message)
  if (problem !== undefined) return fails('Accepted', 'UnsupportedValue', problem)
  return holds('Accepted')
}

/** The listeners of one port have one protocol and different hosts. Each of those in conflict is refused, because none of them has a better right. */
function conflictOf(listener: Frozen<Listener>, all: readonly Frozen<Listener>[]): Outcome {
  const rivals = all.filter((one) => one !== listener && one.port === listener.port)
  const ofProtocol = rivals.find(({ protocol }) => protocol !== listener.protocol)
  const ofHost = rivals.find(({ hostname = '' }) => hostname.toLowerCase() === (listener.hostname ?? '').toLowerCase())
  if (ofProtocol) return holds('Conflicted', `Listener ${ofProtocol.name} has another protocol on the same port`, 'ProtocolConflict')
  if (ofHost) return holds('Conflicted', `Listener ${ofHost.name} has the same host and port`, 'HostnameConflict')
  return fails('Conflicted', 'NoConflicts', '')
}

function kindsOf({ allowedRoutes }: Frozen<Listener>, protocol: GatewayProtocol | undefined): { kinds: readonly string[]; problem: Outcome | undefined } {
  if (!protocol) return { kinds: [], problem: undefined }
  const asked = allowedRoutes?.kinds ?? []
  if (asked.length === 0) return { kinds: routeKinds, problem: undefined }
  const isKnown = ({ group = gatewayGroup, kind }: RouteKind) => group === gatewayGroup && routeKinds.includes(kind)
  const unknown = asked.find((one) => !isKnown(one))
  const kinds = routeKinds.filter((kind) => asked.some((one) => isKnown(one) && one.kind === kind))
  return { kinds, problem: unknown && fails('ResolvedRefs', 'InvalidRouteKinds', `Routes of kind ${unknown.kind} are not supported`) }
}

/** The first certificate that can be used. */
function certificateOf(gateway: Frozen<Gateway>, { tls }: Frozen<Listener>, view: ClusterView): { secret: string | undefined; resolved: Outcome } {
  const own = gateway.metadata.namespace ?? ''
  let secret: string | undefined
  let problem: Outcome | undefined
  if ((tls?.mode ?? 'Terminate') !== 'Terminate') problem = fails('ResolvedRefs', 'InvalidCertificateRef', `The mode ${tls?.mode} is not supported`)
  else if (!tls?.certificateRefs?.length) problem = fails('ResolvedRefs', 'InvalidCertificateRef', 'The listener names no certificate')
  else {
    for (const { group = '', kind = 'Secret', name, namespace = own } of tls.certificateRefs) {
      const key = `${namespace}/${name}`
      const found = problemOfRef({ group, kind, name, namespace }, own, view)
      if (found) problem ??= found
      else secret ??= key
    }
  }
  return { secret, resolved: problem ?? holds('ResolvedRefs') }
}

function problemOfRef(ref: { group: string; kind: string; name: string; namespace: string }, own: string, view: ClusterView): Outcome | undefined {
  const key = `${ref.namespace}/${ref.name}`
  if (ref.group !== '' || ref.kind !== 'Secret') return fails('ResolvedRefs', 'InvalidCertificateRef', `${ref.kind} ${ref.name} is not a Secret`)
  if (!isGranted(view, { kind: 'Gateway', namespace: own }, ref)) {
    return fails('ResolvedRefs', 'RefNotPermitted', `No ReferenceGrant permits the reference to Secret ${key}`)
  }
  const problem = view.problemOfSecret(key)
  return problem === undefined ? undefined : fails('ResolvedRefs', 'InvalidCertificateRef', `Secret ${key}: ${problem}`)
}

function namespacesOf(
  gateway: Frozen<Gateway>,
  { allowedRoutes }: Frozen<Listener>,
  view: ClusterView,
): { admits: (namespace: string) => boolean; problem: string | undefined } {
  const { from = 'Same', selector } = allowedRoutes?.namespaces ?? {}
  if (from === 'All') return { admits: () => true, problem: undefined }
  if (from === 'Same') return { admits: (namespace) => namespace === gateway.metadata.namespace, problem: undefined }
  try {
    const chosen = selectorOf(from === 'Selector' ? selector : undefined)
    return { admits: (namespace) => chosen.matches(view.namespaceLabels(namespace)), problem: undefined }
  } catch (error) {
    return { admits: () => false, problem: `The selector of allowedRoutes cannot be read: ${messageOf(error)}` }
  }
}
