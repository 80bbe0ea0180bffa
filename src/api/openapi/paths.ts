/**
 * The operations of the API, neutral to the OpenAPI version (L1): every path that a resource's facts imply, with upstream's operation
 * identifiers, actions, parameters and media types. ./v2.ts and ./v3.ts write them down.
 * Upstream: apiserver/pkg/endpoints/installer.go (v1.36).
 */
import { bareMap } from '#base/bareMap'
import type { ResourceFacts, SubresourceFacts } from '../discovery/resources.ts'
import type { GroupVersionKind } from '../machinery/meta.ts'
import { definitionOf } from '../schema/builtIn.ts'

export type Method = 'get' | 'put' | 'post' | 'patch' | 'delete' | 'head' | 'options'

/** A definition's name, or 'string' for plain text. */
export type BodyType = string

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: string
}

export interface Operation {
  readonly method: Method
  readonly id: string
  readonly action: string | undefined
  readonly kind: GroupVersionKind | undefined
  readonly description: string
  readonly tag: string
  readonly consumes: readonly string[]
  readonly produces: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly body?: { readonly type: BodyType; readonly required: boolean } | undefined
  /** Status code → body; undefined: no body. */
  readonly responses: Readonly<Record<string, BodyType | undefined>>
}

export interface PathItem {
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly operations: readonly Operation[]
}

/** Finds the definition's name of a kind; built-in ones are known, CRDs bring theirs. */
export type DefinitionOf = (group: string, version: string, kind: string) => string | undefined

const metaV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const objectTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf', 'application/cbor']
const watchTypes = [...objectTypes, 'application/json;stream=watch', 'application/vnd.kubernetes.protobuf;stream=watch', 'application/cbor-seq']
const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/apply-patch+cbor',
]
const query = (name: string, type = 'string'): Parameter => ({ name, in: 'query', type })
const inPath = (name: string): Parameter => ({ name, in: 'path', type: 'string' })

const listParameters = [
  query('allowWatchBookmarks', 'boolean'),
  query('continue'),
  query('fieldSelector'),
  query('labelSelector'),
  query('limit', 'integer'),
  query('resourceVersion'),
  query('resourceVersionMatch'),
  query('sendInitialEvents', 'boolean'),
  query('shardSelector'),
  query('timeoutSeconds', 'integer'),
  query('watch', 'boolean'),
]
const writeParameters = [query('dryRun'), query('fieldManager'), query('fieldValidation')]
const deleteParameters = [
  query('dryRun'),
  query('gracePeriodSeconds', 'integer'),
  query('ignoreStoreReadErrorWithClusterBreakingPotential', 'boolean'),
  query('orphanDependents', 'boolean'),
  query('propagationPolicy'),
]
const collectionParameters = [...deleteParameters, ...listParameters.filter(({ name }) => name !== 'allowWatchBookmarks' && name !== 'watch')].sort(byName)

