/**
 * pods/log, exec, attach and portforward (L3): finds the pod's node and forwards to its kubelet.
 * Upstream: pkg/registry/core/pod/rest (log.go, subresources.go) and pod/strategy.go LogLocation, ExecLocation, PortForwardLocation.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, notFound, StatusError, type StatusReason } from '#api/machinery/status'
import type { Authorizer } from '../../authz/authorizer.ts'
import { mustBeAllowed } from '../../authz/forbidden.ts'
import { type Backend, isUpgrade } from '../../backends/backend.ts'
import { open } from '../../backends/connect.ts'
import { spdyCarrier, wantsTunnel } from '../../backends/spdyCarrier.ts'
import { type Carrier, tunnel } from '../../backends/tunnel.ts'
import type { Answer } from '../../core/answer.ts'
import type { UserInfo } from '../../core/request.ts'
import { truthy } from '../../core/requestInfo.ts'
import type { Scope } from '../scope.ts'
import { connectAdmission } from './connectAdmission.ts'
import { type NodeBackend, type NodeReach, nodeBackend } from './node.ts'

export interface StreamDeps extends NodeReach {
  readonly authorizers: readonly Authorizer[]
}

const pods = { group: '', resource: 'pods' }

export function podStreamHandlers(deps: StreamDeps) {
  return {
    log: { get: (scope: Scope) => log(deps, scope) },
    exec: { connect: (scope: Scope) => remoteCommand(deps, scope, 'exec') },
    attach: { connect: (scope: Scope) => remoteCommand(deps, scope, 'attach') },
    portforward: { connect: (scope: Scope) => portForward(deps, scope) },
  }
}

async function log(deps: StreamDeps, scope: Scope): Promise<Answer> {
  const { request, info } = scope
  const { query } = request
  const pod = await findPod(scope)
  checkLogOptions(query, info.name)
  const container = chooseContainer(pod, query.get('container') ?? '')
  const parameters = new URLSearchParams()
  for (const name of ['previous', 'timestamps', 'follow']) if (truthy(query.get(name))) parameters.set(name, 'true')
  for (const name of ['sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes', 'stream']) {
    const value = query.get(name)
    if (value) parameters.set(name, value)
  }
  if (!pod.spec?.nodeName) return { type: 'bytes', status: 200, contentType: 'text/plain', bytes: Buffer.alloc(0) }
  const path = `/containerLogs/${info.namespace}/${info.name}/${container}${suffix(parameters)}`
  const response = await open(request, nodeOf(deps, scope, pod, path))
  const status = response.statusCode ?? 500
  if (status >= 400) {
    throw kubeletError(status, (await beginningOf(response, maxErrorBytes)).trim())
  }
  return { type: 'stream', status, headers: { 'content-type': 'text/plain' }, body: response }
}

/** Upstream's bound for a kubelet's error text. */
const maxErrorBytes = 50_000

async function beginningOf(body: AsyncIterable<unknown>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk as Buffer)
    length += (chunk as Buffer).length
    if (length >= maxBytes) break
  }
  return Buffer.concat(chunks).toString('utf8', 0, maxBytes)
}

function checkLogOptions(query: URLSearchParams, name: string): void {
  const invalidOption = (field: string, body: string) =>
    new StatusError('Invalid', `PodLogOptions.v1 "" is invalid: ${field}: ${body}`, {
      details: { name, kind: 'PodLogOptions', causes: [{ reason: 'FieldValueInvalid', message: body, field }] },
    })
  for (const field of ['tailLines', 'sinceSeconds', 'limitBytes']) {
    const text = query.get(field)
    if (text === null) continue
    const least = field === 'tailLines' ? 0 : 1
    if (!/^-?\d+$/.test(text) || Number(text) < least) {
      throw invalidOption(field, `Invalid value: ${text}: must be greater than ${least === 0 ? 'or equal to 0' : '0'}`)
    }
  }
}

function kubeletError(code: number, message: string): StatusError {
  const reasons: Readonly<Record<number, StatusReason>> = { 400: 'BadRequest', 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 405: 'MethodNotAllowed' }
  return new StatusError(reasons[code] ?? 'InternalError', message || `the kubelet answered ${code}`, { code })
}

