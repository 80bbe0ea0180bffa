import assert from 'node:assert/strict'
import test from 'node:test'
import { builtInResources } from '#api/discovery/resources'
import { openApiV2, openApiV2Entries, openApiV2Head, openApiV3, openApiV3Entries, openApiV3Head } from '#api/openapi/document'
import { encodeGnostic } from '#api/openapi/gnostic'
import { Catalog, type CatalogSource } from '../registry/catalog.ts'
import { jsonV2, jsonV3, protobufV2 } from './openapiForms.ts'
import { encodeDocument, OpenApiPieces } from './openapiPieces.ts'

const input = { resources: [], describe: () => undefined, serverVersion: 'v1.36.0', extras: [] }
type Document = { swagger: string; paths: Record<string, unknown>; definitions: Record<string, unknown>; parameters: object }
const parsed = (bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString()) as Document

/** What `work` gives, and how often others had their turn meanwhile. */
async function withTurns<T>(work: () => Promise<T>): Promise<{ value: T; turns: number }> {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const value = await work()
  isOver = true
  return { value, turns }
}

test('API-15 a document that is made entry by entry is the whole one, in every form', async () => {
  const all = { ...input, resources: builtInResources() }
  const v2 = openApiV2(all)
  assert.deepEqual(parsed(await encodeDocument(jsonV2, openApiV2Head(all), openApiV2Entries(all))), v2)
  assert.deepEqual(parsed(await encodeDocument(jsonV3, openApiV3Head(all), openApiV3Entries('apis/apps/v1', all))), openApiV3('apis/apps/v1', all))
  const { securityDefinitions, security, ...rest } = v2
  const first = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value === 'string' || 'title' in (value as object)))
  const inOrder = { ...first, securityDefinitions, security, paths: v2.paths, definitions: v2.definitions, parameters: v2.parameters }
  const protobuf = await encodeDocument(protobufV2, openApiV2Head(all), openApiV2Entries(all))
  assert.ok(Buffer.from(protobuf).equals(Buffer.from(encodeGnostic(inOrder))), 'the same bytes')
})

test('API-15 others have their turn while what is compiled in is written for the first time', async () => {
  const all = { ...input, resources: builtInResources() }
  for (const form of [jsonV2, protobufV2]) {
    const pieces = new OpenApiPieces(form)
    const { value, turns } = await withTurns(() => pieces.document(all, new Catalog()))
    // 16 KiB of the document are some milliseconds of work.
    assert.ok(turns >= value.length / 32_768, `${turns} turns for ${value.length} bytes`)
    const again = await withTurns(() => pieces.document(all, new Catalog()))
    assert.ok(again.turns <= 1, `${again.turns} turns for what is there`)
  }
  const { value, turns } = await withTurns(() => encodeDocument(jsonV3, openApiV3Head(all), openApiV3Entries('api/v1', all)))
  assert.ok(turns >= value.length / 32_768, `${turns} turns for ${value.length} bytes`)
})

test('API-15 a new definition costs its own piece of the document', async () => {
  const made: string[] = []
  const catalog = new Catalog()
  const add = (name: string, revision = name) =>
    catalog.set(name, {
      revision,
      groupVersions: [],
      definitions: [],
      get entries(): CatalogSource['entries'] {
        made.push(revision)
        return []
      },
    })
  const pieces = new OpenApiPieces(jsonV2)
  for (let at = 0; at < 20; at++) add(`crd ${at}`)
  const whole = parsed(await pieces.document(input, catalog))
  assert.equal(made.length, 20)
  assert.deepEqual([whole.swagger, Object.keys(whole.paths).includes('/version/')], ['2.0', true])
  made.length = 0
  add('crd 20')
  add('crd 3', 'crd 3, changed')
  catalog.remove('crd 4')
  await pieces.document(input, catalog)
  assert.deepEqual(made.sort(), ['crd 20', 'crd 3, changed'])
})

test('API-15 definitions of another server are added, and existing ones stay', async () => {
  const catalog = new Catalog()
  const v2 = { paths: { '/version/': { get: 2 }, '/b': { get: 2 } }, definitions: { B: {} }, parameters: {} }
  catalog.set('foreign', { revision: 'f', groupVersions: [], entries: [], openApi: { v2, v3: new Map() } })
  const own = parsed(await new OpenApiPieces(jsonV2).document(input, new Catalog()))
  const { paths, definitions } = parsed(await new OpenApiPieces(jsonV2).document(input, catalog))
  assert.deepEqual(paths, { ...own.paths, '/b': { get: 2 } })
  assert.deepEqual(definitions, { ...own.definitions, B: {} })
})
