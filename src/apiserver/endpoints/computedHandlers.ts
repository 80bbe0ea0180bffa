/**
 * Endpoints of computed resources (L3): a create is decoded and admitted, answers of get and list are selected, negotiated and encoded like those of
 * stored resources. They have no resourceVersion and cannot be watched.
 * Upstream: apiserver/pkg/endpoints/handlers get.go, create.go; its refusal of a watch is in installer.go and get.go.
 */
import { builtInResource, type ResourceFacts, resourceKey } from '#api/discovery/resources'
import { strategyFor } from '#api/kinds/index'
import { parseFieldSelector } from '#api/machinery/fieldSelector'
import { parseLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject, ObjectMeta } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import type { Answer } from '../core/answer.ts'
import { decodeBody } from '../core/body.ts'
import type { ComputedKind, ComputedResource, DescribedKind } from '../core/computedResource.ts'
import { inSlices } from '../core/fairLoop.ts'
import { encodingOf, negotiate } from '../core/negotiate.ts'
import type { RequestInfo, ServerRequest, UserInfo } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { admit } from '../registry/admit.ts'
import { attributesOf } from '../registry/writer.ts'
import { checkListOptions } from './listOptions.ts'
import { presentComputedList, presentOne } from './present.ts'
import { methodNotAllowed, pathNotFound } from './router.ts'
import { dryRunOf, type EndpointDeps } from './scope.ts'
import { integerOf, unknownField } from './selectors.ts'

/** Handlers of resources whose kinds are Kubernetes' own, by `group/version/resource`. */
export function computedHandlers(deps: EndpointDeps, resources: readonly ComputedResource[]): ReadonlyMap<string, Handler> {
  return new Map(resources.map((one) => [resourceKey(one.group, one.version, one.resource), computedHandler(deps, one, builtInKind(one))]))
}

function builtInKind({ group, version, resource }: ComputedResource): ComputedKind {
  const facts = builtInResource(group, version, resource)
  const schema = facts && schemaFor(group, version, facts.kind)
  if (!facts || !schema) throw new Error(`no facts for ${group}/${version} ${resource}`)
  return { facts, schema, columns: strategyFor(group, facts.kind)?.columns ?? [] }
}

interface Endpoint {
  readonly deps: EndpointDeps
  readonly kind: ComputedKind | DescribedKind
}

/** Answers the verbs that the resource has a function for; a watch of a listable one is refused in upstream's words. */
export function computedHandler(deps: EndpointDeps, resource: Pick<ComputedResource, 'get' | 'list' | 'create'>, kind: ComputedKind | DescribedKind): Handler {
  const endpoint = { deps, kind }
  return (request) => {
    const { verb, parts, isVerbByPath } = request.info as RequestInfo
    if (verb === 'create' && resource.create && parts.length === 0) return create(endpoint, request, resource.create.bind(resource))
    if (verb === 'get' && resource.get) return get(endpoint, request, resource.get.bind(resource))
    if (verb === 'list' && resource.list) return list(endpoint, request, resource.list.bind(resource))
    // Upstream has no path below /watch/ for what cannot be watched.
    if (isVerbByPath) return pathNotFound
    if (verb === 'watch' && resource.list) throw watchRefused(kind.facts)
    throw methodNotAllowed()
  }
}

function watchRefused({ group, resource }: ResourceFacts): StatusError {
  const details = { ...(group === '' ? {} : { group }), kind: resource }
  return new StatusError('MethodNotAllowed', `watch is not supported on resources of kind "${group === '' ? resource : `${resource}.${group}`}"`, { details })
}

function commonOf(request: ServerRequest) {
  const { namespace } = request.info as RequestInfo
  return { user: request.user as UserInfo, namespace, signal: request.cancellation.signal }
}

async function get({ deps, kind }: Endpoint, request: ServerRequest, compute: NonNullable<ComputedResource['get']>): Promise<Answer> {
  const form = negotiate(request, ['Table', 'PartialObjectMetadata'])
  const object = await compute({ ...commonOf(request), name: (request.info as RequestInfo).name, query: request.query })
  return presentOne(request, form, object, kind, deps.clock.now())
}

async function list({ deps, kind }: Endpoint, request: ServerRequest, compute: NonNullable<ComputedResource['list']>): Promise<Answer> {
  checkListOptions(request.query)
  // A limit may be set; the answer is in one piece all the same, as upstream's from a cache.
  integerOf(request.query, 'limit')
  const form = negotiate(request, ['Table', 'PartialObjectMetadataList'])
  const selects = selection(request)
  const found = await compute({ ...commonOf(request), selects })
  const items: KubeObject[] = []
  await inSlices(found, (object) => {
    if (selects(object.metadata)) items.push(object)
  })
  return presentComputedList(request, form, items, listKindOf(kind), deps.clock.now())
}

function listKindOf(kind: ComputedKind | DescribedKind) {
  if ('listKind' in kind) return kind
  const { group, version, kind: name } = kind.facts
  const listKind = `${name}List`
  const listSchema = schemaFor(group, version, listKind)
  if (!listSchema) throw new Error(`no schema for ${group}/${version} ${listKind}`)
  return { ...kind, listKind, listSchema }
}

/** @throws BadRequest for selectors that do not parse, and for fields other than the metadata's two */
function selection({ query }: ServerRequest): (metadata: Frozen<ObjectMeta>) => boolean {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '')
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '')
  for (const { field } of fields.terms) if (field !== 'metadata.name' && field !== 'metadata.namespace') throw unknownField(field)
  return (metadata) =>
    (labels.isEmpty || labels.matches(metadata.labels)) &&
    (fields.isEmpty || fields.matches((field) => (field === 'metadata.name' ? metadata.name : metadata.namespace) ?? ''))
}

async function create({ deps, kind }: Endpoint, request: ServerRequest, compute: NonNullable<ComputedResource['create']>): Promise<Answer> {
  const { group, version, resource, kind: name } = kind.facts
  const { schema } = kind
  const common = commonOf(request)
  const form = negotiate(request)
  const object: KubeObject & { spec?: object } = await decodeBody({ deps, request }, { group, version, kind: name, schema })
  // Upstream's spec is a struct, not a pointer: a review without a spec has an empty one.
  if (schema.fields?.has('spec')) object.spec ??= {}
  const context = {
    served: { group, version, resource, kind: name, stored: { forms: undefined } },
    subresource: '',
    namespace: common.namespace,
    user: common.user,
    dryRun: dryRunOf(request.query.getAll('dryRun'), 'CreateOptions'),
    warn: (text: string) => request.warnings.push(text),
    cancellation: request.cancellation,
    request,
  }
  const attributes = attributesOf(context, 'CREATE', object.metadata.name ?? '', object, undefined)
  await admit(deps.writer.admission, attributes)
  await deps.writer.admission.validate(attributes)
  const value = await compute({ ...common, object })
  return { type: 'value', status: 201, value, ...encodingOf(form) }
}
