/**
 * /skiff/traces (L3): `GET /skiff/traces/ID` is one request, `GET /skiff/traces?last=1|object=pods/ns/name|user=NAME&limit=N&changes=1` several,
 * `GET /skiff/traces?since=MS` what ended after a time, and `GET /skiff/traces?all=1` all that is kept, for a bundle. `POST /skiff/traces/rules` asks for records.
 * Everyone who is authenticated sees the requests they made; those of others, and rules about them, need a
 * role that names the path. What components did about an object is shown to users who may get the object.
 */
import { type ExplainedRequest, isTracesPath, objectKey, type TracedRequest, type TraceList, type TraceRule, tracesPath } from '#api/debug/traces'
import { badRequest, notFound, StatusError } from '#api/machinery/status'
import type { TraceBook } from '#trace/traceBook'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import { forbiddenError } from '../../authz/forbidden.ts'
import { authorize } from '../../authz/union.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { Page } from '../../core/page.ts'
import type { ServerRequest, UserInfo } from '../../core/request.ts'
import { adviceFor } from './advice.ts'
import { adviceReader } from './adviceReader.ts'

export interface TracesPageDeps {
  readonly book: TraceBook
  readonly reader: Pick<ObjectReader, 'get' | 'list'>
  readonly authorizers: readonly Authorizer[]
}

const rulesPath = `${tracesPath}/rules`
const mostListed = 100
const mostListedEvents = 1000
const longestRuleSeconds = 3600
/** A sample of this size costs a busy server next to nothing. */
const mostPerSecond = 50
const mostBodyBytes = 4096
const mostText = 512
const reads: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

/** Lets authenticated users reach the page, which then shows them their own requests. An authorizer that denies the path comes first. */
export const ownTracesAuthorizer: Authorizer = {
  name: 'ownTraces',
  authorize: ({ isResourceRequest, path, user, verb }) =>
    !isResourceRequest && isTracesPath(path) && user.groups.includes('system:authenticated') && (verb === 'get' || (verb === 'post' && path === rulesPath))
      ? { decision: 'allow', reason: 'everyone may read the traces of their own requests' }
      : { decision: 'noOpinion', reason: '' },
}

export function tracesPage(deps: TracesPageDeps): Page {
  return {
    prefix: tracesPath,
    acceptsPost: true,
    async handle(request) {
      if (request.method === 'POST') return request.path === rulesPath ? value(await addRule(deps, request)) : undefined
      if (request.path === tracesPath) return value(await listing(request.query)(deps, request))
      const id = request.path.slice(tracesPath.length + 1)
      if (id.includes('/')) return undefined
      return value(await one(deps, request, id))
    },
  }
}

function value(found: unknown) {
  return { type: 'value', status: 200, value: found } as const
}

async function one(deps: TracesPageDeps, request: ServerRequest, id: string): Promise<ExplainedRequest> {
  const short = id.slice(0, 64)
  const seesAll = await mayReadAll(deps, request)
  const [found] = deps.book.requests((made) => made.id === short && (seesAll || isOwn(request, made)))
  // The same answer as for another user's request: it does not reveal whether there is one.
  if (!found) throw notFound({ group: 'skiff.dev', resource: 'traces' }, short)
  return explained(deps, request, found)
}

/** Which list the query asks for. */
function listing(query: URLSearchParams): (deps: TracesPageDeps, request: ServerRequest) => Promise<TraceList> {
  if (query.has('all')) return all
  return query.has('since') ? recent : list
}

async function list(deps: TracesPageDeps, request: ServerRequest): Promise<TraceList> {
  const { query } = request
  const [object, user] = [query.get('object'), query.get('user')]
  if ((object ?? '').length > mostText || (user ?? '').length > mostText) throw badRequest(`object, user: at most ${mostText} characters`)
  const wanted = Number(query.get('limit') ?? mostListed)
  if (!Number.isInteger(wanted) || wanted < 1) throw badRequest('limit: expected a whole number from 1')
  const limit = query.has('last') ? 1 : Math.min(wanted, mostListed)
  const seesAll = await mayReadAll(deps, request)
  // Without a question about an object or another user it is about the caller's own requests.
  // `changes=1` drops successful reads before the limit applies: clients that poll an object would fill it.
  const isWanted = (made: TracedRequest) => !query.has('changes') || !reads.has(made.verb) || made.code >= 400
  const isAsked = (made: TracedRequest) =>
    isWanted(made) && (object === null ? isBy(made, user ?? request.user?.name) : keyOf(made) === object && (user === null || isBy(made, user)))
  const found = deps.book.requests((made) => isAsked(made) && (seesAll || isOwn(request, made)))
  const requests: ExplainedRequest[] = []
  for (const made of found.slice(0, limit)) requests.push(await explained(deps, request, made))
  const events = object === null || !(seesAll || (await mayGet(deps, request, object))) ? [] : deps.book.events(new Set([object]))
  return { requests, events: events.slice(-mostListedEvents), truncated: found.length > limit || events.length > mostListedEvents }
}

async function all(deps: TracesPageDeps, request: ServerRequest): Promise<TraceList> {
  if (!(await mayReadAll(deps, request))) throw forbiddenError(pathAttributes(request), 'the traces of all users need a role for this path')
  return { requests: deps.book.requests(() => true), events: deps.book.events(), truncated: false }
}

