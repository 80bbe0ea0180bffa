/**
 * A component's own port (L5): health, metrics, configuration, profiles, behind authentication and authorization. The API server's listener and
 * stages do the work. Upstream: buildHandlerChain and newEndpointsHandler of cmd/kube-scheduler/app/server.go, controller-manager/app/serve.go (v1.36).
 */
import type { Authenticator } from '#apiserver/authn/authenticator'
import type { Authorizer } from '#apiserver/authz/authorizer'
import { type Answer, expositionAnswer, textAnswer } from '#apiserver/core/answer'
import { type HealthCheck, healthAnswer, slisAnswer } from '#apiserver/core/health'
import { answerByPage, type Page } from '#apiserver/core/page'
import type { ServerRequest } from '#apiserver/core/request'
import { requestInfoStage } from '#apiserver/core/requestInfo'
import { compose, type Handler } from '#apiserver/core/stage'
import { versionInfo } from '#apiserver/endpoints/nonResource'
import { upgradeHandler } from '#apiserver/endpoints/upgrade'
import { zpages } from '#apiserver/endpoints/zpages'
import { authenticationStage } from '#apiserver/pipeline/authentication'
import { authorizationStage } from '#apiserver/pipeline/authorization'
import { cacheControlStage } from '#apiserver/pipeline/cacheControl'
import { panicRecoveryStage } from '#apiserver/pipeline/panicRecovery'
import { warningRecorderStage } from '#apiserver/pipeline/warningRecorder'
import { type Listener, type ListenOptions, listen } from '#apiserver/server/listener'
import { HealthSlis } from '#base/healthSlis'
import { scrapeComponent } from '../componentMetrics.ts'
import type { ProcessTools } from '../layouts/processTools.ts'
import { profiling } from './profiling.ts'

export interface SecurePortParts {
  /** e.g. kube-scheduler. */
  readonly component: string
  readonly tools: ProcessTools
  readonly authenticators: readonly Authenticator[]
  readonly authorizers: readonly Authorizer[]
  /** Of /healthz and /readyz; /livez only says that the process answers. */
  readonly checks: readonly HealthCheck[]
  /** Of /readyz alone. */
  readonly readyChecks: readonly HealthCheck[]
  /** What /configz shows, by its name. */
  readonly configz: Readonly<Record<string, unknown>>
  /** By name, as /flagz shows them. */
  readonly flags: Readonly<Record<string, string>>
  readonly profiling: boolean
  /** More pages, behind the same checks. */
  readonly pages?: readonly Page[] | undefined
}

export function openSecurePort(parts: SecurePortParts, options: ListenOptions): Promise<Listener> {
  const handle = securePortHandler(parts)
  const { clock, log } = parts.tools
  return listen({ handle, upgrade: upgradeHandler(handle, clock, () => {}), clock, log: log.with('securePort') }, options)
}

/** Everything but the socket. */
export function securePortHandler(parts: SecurePortParts): Handler {
  const { clock, metrics, log, random } = parts.tools
  const deps = { ...parts, clock, metrics, log, random }
  return compose(
    [panicRecoveryStage(log), requestInfoStage, cacheControlStage, warningRecorderStage, authenticationStage(deps), authorizationStage(deps)],
    endpoints(parts),
  )
}

function endpoints(parts: SecurePortParts): Handler {
  const { tools, configz, checks, readyChecks } = parts
  const slis = new HealthSlis()
  const profiles = parts.profiling ? [profiling(tools.clock)] : []
  const statusPages = zpages({
    component: parts.component,
    clock: tools.clock,
    startedMs: tools.clock.now(),
    binaryVersion: versionInfo.gitVersion.replace(/^v/, ''),
    emulationVersion: `${versionInfo.emulationMajor}.${versionInfo.emulationMinor}`,
    runtimeVersion: `node ${process.version}`,
    paths: () => [...paths, ...profiles.map(({ prefix }) => prefix)],
    flags: parts.flags,
  })
  const pages = [...statusPages, ...profiles, ...(parts.pages ?? [])]
  const ofRoot = { livez: [ping], healthz: [ping, ...checks], readyz: [ping, ...checks, ...readyChecks] } as const
  const health = (request: ServerRequest) => {
    const root = /^\/(livez|readyz|healthz)(\/|$)/.exec(request.path)?.[1] as keyof typeof ofRoot | undefined
    return root && healthAnswer(root, ofRoot[root], slis, request)
  }
  const page = (request: ServerRequest): Answer | Promise<Answer | undefined> | undefined => {
    if (request.path === '/metrics') return metricsAnswer(tools, request)
    if (request.path === '/metrics/slis') return slisAnswer(slis, request)
    if (request.path === '/configz') return { type: 'value', status: 200, value: configz }
    return health(request) ?? answerByPage(pages, request)
  }
  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return textAnswer(405, 'Method Not Allowed\n', { allow: 'GET, HEAD' })
    return (await page(request)) ?? textAnswer(404, '404 page not found\n')
  }
}

async function metricsAnswer({ metrics }: ProcessTools, { headers }: ServerRequest): Promise<Answer> {
  return expositionAnswer(await scrapeComponent(metrics, headers.accept))
}

const ping: HealthCheck = { name: 'ping', check: () => undefined }
const paths = ['/configz', '/flagz', '/healthz', '/livez', '/metrics', '/metrics/slis', '/readyz', '/statusz']
