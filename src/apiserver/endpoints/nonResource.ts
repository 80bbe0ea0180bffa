/** Paths that are no resource (L3): discovery, health, version, metrics. */
import type { Info } from '#api/gen/types/version'
import type { Exposition } from '#base/exposition'
import { HealthSlis } from '#base/healthSlis'
import { buildInfo, gitVersion, goPlatform, kubernetesMajor, kubernetesMinor, minCompatibilityMinor } from '#base/version'
import type { Answer } from '../core/answer.ts'
import { expositionAnswer } from '../core/answer.ts'
import { type HealthCheck, healthAnswer, slisAnswer } from '../core/health.ts'
import { answerByPage, type Page } from '../core/page.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Discovery } from './discovery.ts'
import { methodNotAllowed } from './router.ts'

export interface NonResourceParts {
  readonly discovery: Discovery
  readonly checks: readonly HealthCheck[]
  readonly shutdown: AbortSignal
  /** What GET / lists. */
  paths(): readonly string[]
  /** /metrics in the format that the Accept header asks for. */
  readonly scrape?: ((accept: ServerRequest['headers'][string]) => Promise<Exposition>) | undefined
  /** OpenAPI, the token issuer's keys and the like. */
  readonly pages: readonly Page[]
}

export function nonResourceHandler(parts: NonResourceParts): (request: ServerRequest) => Promise<Answer | undefined> {
  const shutdown: HealthCheck = { name: 'shutdown', check: () => (parts.shutdown.aborted ? 'process is shutting down' : undefined) }
  const slis = new HealthSlis()
  const posted = parts.pages.filter(({ acceptsPost }) => acceptsPost)
  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return unserved(request) ?? (request.method === 'POST' ? answerByPage(posted, request) : undefined)
    const { path } = request
    const root = /^\/(livez|readyz|healthz)(\/|$)/.exec(path)?.[1] as 'livez' | 'readyz' | 'healthz' | undefined
    if (root) return healthAnswer(root, root === 'readyz' ? [...parts.checks, shutdown] : parts.checks, slis, request)
    if (path === '/version' || path === '/version/') return { type: 'value', status: 200, value: versionInfo, encoding: 'pretty' }
    if (path === '/metrics' && parts.scrape) return expositionAnswer(await parts.scrape(request.headers.accept))
    if (path === '/metrics/slis') return slisAnswer(slis, request)
    if (path === '/' || path === '/index.html') return { type: 'value', status: 200, value: { paths: parts.paths() } }
    return parts.discovery.answer(request) ?? answerByPage(parts.pages, request)
  }
}

/** What `kubectl version` shows; clients compare major and minor. */
export const versionInfo: Info = {
  major: kubernetesMajor,
  minor: kubernetesMinor,
  emulationMajor: kubernetesMajor,
  emulationMinor: kubernetesMinor,
  minCompatibilityMajor: kubernetesMajor,
  minCompatibilityMinor,
  gitVersion,
  ...buildInfo,
  // The runtime, where upstream names Go.
  goVersion: `node${process.versions.node}`,
  compiler: 'v8',
  platform: goPlatform(process.platform, process.arch),
}

const known: ReadonlySet<string> = new Set(['/version', '/metrics', '/metrics/slis', '/livez', '/readyz', '/healthz', '/api', '/apis', '/statusz', '/flagz'])

function unserved(request: ServerRequest): undefined {
  if (known.has(request.path)) throw methodNotAllowed()
  return undefined
}
