/**
 * The answers of the kubelet's API to plain requests by path (L3). Requests are authorized before. Upstream: InstallDefaultHandlers and
 * InstallDebuggingHandlers of kubelet/server/server.go (v1.36).
 */

import type { IncomingMessage } from 'node:http'
import type { Clock } from '#base/clock'
import { HealthSlis } from '#base/healthSlis'
import type { MetricFamily } from '#base/metricFamily'
import type { ConfigurationDocument } from '../configuration/document.ts'
import { findSpecContainer } from '../core/containers.ts'
import type { KubeletView } from '../core/kubeletView.ts'
import { gateEnabled } from '../core/resourceConfig.ts'
import { labelKeys } from '../core/runtimeLabels.ts'
import { HttpError } from './httpError.ts'
import { containerLog } from './logs.ts'
import { createStatsProvider } from './stats/statsProvider.ts'
import { syncLoopFault } from './syncLoop.ts'

export const contentTypes = {
  text: 'text/plain; charset=utf-8',
  json: 'application/json',
  html: 'text/html; charset=utf-8',
  stream: 'text/plain',
} as const

export interface Page {
  /** One of the above, or a content type. */
  readonly type: keyof typeof contentTypes | (string & {})
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>
  readonly code?: number | undefined
}

export interface RoutesDeps {
  /** Only public paths are served. */
  readonly readOnly?: boolean | undefined
  readonly view: KubeletView
  readonly clock: Clock
  /** /metrics of the process. */
  readonly metricFamilies?: (() => Promise<readonly MetricFamily[]> | readonly MetricFamily[]) | undefined
  readonly configuration?: ConfigurationDocument | undefined
  readonly pages?: ((request: IncomingMessage) => Promise<Page | undefined>) | undefined
}

export interface RouteRequest {
  readonly request: IncomingMessage
  readonly method: string
  readonly segments: readonly string[]
  readonly query: URLSearchParams
  readonly signal: AbortSignal
}

/** @throws HttpError */
export type Routes = (request: RouteRequest) => Promise<Page>
type Route = (request: RouteRequest & { readonly path: readonly string[] }) => Promise<Page> | Page

const text = (body: string): Page => ({ type: 'text', body })
const json = (value: unknown): Page => ({ type: 'json', body: JSON.stringify(value) })

export function debuggingDisabled(): HttpError {
  return new HttpError(405, 'Debug endpoints are disabled.\n')
}

/** Without debugging handlers these answer 405, */
const debugging = /^(run|exec|attach|portForward|containerLogs|runningpods|logs|debug\/pprof)(\/|$)/
/** and these are just not there. */
const withDebugging = new Set(['checkpoint', 'configz', 'debug', 'flagz', 'statusz', 'views'])
/** The other paths answer to any method, or check the method themselves. */
const onlyGet = new Set(['containerLogs', 'logs', 'pods', 'runningpods', 'stats', 'views'])

export function createRoutes(deps: RoutesDeps): Routes {
  const routes = plainRoutes(deps)
  return async (request) => {
    const { segments } = request
    const [first = ''] = segments
    if (deps.readOnly || !deps.view.config.enableDebuggingHandlers) {
      if (debugging.test(segments.join('/'))) throw debuggingDisabled()
      if (withDebugging.has(first)) throw notFound()
    }
    if (onlyGet.has(first) && request.method !== 'GET') throw notAllowed('GET')
    const route = routes.get(segments.join('/')) ?? routes.get(`${first}/*`)
    const page = route ? await route({ ...request, path: segments.slice(1) }) : await deps.pages?.(request.request)
    if (!page) throw notFound()
    return page
  }
}

const notFound = () => new HttpError(404, '404: Page Not Found')
const notAllowed = (allowed: string) => new HttpError(405, '405: Method Not Allowed', { Allow: allowed })

