/** Reads a GRPCRoute as the HTTPRoute that does the same (L3, pure): gRPC calls `POST /SERVICE/METHOD`. Upstream: apis/v1/grpcroute_types.go (v1.6.3). */
import type { Frozen } from '#api/machinery/meta'
import type { GrpcRoute, GrpcRule, HttpMatch, HttpRoute } from './kinds.ts'

export function asHttpRoute(route: Frozen<GrpcRoute>): Frozen<HttpRoute> {
  const { rules, ...spec } = route.spec
  return { ...route, spec: rules ? { ...spec, rules: rules.map((rule) => ({ ...rule, matches: (rule.matches ?? []).map(asHttpMatch) })) } : spec }
}

function asHttpMatch({ method, headers = [] }: Frozen<NonNullable<GrpcRule['matches']>[number]>): Frozen<HttpMatch> {
  const { type = 'Exact', service, method: name } = method ?? {}
  if (type !== 'Exact') return { path: { type }, headers }
  if (service && name) return { path: { type, value: `/${service}/${name}` }, headers }
  return { path: { type: 'PathPrefix', value: service ? `/${service}` : '/' }, headers, ...(name ? { grpcMethod: name } : {}) }
}
