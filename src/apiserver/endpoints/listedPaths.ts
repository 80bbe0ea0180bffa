/** The paths in the answer to GET / (L3): all but those of single resources. Upstream: apiserver/pkg/server/routes/index.go and the generic server's handlers. */
import type { HealthCheck } from '../core/health.ts'
import type { Catalog } from '../registry/catalog.ts'

const always = [
  '/.well-known/openid-configuration',
  '/api',
  '/apis',
  '/flagz',
  '/metrics',
  '/metrics/slis',
  '/openapi/v2',
  '/openapi/v3',
  '/openid/v1/jwks',
  '/statusz',
  '/version',
]

/** Sorted. */
export function listedPaths(catalog: Catalog, checks: readonly HealthCheck[]): string[] {
  const paths = new Set(always)
  for (const { group, version } of catalog.groupVersions()) {
    if (group !== '') paths.add(`/apis/${group}`)
    paths.add(group === '' ? `/api/${version}` : `/apis/${group}/${version}`)
  }
  for (const root of ['/healthz', '/livez', '/readyz']) {
    paths.add(root)
    for (const { name, livez } of checks) if (root !== '/livez' || livez !== false) paths.add(`${root}/${name}`)
  }
  return [...paths].sort()
}
