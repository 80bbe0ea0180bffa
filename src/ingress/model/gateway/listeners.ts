/** Decides what the listeners of a Gateway serve, and what their statuses say (L3, pure). Upstream: apis/v1/gateway_types.go (v1.6.3). */
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { type Gateway, gatewayGroup, type LabelSelector, type Listener, type RouteKind } from './kinds.ts'
import { fails, holds, isTrue, type Outcome } from './outcome.ts'
import { type GatewayProtocol, protocolOf, routeKindsOf } from './routeKinds.ts'
import { type ClusterView, isGranted } from './view.ts'

export interface CompiledListener {
  /** As its owner names it. */
  readonly name: string
  /** Differs from those of all other listeners of the Gateway. */
  readonly id: string
  /** `namespace/name` of the ListenerSet that it belongs to; undefined: the Gateway's own. */
  readonly set: string | undefined
  readonly port: number
  readonly protocol: GatewayProtocol | undefined
  /** In lower case, perhaps with a leading `*.`; empty: all hosts. */
  readonly host: string
  /** Routes may attach. */
  readonly isAccepted: boolean
  /** It answers requests. */
  readonly isServed: boolean
  /** Connections are passed on as they are: the backends have the certificates. */
  readonly isPassthrough: boolean
  /** `namespace/name` of the Secret with the certificate. */
  readonly secret: string | undefined
  readonly kinds: readonly string[]
  readonly admitsNamespace: (namespace: string) => boolean
  readonly outcomes: readonly Outcome[]
}

/** The Gateway or the ListenerSet that a listener belongs to. */
export interface ListenerOwner {
  readonly kind: 'Gateway' | 'ListenerSet'
  readonly namespace: string
  readonly name: string
}

/** The Gateway's own. */
export function compileListeners({ metadata, spec }: Frozen<Gateway>, view: ClusterView): CompiledListener[] {
  const listeners = spec.listeners ?? []
  const owner = { kind: 'Gateway', namespace: metadata.namespace ?? '', name: metadata.name ?? '' } as const
  return listeners.map((listener) => compileListener(owner, listener, conflictOf(listener, listeners), view))
}

/** Decides about one listener. @param conflicted what another listener of the same place means for it @returns its outcomes in the order Accepted, Programmed, ResolvedRefs, Conflicted */
export function compileListener(owner: ListenerOwner, listener: Frozen<Listener>, conflicted: Outcome, view: ClusterView): CompiledListener {
  const { name, port, hostname = '' } = listener
  const set = owner.kind === 'ListenerSet' ? `${owner.namespace}/${owner.name}` : undefined
  const protocol = protocolOf(listener.protocol)
  const isPassthrough = protocol === 'TLS' && listener.tls?.mode === 'Passthrough'
  const { kinds, problem } = kindsOf(listener, protocol)
  const terminates = protocol === 'HTTPS' || (protocol === 'TLS' && !isPassthrough)
  const certificate = terminates ? certificateOf(owner, listener, view) : { secret: undefined, resolved: holds('ResolvedRefs') }
  const namespaces = namespacesOf(owner.namespace, listener.allowedRoutes?.namespaces, view)
  const resolved = problem ?? certificate.resolved
  const accepted = acceptedOf(listener, protocol, conflicted, namespaces.problem)
  const isServed = isTrue(accepted) && kinds.length > 0 && (!terminates || certificate.secret !== undefined)
  const reason = set !== undefined && isTrue(conflicted) ? conflicted.reason : 'Invalid'
  const programmed = isServed ? holds('Programmed') : fails('Programmed', reason, 'The listener is not served: see its other conditions')
  return {
    name,
    id: set === undefined ? name : `${set}/${name}`,
    set,
    port,
    protocol,
    host: hostname.toLowerCase(),
    isAccepted: isTrue(accepted),
    isServed,
    isPassthrough,
    secret: certificate.secret,
    kinds,
    admitsNamespace: namespaces.admits,
    outcomes: [accepted, programmed, resolved, conflicted],
  }
}

function acceptedOf(listener: Frozen<Listener>, protocol: GatewayProtocol | undefined, conflicted: Outcome, problem: string | undefined): Outcome {
  if (isTrue(conflicted)) return fails('Accepted', conflicted.reason, conflicted.message)
  if (!protocol) return fails('Accepted', 'UnsupportedProtocol', `The protocol ${listener.protocol} is not supported`)
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
  const known: readonly string[] = routeKindsOf(protocol)
  const asked = allowedRoutes?.kinds ?? []
  if (asked.length === 0) return { kinds: known, problem: undefined }
  const isKnown = ({ group = gatewayGroup, kind }: RouteKind) => group === gatewayGroup && known.includes(kind)
  const unknown = asked.find((one) => !isKnown(one))
  const kinds = known.filter((kind) => asked.some((one) => isKnown(one) && one.kind === kind))
  const message = `Routes of kind ${unknown?.kind} are not supported by a listener of protocol ${protocol}`
  return { kinds, problem: unknown && fails('ResolvedRefs', 'InvalidRouteKinds', message) }
}

/** The first certificate that can be used. */
function certificateOf(owner: ListenerOwner, { tls }: Frozen<Listener>, view: ClusterView): { secret: string | undefined; resolved: Outcome } {
  let secret: string | undefined
  let problem: Outcome | undefined
  if ((tls?.mode ?? 'Terminate') !== 'Terminate') problem = fails('ResolvedRefs', 'InvalidCertificateRef', `The mode ${tls?.mode} is not supported`)
  else if (!tls?.certificateRefs?.length) problem = fails('ResolvedRefs', 'InvalidCertificateRef', 'The listener names no certificate')
  else {
    for (const { group = '', kind = 'Secret', name, namespace = owner.namespace } of tls.certificateRefs) {
      const key = `${namespace}/${name}`
      const found = problemOfRef({ group, kind, name, namespace }, owner, view)
      if (found) problem ??= found
      else secret ??= key
    }
  }
  return { secret, resolved: problem ?? holds('ResolvedRefs') }
}

function problemOfRef(ref: { group: string; kind: string; name: string; namespace: string }, owner: ListenerOwner, view: ClusterView): Outcome | undefined {
  const key = `${ref.namespace}/${ref.name}`
  if (ref.group !== '' || ref.kind !== 'Secret') return fails('ResolvedRefs', 'InvalidCertificateRef', `${ref.kind} ${ref.name} is not a Secret`)
  if (!isGranted(view, owner, ref)) {
    return fails('ResolvedRefs', 'RefNotPermitted', `No ReferenceGrant permits the reference to Secret ${key}`)
  }
  const problem = view.problemOfSecret(key)
  return problem === undefined ? undefined : fails('ResolvedRefs', 'InvalidCertificateRef', `Secret ${key}: ${problem}`)
}

/** @param own the namespace of the object that chooses */
export function namespacesOf(
  own: string,
  chosen: Frozen<{ readonly from?: string; readonly selector?: LabelSelector }> = {},
  view: ClusterView,
): { admits: (namespace: string) => boolean; problem: string | undefined } {
  const { from = 'Same', selector } = chosen
  if (from === 'All') return { admits: () => true, problem: undefined }
  if (from === 'None') return { admits: () => false, problem: undefined }
  if (from === 'Same') return { admits: (namespace) => namespace === own, problem: undefined }
  try {
    const labels = selectorOf(from === 'Selector' ? selector : undefined)
    return { admits: (namespace) => labels.matches(view.namespaceLabels(namespace)), problem: undefined }
  } catch (error) {
    return { admits: () => false, problem: `The selector of namespaces cannot be read: ${messageOf(error)}` }
  }
}
