/**
 * The OpenAPI documents against upstream's own for v1.36: paths, verbs, operation ids, parameters, media types, responses, and every
 * definition with its properties, types, formats, required fields and markers. Texts are ours and not compared.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import test from 'node:test'
import { builtInGroupVersions, builtInResources } from '#api/discovery/resources'
import { openApiV2, openApiV3, openApiV3Keys } from '#api/openapi/document'
import { differences, show } from './differences.ts'
import { reference, skipWithout } from './reference.ts'

type Json = Record<string, unknown>

const name = 'openapi-v1.36.json'
const file = reference(name)
const needsReference = skipWithout(file, name)

const input = { resources: builtInResources(), describe: () => undefined, serverVersion: 'v1.36.0' }
const ours = openApiV2(input)
const upstream: Json = file === undefined ? {} : (JSON.parse(fs.readFileSync(file, 'utf8')) as Json)

/** Differences that are meant, with the reason. */
const accepted: Readonly<Record<string, string>> = {
  '//logs/': 'the deprecated log handler, which shows files of the host, is not served',
  '//logs/{logpath}': 'the same',
}

const methods: ReadonlySet<string> = new Set(['get', 'put', 'post', 'patch', 'delete', 'head', 'options'])
const groupVersions = builtInGroupVersions().map(({ group, version }) => (group === '' ? `/api/${version}/` : `/apis/${group}/${version}/`))
const groups = [...new Set(builtInGroupVersions().map(({ group }) => (group === '' ? '/api/' : `/apis/${group}/`)))]

/** Paths of the default group-versions, of their groups, and those that belong to none. */
function isServed(path: string): boolean {
  if (!path.startsWith('/api/') && !path.startsWith('/apis/')) return true
  return path === '/apis/' || groups.includes(path) || groupVersions.some((root) => path.startsWith(root))
}

/** Follows references to shared parameters, drops texts, sorts what has no order. */
function plainOperation(operation: Json, document: Json): Json {
  const { description: _text, parameters, responses, ...rest } = operation
  return { ...rest, parameters: plainParameters(parameters, document), responses: withoutTexts(responses) }
}

function plainParameters(parameters: unknown, document: Json): Record<string, unknown> {
  const resolved = ((parameters ?? []) as Json[]).map((parameter) => {
    const key = typeof parameter.$ref === 'string' ? parameter.$ref.replace('#/parameters/', '') : undefined
    return withoutTexts(key === undefined ? parameter : (document.parameters as Json)[key]) as Json
  })
  return Object.fromEntries(resolved.map((parameter) => [`${String(parameter.in)} ${String(parameter.name)}`, parameter]))
}

function withoutTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTexts)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => (key === 'description' && typeof member === 'string' ? [] : [[key, withoutTexts(member)]])),
  )
}

function plainPaths(document: Json): Json {
  const paths = Object.entries(document.paths as Record<string, Json>).filter(([path]) => isServed(path))
  return Object.fromEntries(
    paths.map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([key, member]) =>
          methods.has(key) ? [key, plainOperation(member as Json, document)] : [key, key === 'parameters' ? plainParameters(member, document) : member],
        ),
      ),
    ]),
  )
}

function unaccepted(found: ReturnType<typeof differences>): ReturnType<typeof differences> {
  return found.filter(({ at }) => accepted[at] === undefined)
}

test('API-15 every path and operation of v2 is upstream’s', needsReference, (t) => {
  const found = unaccepted(differences(plainPaths(upstream), plainPaths(ours)))
  t.diagnostic(`paths: ${found.length} differences`)
  assert.equal(found.length, 0, show(found))
})

test('API-15 every definition of v2 is upstream’s', needsReference, (t) => {
  const definitions = withoutTexts(ours.definitions) as Json
  const theirs = withoutTexts(upstream.definitions) as Json
  const found = unaccepted(Object.keys(definitions).flatMap((key) => differences(plainDefinition(theirs[key]), plainDefinition(definitions[key]), key)))
  t.diagnostic(`definitions: ${found.length} differences in ${Object.keys(definitions).length}`)
  assert.equal(found.length, 0, show(found))
})

function plainDefinition(definition: unknown): unknown {
  if (typeof definition !== 'object' || definition === null) return definition
  const { required, ...rest } = definition as { required?: string[] }
  return { ...rest, ...(required ? { required: [...required].sort() } : {}) }
}

test('API-15 every definition that a served path needs is there', needsReference, () => {
  const missing = [...reachable(upstream)].filter((key) => !(key in (ours.definitions as Json)))
  assert.deepEqual(missing, [])
})

/** Definitions that paths refer to, directly or through others. */
function reachable(document: Json): Set<string> {
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit)
    else if (typeof value === 'object' && value !== null) {
      for (const [key, member] of Object.entries(value)) {
        if (key !== '$ref' || typeof member !== 'string') visit(member)
        else if (member.startsWith('#/definitions/')) found.add(member.replace('#/definitions/', ''))
      }
    }
  }
  visit(plainPaths(document))
  for (const key of found) visit((document.definitions as Json)[key])
  return found
}

