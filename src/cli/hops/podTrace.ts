/** Applies a manifest with its trace, or looks at a pod that is there, waits until the pod runs, and gathers what was recorded on the way (L4). */
import { type ExplainedRequest, explainHeader, type ObjectEvent, objectKey } from '#api/debug/traces'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject, Unstructured } from '#api/machinery/meta'
import { isStatus, StatusError } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { pods } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { createDiscovery } from '#client/discovery/discovery'
import type { HttpTransport } from '#client/httpTransport'
import type { Transport } from '#client/transport'
import { hopsOf, type PodTrace, type Span } from '#trace/hops'
import { skiffWhy } from '#why/answer'
import { CommandError } from '../exitCodes.ts'
import { traceOf, tracesOf } from '../explain/traces.ts'
import { builtInPlace, type Place, pathOf } from './manifest.ts'

export interface TraceDeps {
  readonly transport: HttpTransport
  readonly clock: Clock
  readonly namespace: string
  readonly timeoutMs: number
  /** Takes fields over from other managers. */
  readonly forceConflicts?: boolean | undefined
}

/** After the server ends a watch. */
const watchAgainMs = 1000

export interface Applied {
  readonly object: Frozen<KubeObject>
  readonly place: Place
  readonly request: ExplainedRequest
}

/** Server-side apply with the header that asks for the trace. @throws StatusError what the server refuses with */
export async function apply({ transport, namespace: given, forceConflicts = false }: TraceDeps, object: Unstructured): Promise<Applied> {
  const place = builtInPlace(object.apiVersion ?? '', object.kind ?? '') ?? (await discoveredPlace(transport, object))
  const namespace = object.metadata.namespace ?? given
  const target = `${pathOf(place, namespace, object.metadata.name ?? '')}?fieldManager=skiff&force=${forceConflicts}&fieldValidation=Strict`
  const headers = { 'content-type': 'application/apply-patch+yaml', accept: 'application/json', 'user-agent': 'skiff', [explainHeader]: 'true' }
  const answer = await transport.forward({ method: 'PATCH', target, headers, body: Buffer.from(JSON.stringify(object)) })
  const chunks: Buffer[] = []
  for await (const chunk of answer.body) chunks.push(chunk as Buffer)
  const body = JSON.parse(Buffer.concat(chunks).toString())
  if (answer.status >= 400) throw StatusError.fromStatus(body, answer.status)
  return { object: body, place, request: await traceOf(transport, String(answer.headers['audit-id'])) }
}

async function discoveredPlace(transport: HttpTransport, { apiVersion, kind }: Unstructured): Promise<Place> {
  const { resources } = await createDiscovery(transport).resources()
  const found = resources.find((one) => one.kind === kind && (one.group === '' ? one.version : `${one.group}/${one.version}`) === apiVersion)
  if (!found) throw new CommandError('notFound', `the cluster serves no ${kind} of ${apiVersion}`, { hint: 'look with: kubectl api-resources' })
  return found
}

/** The trace of the first pod of an applied object. */
export async function traceApplied(
  deps: TraceDeps,
  applied: Applied,
  client: { readonly validation: Span; readonly tls?: Span | undefined },
): Promise<PodTrace> {
  const { object, place, request } = applied
  const isPod = place.group === '' && place.resource === 'pods'
  const { namespace = '', name = '', uid = '' } = object.metadata
  if (request.revision === undefined) throw unchanged(object, place)
  const running = await (isPod ? namedRunning(deps, namespace, name) : untilRunning(deps, ownedBy(deps, namespace, uid), `${place.resource}/${name}`))
  return gathered(deps.transport, running, { client, request })
}

/** The trace of a pod that is there, by what was recorded about it. */
export async function tracePod(deps: TraceDeps, name: string): Promise<PodTrace> {
  const pod = await namedRunning(deps, deps.namespace, name)
  return gathered(deps.transport, pod, {})
}

/** The same without waiting: a pod that does not run yet has the hops that are over. @throws StatusError NotFound */
export async function traceNow(transport: Transport, where: { readonly namespace: string; readonly name: string }): Promise<PodTrace> {
  return gathered(transport, await createClient(transport).of(pods).get(where), {})
}

