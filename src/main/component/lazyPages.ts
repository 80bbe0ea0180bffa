/**
 * The pages that every component has (L5), for servers of a node's agents: /statusz, /flagz, and profiles of the process. The API server's own pages do the
 * work; the server has authorized the request. Upstream: component-base/zpages, routes.Profiling (v1.36).
 */
import type { IncomingMessage } from 'node:http'
import type { Answer } from '#apiserver/core/answer'
import type { ServerRequest } from '#apiserver/core/request'
import type { Clock } from '#base/clock'
import type { Page } from '#kubelet/server/routes'

export interface LazyPagesParts {
  /** e.g. kubelet. */
  readonly component: string
  /** Those that /statusz names. */
  readonly paths: readonly string[]
  readonly clock: Clock
  /** By name, as /flagz shows them. */
  readonly flags: Readonly<Record<string, string>>
  /** Serve /debug/pprof. */
  readonly profiling: boolean
}

export function lazyPages(parts: LazyPagesParts): (request: IncomingMessage) => Promise<Page | undefined> {
  const startedMs = parts.clock.now()
  let pages: ReturnType<typeof loadPages> | undefined
  return async (incoming) => {
    // Loaded with the first request: few nodes ever get one.
    pages ??= loadPages(parts, startedMs)
    const { answer, newCancellation } = await pages
    const cancellation = newCancellation()
    const cancel = () => cancellation.abort()
    incoming.socket.once('close', cancel)
    try {
      const url = new URL(incoming.url ?? '/', 'https://component')
      const request = { path: url.pathname, query: url.searchParams, headers: incoming.headers, cancellation, warnings: [] } as unknown as ServerRequest
      const given = await answer(request)
      return given && (await pageOf(given))
    } finally {
      incoming.socket.off('close', cancel)
    }
  }
}

async function loadPages({ component, paths, clock, flags, profiling: profiles }: LazyPagesParts, startedMs: number) {
  const [{ answerByPage }, { profiling }, { zpages }, { versionInfo: version }, { Cancellation }] = await Promise.all([
    import('#apiserver/core/page'),
    import('./profiling.ts'),
    import('#apiserver/endpoints/zpages'),
    import('#apiserver/endpoints/nonResource'),
    import('#apiserver/core/cancellation'),
  ])
  const statusPages = zpages({
    component,
    clock,
    startedMs,
    binaryVersion: version.gitVersion.replace(/^v/, ''),
    emulationVersion: `${version.emulationMajor}.${version.emulationMinor}`,
    runtimeVersion: `node ${process.version}`,
    paths: () => [...paths],
    flags,
  })
  const pages = [...statusPages, ...(profiles ? [profiling(clock)] : [])]
  return { answer: (request: ServerRequest) => answerByPage(pages, request), newCancellation: () => new Cancellation() }
}

async function pageOf(answer: Answer): Promise<Page | undefined> {
  if (answer.type === 'bytes') return { type: answer.contentType, body: answer.bytes, code: answer.status }
  if (answer.type !== 'value') return undefined
  if (answer.encoding !== 'yaml') return { type: 'json', body: JSON.stringify(answer.value), code: answer.status }
  const { toYaml } = await import('#api/machinery/yaml')
  return { type: 'application/yaml', body: toYaml(answer.value), code: answer.status }
}