test('API-15 the v3 documents equal v2', (t) => {
  const paths: Json = {}
  const definitions: Json = {}
  for (const key of openApiV3Keys(input.resources)) {
    const document = openApiV3(key, input) as { paths: Json; components: { schemas: Json } }
    Object.assign(paths, pathsAsV2(document.paths as Record<string, Json>))
    Object.assign(definitions, schemaAsV2(document.components.schemas) as Json)
  }
  const found = [...differences(comparableToV3(plainPaths(ours)), paths), ...differences(schemaAsV2(withoutTexts(ours.definitions)), definitions)]
  t.diagnostic(`v3: ${found.length} differences`)
  assert.equal(found.length, 0, show(found))
})

/** v3 ties media types to bodies: it has no media types for operations without a body or an answer. */
function comparableToV3(paths: Json): Json {
  return Object.fromEntries(
    Object.entries(paths as Record<string, Json>).map(([path, item]) => [
      path,
      Object.fromEntries(Object.entries(item).map(([key, member]) => [key, methods.has(key) ? comparableOperation(member as Json) : member])),
    ]),
  )
}

function comparableOperation({ schemes: _schemes, consumes, ...rest }: Json): Json {
  return { ...rest, ...('body body' in (rest.parameters as Json) ? { consumes } : {}) }
}

function pathsAsV2(paths: Record<string, Json>): Json {
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([key, member]) => (methods.has(key) ? [key, operationAsV2(member as Json)] : [key, parametersAsV2(member)])),
      ),
    ]),
  )
}

function operationAsV2({ description: _text, parameters, requestBody, responses, ...rest }: Json): Json {
  const body = requestBody as { content: Record<string, { schema: unknown }>; required?: boolean } | undefined
  const contents = Object.values((responses ?? {}) as Record<string, { content?: Record<string, { schema: unknown }> }>).flatMap(({ content }) =>
    content ? [content] : [],
  )
  return {
    ...rest,
    ...(body ? { consumes: Object.keys(body.content) } : {}),
    produces: Object.keys(contents[0] ?? {}),
    parameters: {
      ...parametersAsV2(parameters),
      ...(body
        ? {
            'body body': { name: 'body', in: 'body', ...(body.required ? { required: true } : {}), schema: schemaAsV2(Object.values(body.content)[0]?.schema) },
          }
        : {}),
    },
    responses: Object.fromEntries(
      Object.entries(responses as Record<string, { content?: Record<string, { schema: unknown }> }>).map(([code, { content }]) => [
        code,
        content ? { schema: schemaAsV2(Object.values(content)[0]?.schema) } : {},
      ]),
    ),
  }
}

function parametersAsV2(parameters: unknown): Json {
  const flat = ((parameters ?? []) as Json[]).map(({ schema, description: _text, ...rest }) => ({ ...rest, ...(schema as Json) }) as Json)
  return Object.fromEntries(flat.map((parameter) => [`${String(parameter.in)} ${String(parameter.name)}`, parameter]))
}

/** References by v2's place, `allOf` of one unwrapped, choices as the string they are in v2, no defaults. */
function schemaAsV2(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(schemaAsV2)
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? value.replace('#/components/schemas/', '#/definitions/') : value
  const { allOf, oneOf, ...rest } = value as { allOf?: Json[]; oneOf?: unknown[] } & Json
  if (!('properties' in rest)) delete rest.default
  const unwrapped = Array.isArray(allOf) && allOf.length === 1 ? { ...allOf[0] } : {}
  const choice = Array.isArray(oneOf) ? { type: 'string' } : {}
  return Object.fromEntries(Object.entries({ ...rest, ...unwrapped, ...choice }).map(([key, member]) => [key, schemaAsV2(member)]))
}

test('API-15 v3 shows the zeros that Go writes, and what may be absent without one', () => {
  const { components } = openApiV3('apis/node.k8s.io/v1', input) as { components: { schemas: Record<string, { properties: Json }> } }
  const of = (definition: string): Json => components.schemas[definition]?.properties ?? {}
  const quantity = { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity' }
  const { handler, metadata, overhead } = of('io.k8s.api.node.v1.RuntimeClass')
  assert.deepEqual(
    { handler, metadata, overhead, podFixed: of('io.k8s.api.node.v1.Overhead').podFixed, ...of('io.k8s.api.node.v1.Scheduling') },
    {
      handler: { type: 'string', default: '' },
      metadata: { allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }], default: {} },
      overhead: { allOf: [{ $ref: '#/components/schemas/io.k8s.api.node.v1.Overhead' }] },
      podFixed: { type: 'object', additionalProperties: quantity },
      nodeSelector: { type: 'object', additionalProperties: { type: 'string', default: '' }, 'x-kubernetes-map-type': 'atomic' },
      tolerations: {
        type: 'array',
        items: { allOf: [{ $ref: '#/components/schemas/io.k8s.api.core.v1.Toleration' }], default: {} },
        'x-kubernetes-list-type': 'atomic',
      },
    },
  )
})
