import assert from 'node:assert/strict'
import test from 'node:test'
import { Catalog, type CatalogSource } from '../catalog.ts'
import { OpenApiPieces } from './openapiPieces.ts'

const input = { resources: [], describe: () => undefined, serverVersion: 'v1.36.0', extras: [] }
const builtIn = () => ({ swagger: '2.0', paths: { '/a': { get: 1 } }, definitions: { A: { type: 'object' } }, parameters: {} })

test('API-15 a new definition costs its own piece of the document, and others have their turn between pieces', async () => {
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
  const pieces = new OpenApiPieces()
  const document = async () => JSON.parse(Buffer.from(await pieces.document(builtIn, input, catalog)).toString()) as ReturnType<typeof builtIn>
  for (let at = 0; at < 20; at++) add(`crd ${at}`)
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const whole = await document()
  isOver = true
  assert.equal(made.length, 20)
  assert.ok(turns >= 20, `${turns} turns`)
  assert.deepEqual([whole.swagger, whole.paths['/a'], whole.definitions.A], ['2.0', { get: 1 }, { type: 'object' }])
  made.length = 0
  add('crd 20')
  add('crd 3', 'crd 3, changed')
  catalog.remove('crd 4')
  await document()
  assert.deepEqual(made.sort(), ['crd 20', 'crd 3, changed'])
})

test('API-15 what another server says is added, and what is there already stays', async () => {
  const catalog = new Catalog()
  const v2 = { paths: { '/a': { get: 2 }, '/b': { get: 2 } }, definitions: { B: {} }, parameters: {} }
  catalog.set('foreign', { revision: 'f', groupVersions: [], entries: [], openApi: { v2, v3: new Map() } })
  const bytes = await new OpenApiPieces().document(builtIn, input, catalog)
  assert.deepEqual(JSON.parse(Buffer.from(bytes).toString()), {
    swagger: '2.0',
    paths: { '/a': { get: 1 }, '/b': { get: 2 } },
    definitions: { A: { type: 'object' }, B: {} },
    parameters: {},
  })
})
