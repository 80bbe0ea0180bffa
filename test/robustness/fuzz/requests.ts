/** Random requests against everything that discovery names: mostly almost right, in path, query, headers or body. */
import { builtInResources, type ResourceFacts } from '#api/discovery/resources'
import { toYaml } from '#api/machinery/yaml'
import { encodeProtobuf, protobufMediaType } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import type { Schema } from '#api/schema/schema'
import { leastOf, nameFor } from '../../conformance/resourceTable.ts'
import type { Chance } from './chance.ts'
import { mutate, oddValue, randomValue, word } from './values.ts'

export interface FuzzRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
  /** The request is proxied to a backend that does not exist: the error is not the server's. */
  readonly proxied: boolean
}

type Verb = 'create' | 'get' | 'list' | 'watch' | 'update' | 'patch' | 'delete' | 'deletecollection'
const methods: Readonly<Record<Verb, string>> = {
  create: 'POST',
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
}
const verbs: readonly (readonly [number, Verb])[] = [
  ...([
    [30, 'create'],
    [8, 'get'],
    [10, 'list'],
    [4, 'watch'],
    [14, 'update'],
    [24, 'patch'],
    [8, 'delete'],
    [1, 'deletecollection'],
  ] as const),
]
const onObject: ReadonlySet<Verb> = new Set(['get', 'update', 'patch', 'delete'])
const patchTypes = ['application/json-patch+json', 'application/merge-patch+json', 'application/strategic-merge-patch+json', 'application/apply-patch+yaml']
const accepts = [
  ...['application/json', 'application/yaml', protobufMediaType, '*/*', 'text/html', '', `${protobufMediaType},application/json`],
  ...['application/json;as=Table;v=v1;g=meta.k8s.io', 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json'],
  ...[`${protobufMediaType};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`, 'application/json;q=x;;=,,', 'application/json;stream=watch'],
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
]
const otherPaths = [
  ...['/', '/api', '/apis', '/api/v1', '/apis/apps', '/apis/apps/v1', '/version', '/livez', '/readyz', '/healthz', '/metrics', '/openapi/v2'],
  ...['/openapi/v3', '/openapi/v3/api/v1', '/.well-known/openid-configuration', '/openid/v1/jwks', '/livez/ping', '/apis/x.example.com/v1/things'],
]
const resources = builtInResources()

export function randomRequest(chance: Chance): FuzzRequest {
  if (chance.once(25))
    return { method: chance.pick(['GET', 'GET', 'POST', 'HEAD', 'OPTIONS']), path: otherPath(chance), headers: headersOf(chance), proxied: false }
  const facts = chance.pick(resources)
  const subresource = facts.subresources.length > 0 && chance.once(4) ? chance.pick(facts.subresources) : undefined
  const verb = chance.weighted(verbs)
  const kind = subresource && !subresource.connect ? subresource.kind : facts
  const schema = schemaFor(kind.group, kind.version, kind.kind)
  const name = onObject.has(verb) || subresource ? nameOf(facts, chance) : ''
  const path = pathOf(facts, name, subresource?.name ?? '', chance) + queryOf(verb, chance)
  const { body, contentType } = bodyOf(verb, facts, kind, schema, name, chance)
  const headers = { ...headersOf(chance), ...(contentType && !chance.once(40) ? { 'content-type': contentType } : {}) }
  return {
    method: chance.once(60) ? chance.pick(['HEAD', 'OPTIONS', 'TRACE', 'get', 'X']) : methods[verb],
    path,
    headers,
    body,
    proxied: subresource?.connect ?? false,
  }
}

function otherPath(chance: Chance): string {
  const path = chance.pick(otherPaths)
  return chance.once(3) ? path : bent(path, chance)
}

function nameOf(facts: ResourceFacts, chance: Chance): string {
  return chance.weighted([
    [6, nameFor(facts.resource)],
    [3, chance.pick(['a', 'b', 'c'])],
    [1, encodeURIComponent(word(chance).replaceAll('\ud800', ''))],
  ])
}

function pathOf(facts: ResourceFacts, name: string, subresource: string, chance: Chance): string {
  const { group, version, resource, namespaced } = facts
  const namespace = chance.weighted([
    [12, 'default'],
    [2, 'fuzz'],
    [1, 'missing'],
    [1, ''],
  ])
  const where = (chance.once(40) ? !namespaced : namespaced) && namespace ? `/namespaces/${namespace}` : ''
  const what = [resource, name, subresource].filter((part) => part !== '').join('/')
  const path = `${group ? `/apis/${group}` : '/api'}/${version}${where}/${what}`
  return chance.once(30) ? bent(path, chance) : path
}

/** A path with a character changed, a segment doubled or lost, or something appended. */
function bent(path: string, chance: Chance): string {
  const other = changed(path, chance)
  // HTTP/2 has no path without a slash at its front.
  return other.startsWith('/') ? other : `/${other}`
}

function changed(path: string, chance: Chance): string {
  const parts = path.split('/')
  const at = chance.int(parts.length)
  return chance.weighted<() => string>([
    [2, () => parts.toSpliced(at, 1).join('/') || '/'],
    [2, () => parts.toSpliced(at, 0, parts[at] ?? '').join('/')],
    [2, () => `${path}/${encodeURIComponent(word(chance).replaceAll('\ud800', ''))}`],
    [1, () => `${path}${chance.pick(['%', '%zz', '%00', '%2e%2e/x', '/../x', '//', '%ff', ';', '?', '#'])}`],
    [1, () => path.replace('/api', '/watch/api')],
    [1, () => path.replace('/v1', '/v1/watch')],
  ])()
}

const parameters: Readonly<Record<string, readonly string[]>> = {
  resourceVersion: ['0', '1', '10', '0', '1', '10', '0', '1', '10', '100', '100', '999999999', '-1', 'x', '1e3', '18446744073709551616', ''],
  resourceVersionMatch: ['Exact', 'NotOlderThan', 'x'],
  limit: ['0', '1', '5', '-1', 'x', '9223372036854775808'],
  continue: ['x', 'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0', 'e30', ''],
  labelSelector: ['a=b', 'a in (b,c),!d', 'a>1', ',', '=', 'a in (', '!', 'é=1', 'a=b,a=b,a!=c'],
  fieldSelector: ['metadata.name=a', 'status.phase=Running', 'spec.x=1', '=', 'metadata.name!=a,metadata.namespace=default', '\\', 'a\\=b=c'],
  timeoutSeconds: ['1', '0', '-1', 'x', '99999999999'],
  timeout: ['1s', '0', '-1s', 'x', '1h'],
  sendInitialEvents: ['true', 'false', 'x'],
  allowWatchBookmarks: ['true', 'x'],
  watch: ['1', 'true', 'false', 'x', ''],
  dryRun: ['All', 'x', ''],
  fieldManager: ['m', '', 'é', 'x'.repeat(200), '\u0007'],
  fieldValidation: ['Strict', 'Warn', 'Ignore', 'x'],
  force: ['true', 'x'],
  pretty: ['true', 'x', '1'],
  gracePeriodSeconds: ['0', '-1', '30', 'x', '1e99'],
  propagationPolicy: ['Foreground', 'Orphan', 'x'],
  orphanDependents: ['true', 'x'],
  includeObject: ['Object', 'None', 'x'],
  container: ['c', 'x'],
  tailLines: ['1', '-1', 'x'],
  command: ['sh', ''],
  ports: ['80', 'x'],
  path: ['/x', '//', '..'],
}
const parameterNames = Object.keys(parameters)

function queryOf(verb: Verb, chance: Chance): string {
  const query = new URLSearchParams()
  if (verb === 'watch') query.set('watch', '1')
  if (verb === 'patch' && chance.once(2)) query.set('fieldManager', 'fuzz')
  for (let count = chance.pick([0, 0, 0, 1, 1, 2, 4]); count > 0; count--) {
    const name = chance.pick(parameterNames)
    query.append(name, chance.once(8) ? word(chance) : chance.pick(parameters[name] ?? []))
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}${chance.once(50) ? '&%zz=%&==&;' : ''}`
}

const oddHeaders: readonly (readonly [string, readonly string[]])[] = [
  ['impersonate-user', ['system:anonymous', 'jane', 'system:serviceaccount:default:default', 'system:serviceaccount:x', '', '%']],
  ['impersonate-group', ['system:masters', 'system:authenticated']],
  ['impersonate-extra-a%zz', ['x']],
  ['impersonate-uid', ['1']],
  ['audit-id', ['x', 'é'.repeat(100), '']],
  ['user-agent', ['curl/8', 'kubectl/v1.36', '/', 'x'.repeat(4_000), '\u00ff']],
  ['traceparent', ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '00-x']],
  ['accept-encoding', ['gzip', 'br', 'gzip;q=0, identity;q=0']],
  ['if-none-match', ['*', '"x"', 'x']],
  ['content-encoding', ['gzip']],
  ['x-remote-user', ['root']],
  ['origin', ['https://x', 'null']],
  ['x-forwarded-for', ['::1, x']],
]

function headersOf(chance: Chance): Record<string, string> {
  const headers: Record<string, string> = { accept: chance.once(3) ? chance.pick(accepts) : 'application/json' }
  while (chance.once(6)) {
    const [name, values] = chance.pick(oddHeaders)
    headers[name] = chance.pick(values)
  }
  return headers
}

interface Body {
  readonly body?: Buffer | undefined
  readonly contentType?: string | undefined
}

function bodyOf(
  verb: Verb,
  facts: ResourceFacts,
  kind: ResourceFacts['storage'] | { kind: string; group: string; version: string } | undefined,
  schema: Schema | undefined,
  name: string,
  chance: Chance,
): Body {
  if (verb === 'get' || verb === 'list' || verb === 'watch') return chance.once(20) ? { body: Buffer.from('{}'), contentType: 'application/json' } : {}
  if (verb === 'delete' || verb === 'deletecollection') return chance.once(2) ? {} : encodedBody(deleteOptions(chance), schema, chance)
  const { group, version, kind: kindName } = kind as { kind: string; group: string; version: string }
  const apiVersion = group ? `${group}/${version}` : version
  const object = { apiVersion, kind: kindName, ...objectFor(facts, kindName, schema, name || nameOf(facts, chance), chance) }
  return verb === 'patch' ? patchBody(object, chance) : encodedBody(object, schema, chance)
}

/** The least valid object, changed in some places, or anything that the schema allows. */
function objectFor(facts: ResourceFacts, kind: string, schema: Schema | undefined, name: string, chance: Chance): object {
  const least = kind === facts.kind ? leastOf(facts.group, facts.resource) : {}
  const metadata = { name, ...(chance.once(3) ? { labels: { a: chance.pick(['b', 'c']) } } : {}) }
  if (chance.once(6) && schema) return { ...(randomValue(schema, chance) as object), ...(chance.once(3) ? {} : { metadata }) }
  const object = structuredClone({ metadata, ...least })
  return chance.once(4) ? object : (mutate(object, chance, schema) as object)
}

function deleteOptions(chance: Chance): object {
  const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background', gracePeriodSeconds: 0, preconditions: { uid: 'x' } }
  return mutate(options, chance) as object
}

function encodedBody(object: object, schema: Schema | undefined, chance: Chance): Body {
  return chance.weighted<() => Body>([
    [12, () => ({ body: bitten(jsonOf(object), chance), contentType: 'application/json' })],
    [3, () => ({ body: bitten(yamlOf(object), chance), contentType: 'application/yaml' })],
    [4, () => ({ body: bitten(protobufOf(object, schema), chance), contentType: protobufMediaType })],
  ])()
}

function jsonOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function yamlOf(value: unknown): Buffer {
  try {
    return Buffer.from(toYaml(value))
  } catch {
    // Some of the odd values have no YAML of their own; JSON is YAML.
    return jsonOf(value)
  }
}

function protobufOf(object: object, schema: Schema | undefined): Buffer {
  try {
    return Buffer.from(encodeProtobuf(object as { apiVersion: string; kind: string }, schema as Schema))
  } catch {
    // An object that the schema cannot encode is sent as protobuf's magic followed by JSON.
    return Buffer.concat([Buffer.from('k8s\0'), jsonOf(object)])
  }
}

function patchBody(object: object, chance: Chance): Body {
  const contentType = chance.pick(patchTypes)
  if (contentType === patchTypes[3]) return { body: bitten(chance.once(2) ? yamlOf(object) : jsonOf(object), chance), contentType }
  if (contentType === patchTypes[0]) return { body: bitten(jsonOf(jsonPatch(object, chance)), chance), contentType }
  const directives = {
    $patch: chance.pick(['replace', 'delete', 'merge', 'x']),
    $retainKeys: ['a'],
    '$setElementOrder/containers': [{ name: 'c' }],
    '$deleteFromPrimitiveList/finalizers': ['a'],
  }
  const { kind: _, apiVersion: __, ...rest } = object as Record<string, unknown>
  const patch = chance.once(5) ? { ...rest, spec: { ...(rest.spec as object), ...directives } } : rest
  return { body: bitten(jsonOf(patch), chance), contentType }
}

const pointers = [
  '',
  '/',
  '/metadata/labels/a',
  '/metadata/name',
  '/metadata',
  '/spec',
  '/spec/containers/0',
  '/spec/containers/-',
  '/spec/ports/00',
  '/x~2',
  '/~',
  '/__proto__/x',
]

function jsonPatch(object: object, chance: Chance): unknown {
  const operations = Array.from({ length: 1 + chance.int(3) }, () => ({
    op: chance.pick(['add', 'replace', 'remove', 'test', 'copy', 'move', 'x']),
    path: chance.pick(pointers),
    from: chance.pick(pointers),
    value: chance.once(3) ? object : oddValue(chance),
  }))
  return chance.once(12) ? mutate(operations, chance) : operations
}

/** Now and then a body with bytes changed, lost or added. */
function bitten(bytes: Buffer, chance: Chance): Buffer {
  if (!chance.once(8)) return bytes
  const at = chance.int(bytes.length + 1)
  return chance.weighted<() => Buffer>([
    [3, () => bytes.subarray(0, at)],
    [3, () => Buffer.concat([bytes.subarray(0, at), Buffer.from([chance.int(256)]), bytes.subarray(at + 1)])],
    [1, () => Buffer.concat([bytes, bytes])],
    [1, () => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at, at + 20), bytes.subarray(at)])],
    [1, () => Buffer.alloc(0)],
  ])()
}
