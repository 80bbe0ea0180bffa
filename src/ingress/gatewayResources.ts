/** The resources of the Gateway API that this ingress follows (L3). */
import { clusterScoped, namespaced } from '#client/builtIn'
import type { Resource } from '#client/client'
import {
  type BackendTlsPolicy,
  type Gateway,
  type GatewayClass,
  type GrpcRoute,
  gatewayGroup,
  type HttpRoute,
  type ListenerSet,
  type ReferenceGrant,
  type TlsRoute,
} from './model/gateway/kinds.ts'
import type { AnyRoute, RouteKindName } from './model/gateway/routeKinds.ts'

export const gatewayClasses = clusterScoped<GatewayClass>(gatewayGroup, 'v1', 'gatewayclasses', 'GatewayClass')
export const gateways = namespaced<Gateway>(gatewayGroup, 'v1', 'gateways', 'Gateway')
export const httpRoutes = namespaced<HttpRoute>(gatewayGroup, 'v1', 'httproutes', 'HTTPRoute')
export const grpcRoutes = namespaced<GrpcRoute>(gatewayGroup, 'v1', 'grpcroutes', 'GRPCRoute')
export const tlsRoutes = namespaced<TlsRoute>(gatewayGroup, 'v1', 'tlsroutes', 'TLSRoute')
export const referenceGrants = namespaced<ReferenceGrant>(gatewayGroup, 'v1beta1', 'referencegrants', 'ReferenceGrant')
export const listenerSets = namespaced<ListenerSet>(gatewayGroup, 'v1', 'listenersets', 'ListenerSet')
export const backendTlsPolicies = namespaced<BackendTlsPolicy>(gatewayGroup, 'v1', 'backendtlspolicies', 'BackendTLSPolicy')

export const routeResources = { HTTPRoute: httpRoutes, GRPCRoute: grpcRoutes, TLSRoute: tlsRoutes } as unknown as Readonly<
  Record<RouteKindName, Resource<AnyRoute>>
>
