/**
 * Objects as JSON and as protobuf, byte for byte: upstream's vectors of v1.36 if they are present, and a small set of our own.
 * Every vector of a kind that can be created is also posted in both forms to a real server, which must decode both to the same object.
 * The `after_roundtrip` files show what a later release's types keep of an object of v1.36; v1.36 itself keeps everything.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import test, { after, before } from 'node:test'
import { allResources, type ResourceFacts } from '#api/discovery/resources'
import { parseGroupVersion } from '#api/machinery/meta'
import { decodeProtobuf, encodeProtobuf, protobufMediaType } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import { decode } from '#api/schema/decode'
import type { Schema } from '#api/schema/schema'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { rawHttp } from '../integration/api/rawHttp.ts'
import { startServerWithReviews } from '../support/serverWithReviews.ts'
import { reference, skipWithout } from './reference.ts'

interface Vector {
  readonly name: string
  readonly object: KindObject
  readonly protobuf: Buffer
}

type KindObject = { apiVersion: string; kind: string; metadata?: object }

const name = 'serialization-v1.36'
const folder = reference(name)
const needsReference = skipWithout(folder, name)
const upstream = folder === undefined ? [] : vectorsOf(folder)
const own = vectorsOf(path.join(import.meta.dirname, 'vectors'))

function vectorsOf(from: string): Vector[] {
  const names = fs.readdirSync(from).flatMap((file) => (file.endsWith('.json') && !file.includes('.after_roundtrip.') ? [file.slice(0, -'.json'.length)] : []))
  return names.flatMap((base) => {
    const object = JSON.parse(fs.readFileSync(path.join(from, `${base}.json`), 'utf8')) as KindObject
    const served = object.apiVersion !== undefined && schemaOf(object.apiVersion, object.kind) !== undefined
    return served ? [{ name: base, object, protobuf: fs.readFileSync(path.join(from, `${base}.pb`)) }] : []
  })
}

function schemaOf(apiVersion: string, kind: string): Schema | undefined {
  const { group, version } = parseGroupVersion(apiVersion)
  return schemaFor(group, version, kind)
}

function roundTrip({ object, protobuf }: Vector): void {
  const schema = schemaOf(object.apiVersion, object.kind)
  assert.ok(schema)
  const fromJson = decode(structuredClone(object), schema, { unknown: 'collect' })
  assert.deepEqual(fromJson.unknownFields, [])
  assert.equal(Buffer.from(encodeProtobuf(fromJson.object as KindObject, schema)).toString('hex'), protobuf.toString('hex'))
  const fromProtobuf = decode(decodeProtobuf(protobuf, schemaOf), schema, { unknown: 'collect' })
  assert.deepEqual(fromProtobuf.object, object)
}

test('API-16 upstream’s vectors go from JSON to protobuf and back unchanged', needsReference, async (t) => {
  assert.ok(upstream.length >= 100, `${upstream.length} vectors`)
  for (const vector of upstream) await t.test(vector.name, () => roundTrip(vector))
})

/** A way to each field of the vector's definitions, the first one that leads there. */
function fieldsOf(value: unknown, schema: Schema | undefined, seen: Set<string>, way: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null || !schema) return []
  if (schema.type !== 'object') return Object.entries(value).flatMap(([key, item]) => fieldsOf(item, schema.element, seen, [...way, key]))
  return Object.entries(value).flatMap(([name, member]) => {
    const field = `${schema.definition} ${name}`
    if (seen.has(field)) return []
    seen.add(field)
    return [[...way, name], ...fieldsOf(member, schema.fields?.get(name)?.schema, seen, [...way, name])]
  })
}

function without(object: KindObject, way: readonly (string | number)[]): KindObject {
  const copy = structuredClone(object)
  const holder = way.slice(0, -1).reduce<unknown>((at, key) => (at as Record<string | number, unknown>)[key], copy)
  delete (holder as Record<string | number, unknown>)[way.at(-1) as string | number]
  return copy
}