function plainRoutes(deps: RoutesDeps): ReadonlyMap<string, Route> {
  const { view, clock } = deps
  const stats = createStatsProvider(view, clock)
  const slis = new HealthSlis()
  return new Map<string, Route>([
    ['healthz', ({ query }) => healthz(deps, slis, query)],
    ['healthz/ping', () => text('ok')],
    ['healthz/log', () => text('ok')],
    ['healthz/syncloop', () => oneCheck(syncLoopFault(deps.view, deps.clock))],
    ['pods', () => json(podList(view))],
    ['runningpods', async () => json(await runningPods(view))],
    ['configz', () => configz(deps)],
    ['stats/summary', async ({ query }) => json(await stats.summary(query.get('only_cpu_and_memory') === 'true'))],
    ['metrics', scraped(async () => [...((await deps.metricFamilies?.()) ?? []), ...(await stats.volumeMetrics()), ...(await stats.logMetrics())])],
    ['metrics/slis', scraped(() => slis.families())],
    ['metrics/probes', scraped(() => view.probeMetrics())],
    ['metrics/resource', scraped(stats.resourceMetrics)],
    ['metrics/cadvisor', scraped(stats.cadvisorMetrics)],
    ['containerLogs/*', async ({ path, query, signal }) => ({ type: 'stream', body: await containerLog(view, clock.now(), path, query, signal) })],
    ['checkpoint/*', checkpoint(deps)],
    ['run/*', async ({ path, query, method }) => runPage(view, method, path, query)],
    ['exec/*', refusePlain],
    ['attach/*', refusePlain],
    ['portForward/*', refusePlain],
    ['logs', ({ query }) => logPage(view, [], query)],
    ['logs/*', ({ path, query }) => logPage(view, path, query)],
    ['views/*', ({ path, query }) => viewPage(view, path, query)],
    ['debug/*', ({ request }) => debugPage(deps, request)],
  ])
}

/** Metrics in the format that the client accepts. The formats are loaded with the first scrape. */
function scraped(families: () => Promise<readonly MetricFamily[]> | readonly MetricFamily[]): Route {
  return async ({ request }) => {
    const { exposition } = await import('#base/exposition')
    const { contentType, body } = exposition(await families(), request.headers.accept)
    return { type: contentType, body }
  }
}

/** A view as the API server shows it in node.skiff.dev. Their code is loaded with the first request. */
async function viewPage(view: KubeletView, [name, ...rest]: readonly string[], query: URLSearchParams): Promise<Page> {
  const { nodeViews } = await import('../views/index.ts')
  const found = nodeViews.find(({ resource }) => resource === name)
  if (!found || rest.length > 0) throw notFound()
  return json(await found.compute(view, query))
}

function refusePlain(): never {
  throw new HttpError(400, 'unable to upgrade: missing upgrade headers in request')
}

function podList(view: KubeletView) {
  const items = view.pods().map((pod) => ({ ...pod, status: view.podStatus(pod.metadata.uid ?? '') ?? pod.status }))
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items }
}

/** Pods with a running container by the runtime's list, sorted by name. */
async function runningPods(view: KubeletView) {
  const items = new Map<string, { metadata: object; spec: { containers: object[] }; status: object }>()
  for (const { labels, image, metadata, state } of await view.runtime.listContainers()) {
    if (state !== 'CONTAINER_RUNNING') continue
    const [name, namespace, uid = ''] = [labels[labelKeys.podName], labels[labelKeys.podNamespace], labels[labelKeys.podUid]]
    const pod = items.get(uid) ?? { metadata: { name, namespace, uid }, spec: { containers: [] }, status: {} }
    pod.spec.containers.push({ name: metadata.name, image: image.image, resources: {} })
    items.set(uid, pod)
  }
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [...items.values()] }
}

function oneCheck(fault: string | undefined): Page {
  return fault === undefined ? text('ok') : { ...text(`internal server error: ${fault}\n`), code: 500 }
}

/** The checks by name, as apiserver's healthz writes them. */
function healthz(deps: RoutesDeps, slis: HealthSlis, query: URLSearchParams): Page {
  const excluded = new Set(query.getAll('exclude'))
  const checks = [
    ['ping', undefined],
    ['log', undefined],
    ['syncloop', syncLoopFault(deps.view, deps.clock)],
  ] as const
  const counted = checks.map(([name, fault]) => ({ name, isExcluded: excluded.has(name), fault: excluded.has(name) ? undefined : fault }))
  for (const { name, isExcluded, fault } of counted) if (!isExcluded) slis.observe(name, 'healthz', fault === undefined)
  const isHealthy = counted.every(({ fault }) => fault === undefined)
  if (isHealthy && !query.has('verbose')) return text('ok')
  const lines = counted.map(({ name, isExcluded, fault }) =>
    fault === undefined ? `[+]${name} ${isExcluded ? 'excluded: ok' : 'ok'}` : `[-]${name} failed: reason withheld`,
  )
  return { ...text(`${lines.join('\n')}\nhealthz check ${isHealthy ? 'passed' : 'failed'}\n`), code: isHealthy ? 200 : 500 }
}