async function remoteCommand(deps: StreamDeps, scope: Scope, what: 'exec' | 'attach'): Promise<Answer> {
  const { request, info } = scope
  const { query } = request
  await mayCreate(deps, scope)
  const pod = await findPod(scope)
  await connectAdmission(scope)
  const container = chooseContainer(pod, query.get('container') ?? '')
  if (!pod.spec?.nodeName) throw badRequest(`pod ${info.name} does not have a host assigned`)
  const parameters = new URLSearchParams()
  // The kubelet's own names for the streams.
  for (const [ours, theirs] of [
    ['stdin', 'input'],
    ['stdout', 'output'],
    ['stderr', 'error'],
    ['tty', 'tty'],
  ] as const) {
    if (truthy(query.get(ours))) parameters.set(theirs, '1')
  }
  if (what === 'exec') for (const part of query.getAll('command')) parameters.append('command', part)
  return upgraded(scope, nodeOf(deps, scope, pod, `/${what}/${info.namespace}/${info.name}/${container}${suffix(parameters)}`))
}

async function portForward(deps: StreamDeps, scope: Scope): Promise<Answer> {
  const { request, info } = scope
  await mayCreate(deps, scope)
  const pod = await findPod(scope)
  await connectAdmission(scope)
  if (!pod.spec?.nodeName) throw badRequest(`pod ${info.name} does not have a host assigned`)
  const parameters = new URLSearchParams()
  const ports = request.query.getAll('ports')
  if (ports.length > 0) parameters.set('port', ports.join(','))
  const backend = nodeOf(deps, scope, pod, `/portForward/${info.namespace}/${info.name}${suffix(parameters)}`)
  return upgraded(scope, backend, wantsTunnel(request) && !backend.takesTunnels ? spdyCarrier(request) : undefined)
}

function upgraded(scope: Scope, backend: Backend, carrier?: Carrier): Answer {
  if (!isUpgrade(scope.request)) throw badRequest('Upgrade request required')
  return tunnel(scope.request, backend, carrier)
}

/** A WebSocket must open with GET, but the user still needs the verb create. */
async function mayCreate(deps: StreamDeps, scope: Scope): Promise<void> {
  const { request, info } = scope
  if (info.verb === 'create') return
  const { apiGroup, apiVersion, namespace, resource, subresource, name, path } = info
  await mustBeAllowed(deps.authorizers, {
    user: request.user as UserInfo,
    verb: 'create',
    isResourceRequest: true,
    path,
    namespace,
    apiGroup,
    apiVersion,
    resource,
    subresource,
    name,
  })
}

async function findPod(scope: Scope): Promise<Frozen<Pod>> {
  const { deps, request, info } = scope
  const wait = deps.registry.cacher.waitUntilCurrent(request.cancellation)
  if (wait) await wait
  const pod = deps.registry.reader.get<KubeObject>(pods, info.namespace, info.name)
  if (!pod) throw notFound(pods, info.name)
  return pod as Frozen<Pod>
}

/** The requested container, or the only one, or the one in the annotation. */
function chooseContainer(pod: Frozen<Pod>, asked: string): string {
  const name = pod.metadata.name ?? ''
  const containers = (pod.spec?.containers ?? []).map((one) => one.name)
  const init = (pod.spec?.initContainers ?? []).map((one) => one.name)
  const ephemeral = (pod.spec?.ephemeralContainers ?? []).map((one) => one.name)
  if (asked !== '') {
    if (![...containers, ...init, ...ephemeral].includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`)
    return asked
  }
  const annotated = pod.metadata.annotations?.['kubectl.kubernetes.io/default-container']
  if (annotated && containers.includes(annotated)) return annotated
  const [only] = containers
  if (only !== undefined && containers.length === 1) return only
  if (only === undefined) throw badRequest(`a container name must be specified for pod ${name}`)
  const initText = init.length > 0 ? ` or one of the init containers: [${init.join(' ')}]` : ''
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${containers.join(' ')}]${initText}`)
}

function nodeOf(deps: StreamDeps, scope: Scope, pod: Frozen<Pod>, path: string): NodeBackend {
  return nodeBackend(scope.deps.registry.reader, pod.spec?.nodeName ?? '', path, deps)
}

function suffix(parameters: URLSearchParams): string {
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