test('API-16 a field that is left out of JSON is what protobuf has in its place, field by field', needsReference, () => {
  const seen = new Set<string>()
  for (const { name: of, object } of upstream) {
    const schema = schemaOf(object.apiVersion, object.kind)
    for (const way of fieldsOf(object, schema, seen)) {
      if (way.length === 1 && (way[0] === 'apiVersion' || way[0] === 'kind')) continue
      const fromJson = decode(without(object, way), schema as Schema, { unknown: 'collect' }).object as KindObject
      const bytes = encodeProtobuf(structuredClone(fromJson), schema as Schema)
      const fromProtobuf = decode(decodeProtobuf(Buffer.from(bytes), schemaOf), schema as Schema, { unknown: 'collect' }).object
      assert.deepEqual(fromProtobuf, fromJson, `${of} without ${way.join('.')}`)
    }
  }
  assert.ok(seen.size > 2_000, `${seen.size} fields`)
})

for (const vector of own) test(`API-16 our vector ${vector.name} goes from JSON to protobuf and back unchanged`, () => roundTrip(vector))

let api: TestApiServer
let listener: TestListener
before(async () => {
  api = await startServerWithReviews({}, allResources())
  listener = await api.listen()
})
after(() => api.close())

const creatable = new Map(allResources().flatMap((facts) => (facts.verbs.includes('create') ? [[`${facts.group}/${facts.version}/${facts.kind}`, facts]] : [])))

function resourceOf({ object }: Vector): ResourceFacts | undefined {
  const { group, version } = parseGroupVersion(object.apiVersion)
  return creatable.get(`${group}/${version}/${object.kind}`)
}

interface Said {
  readonly status: number
  readonly reason?: string
  readonly message?: string
  readonly causes?: readonly { readonly field?: string; readonly message?: string }[]
}

async function post(facts: ResourceFacts, contentType: string, body: string | Buffer): Promise<Said> {
  const root = facts.group === '' ? `/api/${facts.version}` : `/apis/${facts.group}/${facts.version}`
  const target = `${root}${facts.namespaced ? '/namespaces/default' : ''}/${facts.resource}?dryRun=All`
  const answer = await rawHttp(listener, { method: 'POST', path: target, body, headers: { 'content-type': contentType, accept: 'application/json' } })
  const said = JSON.parse(answer.body.toString('utf8')) as { reason?: string; message?: string; details?: { causes?: Said['causes'] } }
  if (answer.status < 300) return { status: answer.status }
  return { status: answer.status, reason: said.reason ?? '', message: said.message ?? '', causes: said.details?.causes ?? [] }
}

/** Both forms are understood: taken, or refused for a reason that a validator names. */
async function posted(vector: Vector, facts: ResourceFacts): Promise<void> {
  const schema = schemaOf(vector.object.apiVersion, vector.object.kind)
  assert.ok(schema)
  // The vectors' metadata is nothing that a client may send; what the kinds' validators look at stays.
  const object = { ...vector.object, metadata: { name: 'vector', ...(facts.namespaced ? { namespace: 'default' } : {}) } }
  const asJson = await post(facts, 'application/json', JSON.stringify(object))
  const asProtobuf = await post(facts, protobufMediaType, Buffer.from(encodeProtobuf(object, schema)))
  assert.deepEqual(asProtobuf, asJson)
  assert.ok(understood(asJson), JSON.stringify(asJson))
  const whole = await post(facts, protobufMediaType, vector.protobuf)
  assert.ok(understood(whole) || /namespace of the (provided|object)|resourceVersion/.test(whole.message ?? ''), JSON.stringify(whole))
}

function understood({ status, causes }: Said): boolean {
  return (
    status === 200 ||
    status === 201 ||
    (status === 422 && (causes ?? []).length > 0 && (causes ?? []).every(({ field, message }) => Boolean(field) && Boolean(message)))
  )
}

test('API-16 the server understands upstream’s vectors in both forms', needsReference, async (t) => {
  for (const vector of upstream) {
    const facts = resourceOf(vector)
    if (facts) await t.test(vector.name, () => posted(vector, facts))
  }
})

for (const vector of own) {
  const facts = resourceOf(vector)
  if (facts) test(`API-16 the server understands our vector ${vector.name} in both forms`, () => posted(vector, facts))
}
