/** The kinds of routes (L3, pure): which listeners they attach to, and how they are read as HTTPRoutes, the form that all of them are compiled from. */
import type { Frozen } from '#api/machinery/meta'
import { asHttpRoute as grpcAsHttpRoute } from './grpcRules.ts'
import type { GrpcRoute, HttpRoute, TlsRoute } from './kinds.ts'
import { asHttpRoute as tlsAsHttpRoute } from './tlsRules.ts'

export type GatewayProtocol = 'HTTP' | 'HTTPS' | 'TLS'

export type AnyRoute = HttpRoute | GrpcRoute | TlsRoute

interface RouteKindRules {
  readonly protocols: readonly GatewayProtocol[]
  readonly asHttpRoute: (route: Frozen<AnyRoute>) => Frozen<HttpRoute>
}

export const routeKinds = {
  HTTPRoute: { protocols: ['HTTP', 'HTTPS'], asHttpRoute: (route) => route as Frozen<HttpRoute> },
  GRPCRoute: { protocols: ['HTTP', 'HTTPS'], asHttpRoute: (route) => grpcAsHttpRoute(route as Frozen<GrpcRoute>) },
  TLSRoute: { protocols: ['TLS'], asHttpRoute: (route) => tlsAsHttpRoute(route as Frozen<TlsRoute>) },
} as const satisfies Readonly<Record<string, RouteKindRules>>

export type RouteKindName = keyof typeof routeKinds

/** As an HTTPRoute; one that cannot be read as such stays as it is, for the verdict on it to say so. */
export function readRoute(kind: RouteKindName, route: Frozen<AnyRoute>): Frozen<HttpRoute> {
  try {
    return routeKinds[kind].asHttpRoute(route)
  } catch {
    return route as Frozen<HttpRoute>
  }
}

/** The kinds that may attach to a listener of a protocol. */
export function routeKindsOf(protocol: GatewayProtocol): readonly RouteKindName[] {
  const all = Object.entries(routeKinds) as [RouteKindName, RouteKindRules][]
  return all.filter(([, { protocols }]) => protocols.includes(protocol)).map(([kind]) => kind)
}

/** Undefined: the ingress does not serve listeners of this protocol. */
export function protocolOf(text: string): GatewayProtocol | undefined {
  return text === 'HTTP' || text === 'HTTPS' || text === 'TLS' ? text : undefined
}