/** @throws StatusError NotFound */
async function namedRunning(deps: TraceDeps, namespace: string, name: string): Promise<Frozen<Pod>> {
  const pod = await createClient(deps.transport).of(pods).get({ namespace, name })
  if (isStarted(pod)) return pod
  return untilRunning(deps, { where: { namespace, fieldSelector: `metadata.name=${name}` }, has: () => true }, `pods/${name}`)
}

function isStarted({ status }: Frozen<Pod>): boolean {
  return status?.phase !== undefined && status.phase !== 'Pending'
}

/** The pods among which one is awaited. */
interface Wanted {
  readonly where: { readonly namespace: string; readonly fieldSelector?: string }
  has(pod: Frozen<Pod>): boolean | Promise<boolean>
}

/** How many owners are climbed: CronJob, Job, pod is the longest chain of built-in kinds. */
const mostOwners = 4

/** The pods below an object. Owners do not change, so each pod's are read once. */
function ownedBy({ transport }: TraceDeps, namespace: string, uid: string): Wanted {
  const known = new Map<string | undefined, boolean>()
  return {
    where: { namespace },
    async has(pod) {
      const isOwned = known.get(pod.metadata.uid) ?? (await ownersOf(transport, pod)).some((owner) => owner.uid === uid)
      known.set(pod.metadata.uid, isOwned)
      return isOwned
    },
  }
}

interface Owner {
  readonly uid: string
  readonly key: string
}

/** The controllers above an object, the nearest first. */
async function ownersOf(transport: Transport, object: Frozen<KubeObject>): Promise<Owner[]> {
  const owners: Owner[] = []
  for (let at: Frozen<KubeObject> | undefined = object; at && owners.length < mostOwners; ) {
    const { namespace = '', ownerReferences = [] } = at.metadata
    const reference = ownerReferences.find(({ controller }) => controller) ?? ownerReferences[0]
    const place = reference && builtInPlace(reference.apiVersion, reference.kind)
    if (!reference || !place) return owners
    owners.push({ uid: reference.uid, key: objectKey(place.resource, place.namespaced ? namespace : '', reference.name) })
    at = await objectAt(transport, pathOf(place, namespace, reference.name))
  }
  return owners
}

async function objectAt(transport: Transport, path: string): Promise<Frozen<KubeObject> | undefined> {
  try {
    return (await transport.request({ method: 'GET', path })).body as Frozen<KubeObject>
  } catch (error) {
    if (isStatus(error, 'NotFound') || isStatus(error, 'Forbidden')) return undefined
    throw error
  }
}

/** Watches until the newest of the wanted pods runs. */
async function untilRunning(deps: TraceDeps, wanted: Wanted, what: string): Promise<Frozen<Pod>> {
  using limit = deadlineScope({ clock: deps.clock, ms: deps.timeoutMs })
  let newest: Frozen<Pod> | undefined
  try {
    for await (const { pod, isDeleted } of podStates(deps, wanted.where, limit.signal)) {
      if (isDeleted) {
        if (pod.metadata.uid === newest?.metadata.uid) newest = undefined
        continue
      }
      if (isOlder(pod, newest) || !(await wanted.has(pod))) continue
      newest = pod
      if (isStarted(pod)) return pod
    }
  } catch (error) {
    if (!limit.signal.aborted) throw error
  }
  throw notRunning(what, newest, deps.timeoutMs)
}

function isOlder({ metadata }: Frozen<Pod>, other: Frozen<Pod> | undefined): boolean {
  return (metadata.creationTimestamp ?? '') < (other?.metadata.creationTimestamp ?? '')
}

interface PodState {
  readonly pod: Frozen<Pod>
  readonly isDeleted?: boolean
}