function byName(a: Parameter, b: Parameter): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/** 'core' or 'rbacAuthorization': the group in tags; capitalised it is part of operation identifiers. */
function groupTag(group: string): string {
  const parts = (group === '' ? 'core' : group.replace(/\.k8s\.io$/, '')).split(/[.-]/)
  return parts.map((part, index) => (index === 0 ? part : capital(part))).join('')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Everything that the helpers below need to know of a resource. */
interface Context {
  readonly facts: ResourceFacts
  readonly definitionOf: DefinitionOf
  /** 'CoreV1'. */
  readonly id: string
  readonly tag: string
  /** '/api/v1' or '/apis/apps/v1'. */
  readonly root: string
  readonly kind: GroupVersionKind
  readonly scope: 'Namespaced' | ''
}

/** All paths of some resources, one resource after the other, with the discovery paths of their group-versions. `groups` are named apart: /apis/<g>/. */
export function* pathsOf(resources: Iterable<ResourceFacts>, lookUp: DefinitionOf = definitionOf): Generator<PathItem> {
  const seen = new Set<string>()
  for (const facts of resources) {
    const context = contextOf(facts, lookUp)
    if (!seen.has(context.root) && !facts.custom) {
      seen.add(context.root)
      yield discoveryPath(`${context.root}/`, `get${context.id}APIResources`, context.tag, 'get available resources', `${metaV1}.APIResourceList`, objectTypes)
    }
    const paths = resourcePaths(context)
    yield* facts.custom ? paths.map(withCustomTypes) : paths
  }
}

const customTypes = objectTypes.slice(0, 2)
const customPatchTypes = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']

/** Custom resources have no protobuf form and no strategic merge. */
function withCustomTypes(item: PathItem): PathItem {
  const operations = item.operations.map((operation) => ({
    ...operation,
    produces: customTypes,
    consumes: operation.method === 'patch' ? customPatchTypes : customTypes,
  }))
  return { ...item, operations }
}

/** /apis/<group>/ (or /api/ for core). */
export function groupPath(group: string): PathItem {
  const types = objectTypes.slice(0, 3)
  if (group === '') return discoveryPath('/api/', 'getCoreAPIVersions', 'core', 'get available API versions', `${metaV1}.APIVersions`, types)
  const tag = groupTag(group)
  return discoveryPath(`/apis/${group}/`, `get${capital(tag)}APIGroup`, tag, 'get information of a group', `${metaV1}.APIGroup`, types)
}

/** /apis/, /version/, and what others need to check the tokens of service accounts. */
export function generalPaths(): PathItem[] {
  return [
    discoveryPath('/apis/', 'getAPIVersions', 'apis', 'get available API versions', `${metaV1}.APIGroupList`, objectTypes.slice(0, 3)),
    discoveryPath('/version/', 'getCodeVersion', 'version', 'get the version of this server', 'io.k8s.apimachinery.pkg.version.Info', ['application/json']),
    issuerPath('/.well-known/openid-configuration/', 'OpenIDConfiguration', 'WellKnown', 'get how the issuer of tokens is found', 'application/json'),
    issuerPath('/openid/v1/jwks/', 'OpenIDKeyset', 'openid', 'get the public keys of the issuer of tokens', 'application/jwk-set+json'),
  ]
}

function issuerPath(path: string, what: string, tag: string, description: string, type: string): PathItem {
  const { operations, ...item } = discoveryPath(path, `getServiceAccountIssuer${what}`, tag, description, 'string', [type])
  return { ...item, operations: operations.map((operation) => ({ ...operation, consumes: [] })) }
}

function discoveryPath(path: string, id: string, tag: string, description: string, answer: string, types: readonly string[]): PathItem {
  const operation: Operation = {
    method: 'get',
    id,
    action: undefined,
    kind: undefined,
    description,
    tag,
    consumes: types,
    produces: types,
    parameters: [],
    responses: { 200: answer, 401: undefined },
  }
  return { path, parameters: [], operations: [operation] }
}

function contextOf(facts: ResourceFacts, lookUp: DefinitionOf): Context {
  const tag = groupTag(facts.group)
  return {
    facts,
    definitionOf: lookUp,
    id: `${capital(tag)}${capital(facts.version)}`,
    tag: `${tag}_${facts.version}`,
    root: facts.group === '' ? `/api/${facts.version}` : `/apis/${facts.group}/${facts.version}`,
    kind: { group: facts.group, version: facts.version, kind: facts.kind },
    scope: facts.namespaced ? 'Namespaced' : '',
  }
}

function resourcePaths(context: Context): PathItem[] {
  const { facts, root } = context
  const { resource, namespaced, verbs } = facts
  const base = namespaced ? `${root}/namespaces/{namespace}/${resource}` : `${root}/${resource}`
  const place = namespaced ? [inPath('namespace')] : []
  const items: PathItem[] = []
  const collection = collectionOperations(context)
  if (collection.length > 0) items.push(hoisted({ path: base, parameters: [...place, query('pretty')], operations: collection }))
  if (namespaced && verbs.includes('list')) {
    const everywhere = listOperation(context, `list${context.id}${facts.kind}ForAllNamespaces`)
    items.push(hoisted({ path: `${root}/${resource}`, parameters: [query('pretty')], operations: [everywhere] }))
  }
  const single = itemOperations(context)
  if (single.length > 0) items.push(hoisted({ path: `${base}/{name}`, parameters: [inPath('name'), ...place, query('pretty')], operations: single }))
  if (verbs.includes('watch') && !facts.custom) items.push(...watchPaths(context))
  for (const sub of facts.subresources) items.push(...subresourcePaths(context, sub, `${base}/{name}/${sub.name}`, place))
  return items
}

/** A path with one operation carries that operation's parameters itself, as upstream's generator writes it. */
function hoisted(item: PathItem): PathItem {
  const [only] = item.operations
  if (item.operations.length !== 1 || only === undefined) return item
  return { path: item.path, parameters: [...item.parameters, ...only.parameters].sort(byName), operations: [{ ...only, parameters: [] }] }
}

function make(context: Context, method: Method, id: string, action: string, description: string, rest: Partial<Operation>): Operation {
  return {
    method,
    id,
    action,
    kind: context.kind,
    description,
    tag: context.tag,
    consumes: ['*/*'],
    produces: objectTypes,
    parameters: [],
    responses: {},
    ...rest,
  }
}

function nameOf(context: Context, kind: GroupVersionKind = context.kind): string {
  return context.definitionOf(kind.group, kind.version, kind.kind) ?? `${metaV1}.Status`
}

function listOperation(context: Context, id: string): Operation {
  const { kind, verbs } = context.facts
  const list = nameOf(context, { ...context.kind, kind: `${kind}List` })
  const what = verbs.includes('watch') ? `list or watch objects of kind ${kind}` : `list objects of kind ${kind}`
  return make(context, 'get', id, 'list', what, { produces: watchTypes, parameters: listParameters, responses: { 200: list, 401: undefined } })
}

function collectionOperations(context: Context): Operation[] {
  const { facts, id, scope } = context
  const name = `${scope}${facts.kind}`
  const operations: Operation[] = []
  if (facts.verbs.includes('deletecollection')) {
    operations.push(
      make(context, 'delete', `delete${id}Collection${name}`, 'deletecollection', `delete collection of ${facts.kind}`, {
        parameters: collectionParameters,
        body: { type: `${metaV1}.DeleteOptions`, required: false },
        responses: { 200: `${metaV1}.Status`, 401: undefined },
      }),
    )
  }
  if (facts.verbs.includes('list')) operations.push(listOperation(context, `list${id}${name}`))
  if (facts.verbs.includes('create')) operations.push(createOperation(context, `create${id}${name}`, `create ${article(facts.kind)}`, nameOf(context)))
  return operations
}

function article(kind: string): string {
  return `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind}`
}

function createOperation(context: Context, id: string, description: string, type: string): Operation {
  return make(context, 'post', id, 'post', description, {
    parameters: writeParameters,
    body: { type, required: true },
    responses: { 200: type, 201: type, 202: type, 401: undefined },
  })
}

function readOperation(context: Context, id: string, description: string, type: string): Operation {
  return make(context, 'get', id, 'get', description, { responses: { 200: type, 401: undefined } })
}

function replaceOperation(context: Context, id: string, description: string, type: string): Operation {
  return make(context, 'put', id, 'put', description, {
    parameters: writeParameters,
    body: { type, required: true },
    responses: { 200: type, 201: type, 401: undefined },
  })
}

function patchOperation(context: Context, id: string, description: string, type: string): Operation {
  return make(context, 'patch', id, 'patch', description, {
    consumes: patchTypes,
    parameters: [...writeParameters, query('force', 'boolean')],
    body: { type: `${metaV1}.Patch`, required: true },
    responses: { 200: type, 201: type, 401: undefined },
  })
}

function itemOperations(context: Context): Operation[] {
  const { facts, id, scope } = context
  const name = `${id}${scope}${facts.kind}`
  const type = nameOf(context)
  const operations: Operation[] = []
  if (facts.verbs.includes('delete')) {
    const answer = facts.returnsDeletedObject ? type : `${metaV1}.Status`
    operations.push(
      make(context, 'delete', `delete${name}`, 'delete', `delete ${article(facts.kind)}`, {
        parameters: deleteParameters,
        body: { type: `${metaV1}.DeleteOptions`, required: false },
        responses: { 200: answer, 202: answer, 401: undefined },
      }),
    )
  }
  if (facts.verbs.includes('get')) operations.push(readOperation(context, `read${name}`, `read the specified ${facts.kind}`, type))
  if (facts.verbs.includes('patch')) operations.push(patchOperation(context, `patch${name}`, `partially update the specified ${facts.kind}`, type))
  if (facts.verbs.includes('update')) operations.push(replaceOperation(context, `replace${name}`, `replace the specified ${facts.kind}`, type))
  return operations
}

/** The deprecated /watch/ forms. */
function watchPaths(context: Context): PathItem[] {
  const { facts, root, id, scope } = context
  const { resource, kind, namespaced } = facts
  const place = namespaced ? [inPath('namespace')] : []
  const base = namespaced ? `${root}/watch/namespaces/{namespace}/${resource}` : `${root}/watch/${resource}`
  const watch = (path: string, operationId: string, action: string, more: readonly Parameter[]): PathItem => ({
    path,
    parameters: [...listParameters, query('pretty'), ...more].sort(byName),
    operations: [
      make(context, 'get', operationId, action, `watch ${kind}; deprecated: list with the watch parameter instead`, {
        produces: watchTypes,
        responses: { 200: `${metaV1}.WatchEvent`, 401: undefined },
      }),
    ],
  })
  const items = [watch(base, `watch${id}${scope}${kind}List`, 'watchlist', place)]
  if (facts.verbs.includes('get')) items.push(watch(`${base}/{name}`, `watch${id}${scope}${kind}`, 'watch', [inPath('name'), ...place]))
  if (namespaced) items.push(watch(`${root}/watch/${resource}`, `watch${id}${kind}ListForAllNamespaces`, 'watchlist', []))
  return items
}

const connectMethods: Readonly<Record<string, readonly Method[]>> = bareMap({
  create: ['post'],
  get: ['get'],
  delete: ['delete'],
  patch: ['patch'],
  update: ['put'],
})

function subresourcePaths(outer: Context, sub: SubresourceFacts, path: string, place: readonly Parameter[]): PathItem[] {
  const context: Context = { ...outer, kind: sub.kind }
  const own = sub.parameters.map(({ name, type }) => query(name, type))
  if (sub.connect) return connectPaths(context, sub, path, place, own)
  const name = `${outer.id}${outer.scope}${outer.facts.kind}${capital(sub.name)}`
  const type = nameOf(context)
  const owner = outer.facts.kind
  const operations: Operation[] = []
  if (sub.verbs.includes('get')) operations.push(subresourceRead(context, sub, name, owner, type))
  if (sub.verbs.includes('patch')) operations.push(patchOperation(context, `patch${name}`, `partially update ${sub.name} of the specified ${owner}`, type))
  if (sub.verbs.includes('create')) operations.push(createOperation(context, `create${name}`, `create ${sub.name} of ${article(owner)}`, type))
  if (sub.verbs.includes('update')) operations.push(replaceOperation(context, `replace${name}`, `replace ${sub.name} of the specified ${owner}`, type))
  return [hoisted({ path, parameters: [inPath('name'), ...place, query('pretty'), ...own].sort(byName), operations })]
}

function subresourceRead(context: Context, sub: SubresourceFacts, name: string, owner: string, type: string): Operation {
  const read = readOperation(context, `read${name}`, `read ${sub.name} of the specified ${owner}`, type)
  return sub.name === 'log' ? { ...read, produces: ['text/plain', ...objectTypes], responses: { 200: 'string', 401: undefined } } : read
}

function connectPaths(context: Context, sub: SubresourceFacts, path: string, place: readonly Parameter[], own: readonly Parameter[]): PathItem[] {
  const { facts, id, scope } = context
  const methods = sub.verbs.flatMap((verb) => connectMethods[verb] ?? [])
  // Proxies take every method.
  const all: readonly Method[] = sub.name === 'proxy' ? [...methods, 'head', 'options'] : methods
  const operations = (suffix: string) =>
    [...all].sort().map((method) =>
      make(
        context,
        method,
        `connect${id}${capital(method)}${scope}${facts.kind}${capital(sub.name)}${suffix}`,
        'connect',
        `connect ${method.toUpperCase()} requests to ${sub.name} of ${facts.kind}`,
        {
          produces: ['*/*'],
          responses: { 200: 'string', 401: undefined },
        },
      ),
    )
  const parameters = [inPath('name'), ...place, ...own].sort(byName)
  const items: PathItem[] = [{ path, parameters, operations: operations('') }]
  if (sub.name === 'proxy') items.push({ path: `${path}/{path}`, parameters: [...parameters, inPath('path')], operations: operations('WithPath') })
  return items
}
