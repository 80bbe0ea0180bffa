/**
 * The OpenAPI documents (L1): /openapi/v2 for all groups at once, /openapi/v3 as an index and one document per group-version. They are written
 * entry by entry, so that a server can let others have their turn in between; putting them together as objects is for those who wait.
 * Upstream: kube-openapi/pkg/builder, pkg/builder3, apiserver/pkg/server/routes/openapi.go (v1.36).
 */
import { bareMap } from '#base/bareMap'
import type { ResourceFacts } from '../discovery/resources.ts'
import { definitionOf, schemaFor } from '../schema/builtIn.ts'
import { type DefinitionOf, generalPaths, groupPath, type Operation, type Parameter, type PathItem, pathsOf } from './paths.ts'
import { type Describe, type ExtraDefinition, type JsonSchema, SchemaWriter } from './schemas.ts'

export interface OpenApiInput {
  readonly resources: readonly ResourceFacts[]
  readonly describe: Describe
  /** info.version: 'v1.36.0' in v3, upstream's v2 says the same. */
  readonly serverVersion: string
  /** The kinds of CRDs, list kinds included, whose resources are among `resources`. */
  readonly extras?: readonly ExtraDefinition[] | undefined
}

const security = { BearerToken: { type: 'apiKey', description: 'Bearer Token authentication', name: 'authorization', in: 'header' } }

/** Members of a document that hold named entries; v3 has its definitions under components.schemas, and no parameters. */
export const entryMembers = ['paths', 'definitions', 'parameters'] as const
export type EntryMember = (typeof entryMembers)[number]

export interface DocumentEntry {
  readonly member: EntryMember
  readonly name: string
  readonly value: JsonSchema
}

/** The members of a v2 document other than paths and definitions. */
export function openApiV2Head({ serverVersion }: OpenApiInput): JsonSchema {
  return { swagger: '2.0', info: { title: 'Kubernetes', version: serverVersion }, securityDefinitions: security, security: [{ BearerToken: [] }] }
}

/** The entries of the whole API as one Swagger 2.0 document, in no order. */
export function* openApiV2Entries(input: OpenApiInput): Generator<DocumentEntry> {
  const writer = new SchemaWriter('v2', input.describe, input.extras)
  const shared = new Map<string, JsonSchema>()
  for (const item of pathItemsV2(input)) yield { member: 'paths', name: item.path, value: pathV2(item, writer, shared) }
  for (const [name, value] of writer.definitions()) yield { member: 'definitions', name, value }
  for (const [name, value] of shared) yield { member: 'parameters', name, value }
}

function* pathItemsV2(input: OpenApiInput): Generator<PathItem> {
  yield* generalPaths()
  // Groups of custom resources have no discovery documents in OpenAPI, as upstream.
  for (const group of new Set(input.resources.filter(({ custom }) => !custom).map((facts) => facts.group))) yield groupPath(group)
  yield* pathsOf(input.resources, lookUp(input))
}

/** The whole API as one Swagger 2.0 document. Built once and kept: it is megabytes. */
export function openApiV2(input: OpenApiInput): JsonSchema {
  const { securityDefinitions, security: needed, ...head } = openApiV2Head(input)
  return { ...head, ...membersOf(openApiV2Entries(input)), securityDefinitions, security: needed }
}

/** The documents of v3 by their key in the index: 'api/v1', 'apis/apps/v1', 'apis/apps', 'api', 'apis', 'version', … */
export function openApiV3Keys(resources: readonly ResourceFacts[]): string[] {
  const keys = new Set<string>(generalPaths().map(keyOfPath))
  for (const { group, version, custom } of resources) {
    if (!custom) keys.add(group === '' ? 'api' : `apis/${group}`)
    keys.add(group === '' ? `api/${version}` : `apis/${group}/${version}`)
  }
  return [...keys].sort()
}

export function openApiV3Head({ serverVersion }: OpenApiInput): JsonSchema {
  return { openapi: '3.0.0', info: { title: 'Kubernetes', version: serverVersion } }
}

/** The components of a v3 document other than schemas. */
export const openApiV3Components: JsonSchema = { securitySchemes: security }