/** The pods as they are, the newest first, then their changes. */
async function* podStates({ transport, clock }: TraceDeps, where: Wanted['where'], signal: AbortSignal): AsyncGenerator<PodState> {
  const client = createClient(transport).of(pods)
  for (; !signal.aborted; await clock.sleep(watchAgainMs, signal)) {
    const { items, metadata } = await client.list({ ...where, signal })
    for (const pod of [...items].sort((one, other) => (other.metadata.creationTimestamp ?? '').localeCompare(one.metadata.creationTimestamp ?? '')))
      yield { pod }
    try {
      for await (const batch of client.watch({ ...where, resourceVersion: metadata.resourceVersion, signal }))
        for (const { type, object } of batch) if (type !== 'BOOKMARK') yield { pod: object, isDeleted: type === 'DELETED' }
    } catch (error) {
      if (!isStatus(error, 'Expired')) throw error
    }
  }
}

/** The API server stores nothing when an apply changes nothing: no controller acts on it. */
function unchanged({ kind, metadata: { namespace, name = '' } }: Frozen<KubeObject>, { resource }: Place): CommandError {
  const place = namespace === undefined ? '' : ` -n ${namespace}`
  const restart = ['deployments', 'statefulsets', 'daemonsets'].includes(resource) ? `; for new pods: kubectl rollout restart ${resource}/${name}${place}` : ''
  return new CommandError('notFound', `${kind} ${name} is unchanged: the apply changed nothing, so no pod comes of it`, {
    hint: `for a pod that is there: skiff trace ${resource === 'pods' ? name : 'POD'}${place}${restart}`,
  })
}

function notRunning(what: string, pod: Frozen<Pod> | undefined, timeoutMs: number): CommandError {
  const seconds = timeoutMs / 1000
  if (!pod) return new CommandError('timeout', `${what} has no pod after ${seconds} s`, { hint: `skiff explain ${what} shows what its controller did` })
  return new CommandError('timeout', `pod ${pod.metadata.name} does not run after ${seconds} s`, {
    hint: skiffWhy('pod', pod.metadata.name ?? '', pod.metadata.namespace),
  })
}

async function gathered(
  transport: Transport,
  pod: Frozen<Pod>,
  known: { readonly client?: { readonly validation: Span; readonly tls?: Span | undefined }; readonly request?: ExplainedRequest },
): Promise<PodTrace> {
  const { namespace = '', name = '' } = pod.metadata
  const about = await tracesOf(transport, { object: objectKey('pods', namespace, name), changes: '1' })
  const owners = await ownersOf(transport, pod)
  const others = await Promise.all(owners.map(({ key }) => tracesOf(transport, { object: key, changes: '1' })))
  const ofNode = about.events.some(({ component }) => component === 'kubelet') ? [] : await nodeEvents(transport, pod)
  const events = [...about.events, ...ofNode, ...others.flatMap(({ events }) => events)].sort((one, other) => one.atMs - other.atMs)
  const creations = about.requests.filter(
    ({ verb, code, object }) => code < 300 && object?.subresource === undefined && (verb === 'create' || verb === 'patch'),
  )
  const created = creations.at(-1)
  const request = known.request ?? created
  const podRequest = owners.length > 0 ? created : undefined
  return hopsOf({
    pod,
    events: sinceRequest(events, request),
    ...(known.client ? { client: known.client } : {}),
    ...(request ? { request } : {}),
    ...(podRequest ? { podRequest } : {}),
  })
}

/** The agent of a real node has its own part of the trace, and gives it out as a view of the node. Without the right to read the view, the trace has no kubelet events. */
async function nodeEvents(transport: Transport, { metadata: { namespace, name }, spec: { nodeName } }: Frozen<Pod>): Promise<readonly ObjectEvent[]> {
  if (!nodeName) return []
  const path = `/apis/node.skiff.dev/v1alpha1/podtraces/${encodeURIComponent(nodeName)}`
  try {
    const { body } = await transport.request({ method: 'GET', path, query: { pod: `${namespace}/${name}` } })
    return (body as { readonly events?: readonly ObjectEvent[] }).events ?? []
  } catch (error) {
    if (isStatus(error, 'Forbidden') || isStatus(error, 'NotFound')) return []
    throw error
  }
}

/** Events of an earlier life of the name are not part of this one. */
function sinceRequest(events: readonly ObjectEvent[], request: ExplainedRequest | undefined): readonly ObjectEvent[] {
  return request ? events.filter(({ atMs }) => atMs >= request.atMs) : events
}
