/** The resources of the Gateway API that this ingress follows (L3). */
import { clusterScoped, namespaced } from '#client/builtIn'
import { type Gateway, type GatewayClass, type GrpcRoute, gatewayGroup, type HttpRoute, type ReferenceGrant } from './model/gateway/kinds.ts'

export const gatewayClasses = clusterScoped<GatewayClass>(gatewayGroup, 'v1', 'gatewayclasses', 'GatewayClass')
export const gateways = namespaced<Gateway>(gatewayGroup, 'v1', 'gateways', 'Gateway')
export const httpRoutes = namespaced<HttpRoute>(gatewayGroup, 'v1', 'httproutes', 'HTTPRoute')
export const grpcRoutes = namespaced<GrpcRoute>(gatewayGroup, 'v1', 'grpcroutes', 'GRPCRoute')
export const referenceGrants = namespaced<ReferenceGrant>(gatewayGroup, 'v1beta1', 'referencegrants', 'ReferenceGrant')