/** The entries of one document of v3, in no order; none for an unknown key. `input.resources` may hold all resources: those of the key are taken. */
export function* openApiV3Entries(key: string, input: OpenApiInput): Generator<DocumentEntry> {
  const writer = new SchemaWriter('v3', input.describe, input.extras)
  const definition = lookUp(input)
  for (const item of itemsOf(key, input, definition)) yield { member: 'paths', name: item.path, value: pathV3(item, writer) }
  for (const { group, version, kind } of input.resources.filter((facts) => keyOf(facts) === key)) {
    // The options of every request are part of the document though no path refers to the version's own.
    const name = definition(group, version, kind)
    if (name) writer.reference(name)
  }
  for (const [name, value] of writer.definitions()) yield { member: 'definitions', name, value }
}

/** One document of v3; undefined for an unknown key. */
export function openApiV3(key: string, input: OpenApiInput): JsonSchema | undefined {
  const { paths, definitions: schemas } = membersOf(openApiV3Entries(key, input))
  if (Object.keys(paths).length === 0) return undefined
  return { ...openApiV3Head(input), paths, components: { schemas, ...openApiV3Components } }
}

/** The entries by name, sorted. */
function membersOf(entries: Iterable<DocumentEntry>): Record<EntryMember, JsonSchema> {
  const found: Record<EntryMember, [string, JsonSchema][]> = { paths: [], definitions: [], parameters: [] }
  for (const { member, name, value } of entries) found[member].push([name, value])
  const sorted = (member: EntryMember) => Object.fromEntries(found[member].sort(([a], [b]) => (a < b ? -1 : 1)))
  return { paths: sorted('paths'), definitions: sorted('definitions'), parameters: sorted('parameters') }
}

/** GET /openapi/v3. `hashOf` gives a content hash that changes with the document. */
export function openApiV3Index(keys: readonly string[], hashOf: (key: string) => string): JsonSchema {
  return { paths: Object.fromEntries(keys.map((key) => [key, { serverRelativeURL: `/openapi/v3/${key}?hash=${hashOf(key)}` }])) }
}

function keyOf({ group, version }: ResourceFacts): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`
}

/** '/openid/v1/jwks/' → 'openid/v1/jwks'. */
function keyOfPath({ path }: PathItem): string {
  return path.slice(1, -1)
}

function* itemsOf(key: string, input: OpenApiInput, definition: DefinitionOf): Generator<PathItem> {
  const general = generalPaths().filter((item) => keyOfPath(item) === key)
  if (general.length > 0) return yield* general
  const resources = input.resources.filter((facts) => keyOf(facts) === key)
  if (resources.length > 0) return yield* pathsOf(resources, definition)
  const group = key === 'api' ? '' : key.startsWith('apis/') ? key.slice('apis/'.length) : undefined
  if (group !== undefined && input.resources.some((facts) => facts.group === group)) yield groupPath(group)
}

function lookUp({ extras = [] }: OpenApiInput): DefinitionOf {
  const known = new Map(extras.flatMap(({ name, kind }) => (kind ? [[`${kind.group}/${kind.version}/${kind.kind}`, name] as const] : [])))
  return (group, version, kind) =>
    known.get(`${group}/${version}/${kind}`) ?? (schemaFor(group, version, kind) ? definitionOf(group, version, kind) : undefined)
}

function kubernetesMarks({ action, kind }: Operation): JsonSchema {
  return {
    ...(action ? { 'x-kubernetes-action': action } : {}),
    ...(kind ? { 'x-kubernetes-group-version-kind': { group: kind.group, kind: kind.kind, version: kind.version } } : {}),
  }
}

function pathV2({ parameters, operations }: PathItem, writer: SchemaWriter, shared: Map<string, JsonSchema>): JsonSchema {
  const item: JsonSchema = {}
  for (const operation of operations) {
    const body = operation.body && {
      name: 'body',
      in: 'body',
      ...(operation.body.required ? { required: true } : {}),
      schema: writer.reference(operation.body.type),
    }
    const all = [...(body ? [body] : []), ...operation.parameters.map((parameter) => sharedParameter(parameter, shared))]
    item[operation.method] = {
      description: operation.description,
      ...(operation.consumes.length > 0 ? { consumes: operation.consumes } : {}),
      produces: operation.produces,
      schemes: ['https'],
      tags: [operation.tag],
      operationId: operation.id,
      ...(all.length > 0 ? { parameters: all } : {}),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([code, type]) => [
          code,
          { description: statusText(code), ...(type === undefined ? {} : { schema: type === 'string' ? { type } : writer.reference(type) }) },
        ]),
      ),
      ...kubernetesMarks(operation),
    }
  }
  if (parameters.length > 0) item.parameters = parameters.map((parameter) => sharedParameter(parameter, shared))
  return item
}

/**
 * Parameters repeat hundreds of times: they are written once and referred to. Not so dryRun and fieldValidation: clients look for them
 * in the operation itself before they use them.
 */
function sharedParameter({ name, in: place, type }: Parameter, shared: Map<string, JsonSchema>): JsonSchema {
  if (name === 'dryRun' || name === 'fieldValidation') return { uniqueItems: true, type, ...describeParameter(name), name, in: place }
  const key = `${name}-${place}-${type}`
  if (!shared.has(key)) {
    shared.set(key, { uniqueItems: true, type, ...describeParameter(name), name, in: place, ...(place === 'path' ? { required: true } : {}) })
  }
  return { $ref: `#/parameters/${key}` }
}

