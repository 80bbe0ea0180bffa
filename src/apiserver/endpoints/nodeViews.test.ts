/** Lists of node.skiff.dev over thousands of kubelets that lie: they stay bounded in memory and time, and so do the turns of the event loop. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import type { Schema } from '#api/schema/schema'
import { VirtualClock } from '#base/virtualClock'
import { longestTurn } from '#testing/longestTurn'
import type { ObjectReader } from '../core/objectReader.ts'
import type { KubeletClient } from './kubeletClient.ts'
import { type NodeView, nodeViewGroup } from './nodeViews.ts'

const text: Schema = { type: 'string' }
const struct = (name: string, fields: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  definition: `test.${name}`,
  fields: new Map(Object.entries(fields).map(([field, schema]) => [field, { name: field, schema, required: false }])),
})
const part = struct('Part', { name: text, count: { type: 'integer', format: 'int64' } })
const schema = struct('Whole', { kind: text, apiVersion: text, parts: { type: 'array', element: part }, error: text })
const view: NodeView = { resource: 'wholes', kind: 'Whole', schema, columns: [], texts: {}, parts: [], parameters: ['part'] }

interface Viewed extends KubeObject {
  readonly parts?: readonly object[]
  readonly error?: string
}

type Answer = (signal: AbortSignal) => Promise<string>

/** The view of nodes whose kubelets all answer alike. */
function viewed(nodeCount: number, answer: Answer, clock = new VirtualClock()) {
  const nodes = Array.from({ length: nodeCount }, (_, index) => ({ metadata: { name: `n${index}` } }))
  const asked: string[] = []
  const reader = { list: () => nodes, get: (_: unknown, __: string, name: string) => nodes.find(({ metadata }) => metadata.name === name) }
  const paths: string[] = []
  const get: KubeletClient['get'] = async (nodeName, path, { limitBytes, signal }) => {
    asked.push(nodeName)
    paths.push(path)
    const body = Buffer.from(await answer(signal))
    if (body.length > limitBytes) throw new Error(`the answer is larger than ${limitBytes} bytes`)
    return { status: 200, body }
  }
  const { resources } = nodeViewGroup([view], { reader: reader as unknown as ObjectReader, kubelets: { get }, clock })
  const [resource] = resources
  if (!resource?.list || !resource.get) throw new Error('the view is not there')
  const { list, get: getOne } = resource
  const request = { user: { name: 'u', groups: [] }, namespace: '', signal: new AbortController().signal }
  return {
    asked,
    paths,
    list: async () => (await list({ ...request, selects: () => true })) as Viewed[],
    get: async (name: string, query?: URLSearchParams) => (await getOne({ ...request, name, query })) as Viewed,
  }
}

const bytesOf = (found: readonly object[]) => found.reduce((sum, one) => sum + JSON.stringify(one).length, 0)
const mebibytes = (count: number) => count * 2 ** 20

test('KUB-17 the views of 5,000 nodes take a bounded number of bytes together, and the rest of the nodes is listed with the reason', async () => {
  const large = JSON.stringify({ parts: [{ name: 'x'.repeat(1_000_000) }] })
  const { list, asked } = viewed(5_000, async () => large)
  const found = await list()
  assert.equal(found.length, 5_000)
  assert.ok(bytesOf(found) < mebibytes(64 + 16), `${bytesOf(found)}`)
  assert.ok(asked.length < 100, `${asked.length} kubelets were asked`)
  assert.equal(found.at(-1)?.error, 'the kubelet was not asked: the answers of other nodes are too large together')
})

test('KUB-17 answers of the smallest values count with what they take in memory', async () => {
  const small = JSON.stringify({ parts: Array.from({ length: 8_000 }, () => ({})) })
  assert.ok(small.length < 25_000)
  const found = await viewed(1_000, async () => small).list()
  const values = found.reduce((sum, { parts = [] }) => sum + parts.length, 0)
  assert.ok(values > 8_000 && values < 700_000, `${values} values`)
  const tooMany = JSON.stringify({ parts: Array.from({ length: 12_000 }, () => ({})) })
  assert.equal((await viewed(1, async () => tooMany).get('n0')).error, 'the answer has more than 20000 values')
})

test('KUB-17 the reason why a kubelet has no view is short and has no control characters', async () => {
  const found = await viewed(50, async () => JSON.stringify({ kind: `\u001b[2J${'x'.repeat(500_000)}`, apiVersion: 'v1', parts: 'none' })).list()
  assert.ok(bytesOf(found) < 50_000, `${bytesOf(found)}`)
  assert.match(found[0]?.error ?? '', /^\\u001b\[2Jx+\.\.\.$/)
})

test('KUB-17 a kubelet cannot say why there is no view', async () => {
  assert.equal((await viewed(1, async () => JSON.stringify({ error: 'trust me', parts: [] })).get('n0')).error, undefined)
})

test('KUB-17 a list of 5,000 nodes whose kubelets hang ends after 20 seconds', async () => {
  const clock = new VirtualClock()
  const { list, asked } = viewed(5_000, () => new Promise(() => {}), clock)
  const listed = list()
  await clock.advance(20_000)
  const found = await listed
  assert.equal(found[0]?.error, 'context deadline exceeded')
  assert.equal(found.at(-1)?.error, 'the kubelet was not asked: other kubelets took too long to answer')
  assert.ok(asked.length < 200)
})

test('KUB-17 answers that arrive together do not make one long turn of the event loop', async () => {
  const parts = Array.from({ length: 6_000 }, (_, index) => ({ name: `part-${index}`, count: 1 }))
  const full = JSON.stringify({ parts })
  const { list } = viewed(32, async () => full)
  // The first list also compiles the code, which takes as long as half of the answers.
  await list()
  // Twice, so that the bound is longer than a slice on every line of Node.js. Without pauses, the answers of all 16 workers take one turn: a quarter.
  const { longestMs, totalMs } = await longestTurn(async () => {
    await list()
    await list()
  })
  assert.ok(longestMs < totalMs / 5, `a turn of ${Math.round(longestMs)} ms in ${Math.round(totalMs)} ms`)
})

test('KUB-17 the kubelet is given the parameters that its view has, escaped, and no others', async () => {
  const { get, paths } = viewed(1, async () => '{}')
  await get('n0', new URLSearchParams('part=a%2Fb%26c&other=x&part=d'))
  await get('n0', new URLSearchParams('other=x'))
  assert.deepEqual(paths, ['/views/wholes?part=a%2Fb%26c&part=d', '/views/wholes'])
})
