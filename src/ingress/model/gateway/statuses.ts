/** What the statuses of the Gateway API's objects say (L3, pure). Upstream: apis/v1 of sigs.k8s.io/gateway-api (v1.6.3). */
import { type Frozen, refOfKey } from '#api/machinery/meta'
import type { Attachment } from './attachments.ts'
import type { CompiledRules } from './httpRules.ts'
import {
  type BackendTlsPolicy,
  type Gateway,
  type GatewayClass,
  gatewayControllerName,
  gatewayGroup,
  type HttpRoute,
  type ListenerStatus,
  type PolicyAncestorStatus,
  type RouteParentStatus,
} from './kinds.ts'
import { type CompiledGateway, type CompiledSet, isAttached } from './listenerSets.ts'
import type { CompiledListener } from './listeners.ts'
import { conditionsOf, fails, holds, isTrue, type Outcome } from './outcome.ts'

/** Names of upstream's features (pkg/features), in the order of the alphabet. */
export const supportedFeatures = [
  'BackendTLSPolicy',
  'BackendTLSPolicySANValidation',
  'GRPCRoute',
  'GRPCRouteNamedRouteRule',
  'Gateway',
  'GatewayHTTPListenerIsolation',
  'GatewayHTTPSListenerDetectMisdirectedRequests',
  'GatewayPort8080',
  'HTTPRoute',
  'HTTPRoute303RedirectStatusCode',
  'HTTPRoute307RedirectStatusCode',
  'HTTPRoute308RedirectStatusCode',
  'HTTPRouteBackendProtocolH2C',
  'HTTPRouteBackendProtocolWebSocket',
  'HTTPRouteBackendRequestHeaderModification',
  'HTTPRouteBackendTimeout',
  'HTTPRouteCORS',
  'HTTPRouteDestinationPortMatching',
  'HTTPRouteHostRewrite',
  'HTTPRouteMethodMatching',
  'HTTPRouteNamedRouteRule',
  'HTTPRouteParentRefPort',
  'HTTPRoutePathRedirect',
  'HTTPRoutePathRewrite',
  'HTTPRoutePortRedirect',
  'HTTPRouteQueryParamMatching',
  'HTTPRouteRequestMirror',
  'HTTPRouteRequestMultipleMirrors',
  'HTTPRouteRequestPercentageMirror',
  'HTTPRouteRequestTimeout',
  'HTTPRouteResponseHeaderModification',
  'HTTPRouteSchemeRedirect',
  'ListenerSet',
  'ReferenceGrant',
  'TLSRoute',
  'TLSRouteModeMixed',
  'TLSRouteModeTerminate',
]

/** @param now as the API writes times */
export function gatewayClassStatus({ metadata, spec, status }: Frozen<GatewayClass>, now: string) {
  const accepted = spec.parametersRef
    ? fails('Accepted', 'InvalidParameters', 'This controller has no parameters')
    : holds('Accepted', 'The class is served by the ingress')
  return {
    conditions: conditionsOf([accepted], metadata.generation ?? 0, status?.conditions, now),
    supportedFeatures: supportedFeatures.map((name) => ({ name })),
  }
}

export interface GatewayReach {
  /** Where clients reach the Gateway. */
  readonly addresses: readonly { readonly type: string; readonly value: string }[]
  /** Why there is no Service for it. */
  readonly problem?: string | undefined
}

/** @param attachedCount routes of a listener, by its id @param now as the API writes times */
export function gatewayStatus(
  { metadata, spec, status }: Frozen<Gateway>,
  { listeners, sets }: CompiledGateway,
  reach: GatewayReach,
  attachedCount: (listener: string) => number,
  now: string,
) {
  const generation = metadata.generation ?? 0
  const own = listeners.filter(({ set }) => set === undefined)
  const accepted = acceptedOf(spec.addresses ?? [], own)
  return {
    addresses: reach.addresses,
    conditions: conditionsOf([accepted, programmedOf(accepted, listeners, reach)], generation, status?.conditions, now),
    listeners: own.map((listener) => listenerStatus(listener, generation, status?.listeners, attachedCount, now)),
    // A definition of an older release has no such field.
    ...(sets.length > 0 || status?.attachedListenerSets !== undefined ? { attachedListenerSets: sets.filter(isAttached).length } : {}),
  }
}