function pathV3({ parameters, operations }: PathItem, writer: SchemaWriter): JsonSchema {
  const item: JsonSchema = {}
  for (const operation of operations) {
    const contents = (types: readonly string[], type: string): JsonSchema =>
      Object.fromEntries(types.map((media) => [media, { schema: type === 'string' ? { type } : writer.reference(type) }]))
    item[operation.method] = {
      tags: [operation.tag],
      description: operation.description,
      operationId: operation.id,
      ...(operation.parameters.length > 0 ? { parameters: operation.parameters.map(parameterV3) } : {}),
      ...(operation.body
        ? { requestBody: { content: contents(operation.consumes, operation.body.type), ...(operation.body.required ? { required: true } : {}) } }
        : {}),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([code, type]) => [
          code,
          { description: statusText(code), ...(type === undefined ? {} : { content: contents(operation.produces, type) }) },
        ]),
      ),
      ...kubernetesMarks(operation),
    }
  }
  if (parameters.length > 0) item.parameters = parameters.map(parameterV3)
  return item
}

function parameterV3({ name, in: place, type }: Parameter): JsonSchema {
  return { name, in: place, ...describeParameter(name), ...(place === 'path' ? { required: true } : {}), schema: { type, uniqueItems: true } }
}

function statusText(code: string): string {
  return { 200: 'OK', 201: 'Created', 202: 'Accepted', 401: 'Unauthorized' }[code] ?? ''
}

const parameterTexts: Readonly<Record<string, string>> = bareMap({
  allowWatchBookmarks: 'Ask a watch for BOOKMARK events.',
  continue: 'The token of a previous, partial list: go on from there.',
  dryRun: 'With All, every stage runs but nothing is stored.',
  fieldManager: 'The name under which the changed fields will be owned.',
  fieldSelector: 'Restrict the objects by their fields.',
  fieldValidation: 'What to do about unknown and duplicate fields: Ignore, Warn or Strict.',
  force: 'Let an apply take fields that others own.',
  gracePeriodSeconds: 'How long the object may take to end before it is deleted.',
  labelSelector: 'Restrict the objects by their labels.',
  limit: 'At most this many objects in one answer.',
  name: 'Name of the object.',
  namespace: 'Namespace of the object.',
  pretty: 'Print the answer indented.',
  propagationPolicy: 'What happens to dependents: Orphan, Background or Foreground.',
  resourceVersion: 'How recent the answer must be.',
  resourceVersionMatch: 'How resourceVersion is meant in a list: Exact or NotOlderThan.',
  sendInitialEvents: 'Begin a watch with the objects that exist.',
  timeoutSeconds: 'End the call after this time.',
  watch: 'Answer with a stream of changes.',
})

function describeParameter(name: string): JsonSchema {
  const description = parameterTexts[name]
  return description === undefined ? {} : { description }
}
