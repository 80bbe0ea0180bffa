/**
 * Calls extension API servers (L3): over TLS, verified as the APIService specifies, with the front proxy's certificate, on behalf of the request's
 * user or of the aggregator itself.
 * Upstream: kube-aggregator/pkg/apiserver/handler_proxy.go.
 */
import type { APIService } from '#api/gen/types/apiregistration.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Random } from '#base/random'
import { authority, type Backend, type BackendTls, isUpgrade } from '../backends/backend.ts'
import { escapePath, querySuffix } from '../backends/backendPath.ts'
import { sendRequest } from '../backends/connect.ts'
import { dialErrorText } from '../backends/dialError.ts'
import type { OwnEndpoints } from '../backends/ownEndpoints.ts'
import { proxyPlain } from '../backends/plainProxy.ts'
import { httpsAgent, type Reach } from '../backends/reach.ts'
import { readBody } from '../backends/readBody.ts'
import { tunnel } from '../backends/tunnel.ts'
import { type Answer, textAnswer } from '../core/answer.ts'
import { identityHeaders, inLowerCase } from '../core/identityHeaders.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { resolveService } from './serviceResolver.ts'
import type { Trust } from './trustConfigMap.ts'

export const apiServices = { group: 'apiregistration.k8s.io', resource: 'apiservices' }

export interface ExtensionServerDeps {
  readonly reader: ObjectReader
  readonly random: Random
  /** An extension server is never this server: requests would go in circles. */
  readonly ownEndpoints: OwnEndpoints
  /** The certificate for extension servers; PEM. Absent: none, and they will not trust the identity headers. */
  readonly clientCertificate?: Pick<BackendTls, 'cert' | 'key'> | undefined
  /** The headers in which extension servers read identities: none of them is forwarded from a client. */
  readonly trust?: Pick<Trust, 'requestHeader'> | undefined
  /** Default true. */
  readonly rejectForwardingRedirects?: boolean | undefined
  /** How connections to addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
  /** Called after a request that no server answered: the APIService may not be available any more. */
  onUnreachable?(name: string): void
}

export interface Fetch {
  readonly path: string
  readonly accept: string
  readonly etag?: string | undefined
  readonly user: UserInfo
  readonly limitBytes: number
  readonly signal: AbortSignal
}

export interface Fetched {
  readonly url: string
  readonly status: number
  readonly contentType: string
  readonly etag: string
  readonly body: Buffer
}

export interface ExtensionServers {
  /** Answers requests below an APIService's group-version. */
  handlerFor(name: string): Handler
  /** Sends a GET to an endpoint of the APIService. @throws Error with Go's text, the URL first */
  fetch(apiService: Frozen<APIService>, wanted: Fetch): Promise<Fetched>
  close(): void
}

const maxIdleConnections = 16
const idleTimeoutMs = 60_000

export function createExtensionServers(deps: ExtensionServerDeps): ExtensionServers {
  const { reader, random, ownEndpoints, reach } = deps
  // One pool: its key is the address, the server name and the certificates.
  const agent = httpsAgent(reach, { keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: idleTimeoutMs })
  const backendFor = (apiService: Frozen<APIService>, path: string, user: UserInfo): Backend => {
    const { service = { namespace: '', name: '' } } = apiService.spec
    const place = resolveService(reader, random, service)
    const seenAs = { 'x-forwarded-host': authority(place), 'x-forwarded-proto': 'https' }
    const mayDial = (address: string) => !ownEndpoints.has(address, place.port)
    return {
      ...place,
      path,
      tls: tlsOf(apiService, deps),
      agent,
      reach,
      mayDial,
      identityHeaders: namesOf(deps.trust),
      hostHeader: authority(place),
      headers: { ...seenAs, ...identityHeaders(user) },
    }
  }
  return {
    handlerFor: (name) => (request) => {
      const apiService = reader.get<KubeObject>(apiServices, '', name) as Frozen<APIService> | undefined
      if (!apiService || !isConditionTrue(apiService.status?.conditions, 'Available')) return unavailable
      const unreachable = () => deps.onUnreachable?.(name)
      return orUnavailable(unreachable, async () => {
        const backend = backendFor(apiService, `${escapePath(request.path)}${querySuffix(request)}`, request.user as UserInfo)
        if (isUpgrade(request)) return tunnel(request, backend)
        const answer = await proxyPlain(request, backend)
        return deps.rejectForwardingRedirects === false ? answer : withoutRedirect(answer)
      })
    },
    async fetch(apiService, { path, accept, etag, user, limitBytes, signal }) {
      const backend = backendFor(apiService, path, user)
      const headers = { accept, ...(etag ? { 'if-none-match': etag } : {}) }
      const url = `https://${authority(backend)}${path}`
      try {
        const response = await sendRequest({ method: 'GET', path, headers, remoteAddress: '', cancellation: { signal } }, backend)
        const body = await readBody(response, limitBytes)
        const text = (name: string) => String(response.headers[name] ?? '')
        return { url, status: response.statusCode ?? 0, contentType: text('content-type'), etag: text('etag'), body }
      } catch (error) {
        const why = signal.aborted ? 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)' : dialErrorText(error, backend)
        throw new Error(`failing or missing response from ${url}: Get ${JSON.stringify(url)}: ${why}`, { cause: error })
      }
    },
    close: () => agent.destroy(),
  }
}

function namesOf(trust: ExtensionServerDeps['trust']): readonly string[] {
  if (!trust) return []
  const { usernameHeaders, uidHeaders, groupHeaders, extraHeaderPrefixes } = inLowerCase(trust.requestHeader)
  return [...usernameHeaders, ...uidHeaders, ...groupHeaders, ...extraHeaderPrefixes]
}

const unavailable = textAnswer(503, 'service unavailable\n', { 'x-content-type-options': 'nosniff' })

/** A client that follows a redirect may send its credentials there (CVE-2022-3172). */
function withoutRedirect(answer: Answer): Answer {
  if (answer.type !== 'stream' || answer.status < 300 || answer.status > 399 || !answer.headers.location) return answer
  answer.body.destroy()
  return textAnswer(502, 'the backend attempted to redirect this request, which is not permitted')
}

async function orUnavailable(unreachable: () => void, answer: () => Promise<Answer> | Answer): Promise<Answer> {
  try {
    return await answer()
  } catch (error) {
    const text = isStatus(error, 'NotFound') ? 'service unavailable' : isStatus(error, 'ServiceUnavailable') ? error.message : undefined
    if (text === undefined) throw error
    unreachable()
    return textAnswer(503, `${text}\n`, { 'x-content-type-options': 'nosniff' })
  }
}

function tlsOf({ spec }: Frozen<APIService>, { clientCertificate }: ExtensionServerDeps): BackendTls {
  const { service, caBundle, insecureSkipTLSVerify } = spec
  return {
    ...clientCertificate,
    serverName: `${service?.name}.${service?.namespace}.svc`,
    ...(caBundle ? { ca: Buffer.from(caBundle, 'base64') } : {}),
    insecure: insecureSkipTLSVerify === true,
  }
}