async function runPage(view: KubeletView, method: string, path: readonly string[], query: URLSearchParams): Promise<Page> {
  if (method !== 'POST') throw notAllowed('POST')
  const { runCommand } = await import('./streams.ts')
  return { type: 'json', body: await runCommand(view, path, (query.get('cmd') ?? '').split(' ')) }
}

/** POST /checkpoint/{namespace}/{pod}/{container}: only runtimes that can do it do. */
function checkpoint({ view, clock }: RoutesDeps): Route {
  return async ({ method, path: [namespace = '', name = '', container = ''], query }) => {
    if (method !== 'POST') throw notAllowed('POST')
    const pod = view.pod(namespace, name)
    if (!pod) throw new HttpError(404, 'pod does not exist')
    if (!findSpecContainer(pod, container)) throw new HttpError(404, `container ${container} does not exist`)
    const timeout = query.getAll('timeout').at(-1) ?? '0'
    if (!/^\d+$/.test(timeout)) throw new HttpError(404, 'cannot parse value of timeout parameter')
    const failed = (why: string) => new HttpError(500, `checkpointing of ${namespace}/${name}/${container} failed (${why})`)
    const statuses = view.podStatus(pod.metadata.uid ?? '')?.containerStatuses ?? []
    const id = statuses.find((status) => status.name === container && status.state?.running)?.containerID?.replace(/^.*:\/\//, '')
    if (id === undefined) throw failed(`container ${container} not found`)
    if (!view.runtime.checkpointContainer) throw failed(`runtime ${view.runtime.name} cannot checkpoint containers`)
    const stamp = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    const location = `${view.config.rootDirectory}/checkpoints/checkpoint-${name}_${namespace}-${container}-${stamp}.tar`
    try {
      await view.runtime.checkpointContainer(id, location, Number(timeout))
    } catch (error) {
      throw failed((error as Error).message)
    }
    return json({ items: [location] })
  }
}

async function logPage(view: KubeletView, path: readonly string[], query: URLSearchParams): Promise<Page> {
  const { enableSystemLogHandler, enableSystemLogQuery } = view.config
  if (!enableSystemLogHandler) throw new HttpError(405, 'logs endpoint is disabled.\n')
  const host = view.context()?.host
  if (!host) throw new HttpError(404, 'a simulated node has no log files')
  // Few nodes are ever asked.
  const { queryLogs, systemLog } = await import('./systemLogs.ts')
  if (query.has('query') && enableSystemLogQuery && gateEnabled(view.config, 'NodeLogQuery')) return { type: 'text', body: await queryLogs(host, query) }
  const answer = await systemLog(host, path)
  return 'listing' in answer ? { type: 'html', body: answer.listing } : { type: 'stream', body: answer.content }
}

async function debugPage({ view, pages }: RoutesDeps, request: IncomingMessage): Promise<Page> {
  const { pathname: path } = new URL(request.url ?? '/', 'https://kubelet')
  if (path.startsWith('/debug/pprof') && !view.config.enableProfilingHandler) throw new HttpError(405, 'profiling endpoint is disabled.\n')
  if (path === '/debug/flags/v' && !view.config.enableDebugFlagsHandler) throw new HttpError(405, 'flags endpoint is disabled.\n')
  const page = await pages?.(request)
  if (!page) throw notFound()
  return page
}

/** The effective configuration. Its code is loaded with the first request: few nodes are ever asked. */
async function configz({ view, configuration }: RoutesDeps): Promise<Page> {
  const [{ documentOf }, { configurationApiVersion: apiVersion, configurationKind: kind }] = await Promise.all([
    import('../configuration/settings.ts'),
    import('../configuration/fields.ts'),
  ])
  return json({ kubeletconfig: { ...documentOf(view.config, configuration), apiVersion, kind } })
}
