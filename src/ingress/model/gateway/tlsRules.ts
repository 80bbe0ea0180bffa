/**
 * Reads a TLSRoute as the HTTPRoute with the same hosts and backends (L3, pure): a connection has no path, so its one rule matches all. Upstream:
 * apis/v1/tlsroute_types.go (v1.6.3).
 */
import type { Frozen } from '#api/machinery/meta'
import type { HttpRoute, TlsRoute } from './kinds.ts'

export function asHttpRoute(route: Frozen<TlsRoute>): Frozen<HttpRoute> {
  const { rules = [], ...spec } = route.spec
  // A rule of another form, which no API server lets pass, keeps what connections have: a name and backends.
  const kept = rules.map((rule) => ({ ...(rule?.name === undefined ? {} : { name: rule.name }), backendRefs: rule?.backendRefs ?? [] }))
  return { ...route, spec: { ...spec, rules: kept } }
}