/** @param attachedCount routes of a listener @param now as the API writes times */
export function listenerSetStatus({ set, listeners, accepted, programmed }: CompiledSet, attachedCount: (listener: string) => number, now: string) {
  const { metadata, status } = set
  const generation = metadata.generation ?? 0
  return {
    conditions: conditionsOf([accepted, programmed], generation, status?.conditions, now),
    listeners: listeners.map((listener) => listenerStatus(listener, generation, status?.listeners, attachedCount, now)),
  }
}

function listenerStatus(
  { id, name, kinds, outcomes }: CompiledListener,
  generation: number,
  before: readonly Frozen<ListenerStatus>[] = [],
  attachedCount: (listener: string) => number,
  now: string,
): ListenerStatus {
  return {
    name,
    supportedKinds: kinds.map((kind) => ({ group: gatewayGroup, kind })),
    attachedRoutes: attachedCount(id),
    conditions: conditionsOf(outcomes, generation, before.find((one) => one.name === name)?.conditions, now),
  }
}

function acceptedOf(addresses: readonly unknown[], listeners: readonly CompiledListener[]): Outcome {
  if (addresses.length > 0) return fails('Accepted', 'UnsupportedAddress', 'Addresses cannot be asked for')
  const refused = listeners.filter(({ isAccepted }) => !isAccepted).map(({ name }) => name)
  if (refused.length === 0) return holds('Accepted')
  const message = `Listeners that are not valid: ${refused.join(', ')}`
  return refused.length < listeners.length ? holds('Accepted', message, 'ListenersNotValid') : fails('Accepted', 'ListenersNotValid', message)
}

function programmedOf(accepted: Outcome, listeners: readonly CompiledListener[], { addresses, problem }: GatewayReach): Outcome {
  if (!isTrue(accepted)) return fails('Programmed', 'Invalid', accepted.message)
  if (!listeners.some(({ isServed }) => isServed)) return fails('Programmed', 'Invalid', 'No listener is served: see their conditions')
  if (problem !== undefined) return fails('Programmed', 'NoResources', problem)
  return addresses.length > 0 ? holds('Programmed') : fails('Programmed', 'AddressNotAssigned', 'The Gateway has no address yet')
}

/** Parents of other controllers stay as they are. */
export function routeParents(route: Frozen<HttpRoute>, attachments: readonly Attachment[], rules: CompiledRules | undefined, now: string): RouteParentStatus[] {
  const before = route.status?.parents ?? []
  const own = attachments.map(({ parentRef, accepted }) => {
    const there = before.find((one) => one.controllerName === gatewayControllerName && isSameRef(one.parentRef, parentRef))
    const outcomes = rules ? [isTrue(accepted) ? rules.accepted : accepted, rules.resolved, ...(rules.partiallyInvalid ? [rules.partiallyInvalid] : [])] : []
    const conditions = conditionsOf(outcomes, route.metadata.generation ?? 0, there?.conditions, now)
    return { parentRef, controllerName: gatewayControllerName, conditions }
  })
  return [...before.filter(({ controllerName }) => controllerName !== gatewayControllerName), ...own]
}

/** The most that a status may have. */
const maxAncestors = 16

/** Ancestors of other controllers stay as they are. @param gateways `namespace/name` of those that use the policy; beyond what the status can hold, the last ones by name are left out */
export function policyAncestors(
  policy: Frozen<BackendTlsPolicy>,
  outcomes: readonly Outcome[],
  gateways: readonly string[],
  now: string,
): Frozen<PolicyAncestorStatus>[] {
  const before = policy.status?.ancestors ?? []
  const others = before.filter(({ controllerName }) => controllerName !== gatewayControllerName)
  const own = [...gateways].sort().map((gateway) => {
    const ancestorRef = { group: gatewayGroup, kind: 'Gateway', ...refOfKey(gateway) }
    const there = before.find((one) => one.controllerName === gatewayControllerName && isSameRef(one.ancestorRef, ancestorRef))
    const conditions = conditionsOf(outcomes, policy.metadata.generation ?? 0, there?.conditions, now)
    return { ancestorRef, controllerName: gatewayControllerName, conditions }
  })
  return [...others, ...own.slice(0, Math.max(0, maxAncestors - others.length))]
}

type Ref = Attachment['parentRef']

function isSameRef(a: Ref, b: Ref): boolean {
  return a.name === b.name && a.namespace === b.namespace && a.sectionName === b.sectionName && a.port === b.port && a.kind === b.kind && a.group === b.group
}