/** What ended since a time, the newest: for a reader who looks at the whole server. Without a role for the path it holds the caller's own requests, and no events. */
async function recent(deps: TracesPageDeps, request: ServerRequest): Promise<TraceList> {
  const { book } = deps
  const sinceMs = Number(request.query.get('since'))
  if (!(sinceMs >= 0)) throw badRequest('since: expected milliseconds since 1970')
  // Before the look: what ends meanwhile is part of the next answer.
  const nowMs = book.now()
  const seesAll = await mayReadAll(deps, request)
  const requests = book.requests((made) => made.atMs + made.durationMs > sinceMs && (seesAll || isOwn(request, made)))
  const events = seesAll ? book.eventsSince(sinceMs) : []
  const sampled = seesAll ? book.sampled : undefined
  return {
    requests: requests.slice(0, mostListed),
    events: events.slice(-mostListedEvents),
    truncated: requests.length > mostListed || events.length > mostListedEvents,
    nowMs,
    ...(sampled ? { sampled } : {}),
  }
}

async function explained({ reader, authorizers }: TracesPageDeps, request: ServerRequest, made: TracedRequest): Promise<ExplainedRequest> {
  const advice = await adviceFor(made, { reader: adviceReader(reader, authorizers, request.user as UserInfo), authorizers })
  return advice ? { ...made, advice } : made
}

/** Requests that were made as this user, and those in which this user impersonated another. A proxy that impersonates users shows each only their own. */
function isOwn(request: ServerRequest, { user, as = user }: TracedRequest): boolean {
  const isItself = request.user === request.originalUser
  return as === request.user?.name || (isItself && user === request.user?.name)
}

function isBy({ user, as }: TracedRequest, name: string | undefined): boolean {
  return user === name || as === name
}

function keyOf({ object }: TracedRequest): string | undefined {
  return object && objectKey(object.resource, object.namespace, object.name)
}

async function addRule(deps: TracesPageDeps, request: ServerRequest): Promise<TraceRule> {
  const rule = await readRule(request)
  // A user with the right to impersonate could make a rule for each of many users.
  const isOwnRule = rule.object === undefined && rule.perSecond === undefined && rule.user === request.user?.name && request.user === request.originalUser
  if (!isOwnRule && !(await mayReadAll(deps, request)))
    throw forbiddenError(pathAttributes(request), 'a rule about objects, other users or all of them needs a role for this path')
  const refused = deps.book.addRule(rule, isOwnRule)
  if (refused !== undefined) throw new StatusError('TooManyRequests', refused)
  return rule
}

async function readRule(request: ServerRequest): Promise<TraceRule> {
  const body = await request.readBody(mostBodyBytes)
  const given = body.type === 'value' ? body.value : parsed(body.bytes)
  const { user, object, perSecond, seconds = 60 } = (given ?? {}) as Partial<Record<keyof TraceRule, unknown>>
  if (!isText(user) || !isText(object)) throw badRequest(`user, object: expected texts of at most ${mostText} characters`)
  if ([user, object, perSecond].filter((one) => one !== undefined).length !== 1) throw badRequest('expected one of user, object and perSecond')
  if (perSecond !== undefined && !isRate(perSecond)) throw badRequest(`perSecond: expected a whole number from 1 to ${mostPerSecond}`)
  if (object !== undefined && !/^[^/]+(\/[^/]+){1,2}$/.test(object))
    throw badRequest('object: expected RESOURCE/NAMESPACE/NAME or RESOURCE/NAME, such as pods/default/web')
  if (typeof seconds !== 'number' || !(seconds >= 1) || seconds > longestRuleSeconds) throw badRequest(`seconds: expected 1 to ${longestRuleSeconds}`)
  return {
    ...(user === undefined ? {} : { user }),
    ...(object === undefined ? {} : { object }),
    ...(perSecond === undefined ? {} : { perSecond }),
    seconds,
  }
}

function isRate(given: unknown): given is number {
  return Number.isInteger(given) && (given as number) >= 1 && (given as number) <= mostPerSecond
}

function isText(given: unknown): given is string | undefined {
  return given === undefined || (typeof given === 'string' && given !== '' && given.length <= mostText)
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw badRequest('the body is not JSON')
  }
}

/** By the server's own authorizers, which do not know the exception for one's own requests. */
async function mayReadAll({ authorizers }: TracesPageDeps, request: ServerRequest): Promise<boolean> {
  return (await authorize(authorizers, pathAttributes(request))).decision === 'allow'
}

function pathAttributes(request: ServerRequest): AuthorizationAttributes {
  return { ...noResource, user: request.user as UserInfo, verb: request.method.toLowerCase(), isResourceRequest: false, path: request.path }
}

const noResource = { namespace: '', apiGroup: '', apiVersion: '', resource: '', subresource: '', name: '' }

async function mayGet({ authorizers }: TracesPageDeps, request: ServerRequest, object: string): Promise<boolean> {
  const parts = object.split('/')
  const [resource = '', namespace = '', name = ''] = parts.length === 3 ? parts : [parts[0], '', parts[1]]
  // The key has no API group, so only pods can be authorized here; other kinds need the role for the path.
  if (resource !== 'pods') return false
  const attributes = {
    ...noResource,
    user: request.user as UserInfo,
    verb: 'get',
    isResourceRequest: true,
    path: '',
    apiVersion: 'v1',
    resource,
    namespace,
    name,
  }
  return (await authorize(authorizers, attributes)).decision === 'allow'
}
