/** What `skiff calls` asks the nodes, and how it shows their answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '#api/machinery/status'
import type { ApiRequest, Transport } from '#client/transport'
import { CommandError } from '../exitCodes.ts'
import { createReader } from '../net/reader.ts'
import { describeCalls, findCalls } from './calls.ts'

const call = { api: 'CSI', method: 'NodeStageVolume', time: '2026-01-01T00:00:00.000Z', milliseconds: 12, code: 'OK', volume: 'h', request: '{}', answer: '{}' }
const view = '/apis/node.skiff.dev/v1alpha1/nodecalls'
const objects: Readonly<Record<string, object>> = {
  '/api/v1/namespaces/d/pods/web': { spec: { nodeName: 'n1' } },
  '/api/v1/namespaces/d/pods/waiting': { spec: {} },
  '/api/v1/namespaces/d/persistentvolumeclaims/data': { spec: { volumeName: 'pv-1' } },
  '/api/v1/namespaces/d/persistentvolumeclaims/local': { spec: { volumeName: 'pv-2' } },
  '/api/v1/namespaces/d/persistentvolumeclaims/unbound': { spec: {} },
  '/api/v1/persistentvolumes/pv-1': { spec: { csi: { volumeHandle: 'h' } } },
  '/api/v1/persistentvolumes/pv-2': { spec: { local: { path: '/x' } } },
  '/api/v1/nodes': { items: ['n1', 'n2', 'n3'].map((name) => ({ metadata: { name } })) },
  [`${view}/n1`]: { calls: [call, { ...call, method: 'NodePublishVolume', pod: 'd/web', code: 'NOT_FOUND', answer: 'no such volume' }] },
  [`${view}/n2`]: { calls: [] },
  [`${view}/n3`]: { error: 'timeout' },
}

function readerOf(asked: string[] = []) {
  const request = async ({ path, query = {} }: ApiRequest) => {
    if (path.startsWith(view)) asked.push(`${path} ${JSON.stringify(query)}`)
    const body = objects[path]
    if (!body) throw new StatusError('NotFound', `${path} not found`)
    return { status: 200, body, warnings: [] }
  }
  return createReader({ request } as unknown as Transport)
}

test('LRN-07 skiff calls asks the node of a pod, and every node for the volume of a claim; nodes without calls are left out', async () => {
  const asked: string[] = []
  const ofPod = await findCalls(readerOf(asked), 'pod/web', 'd')
  assert.deepEqual(
    ofPod.nodes.map(({ node, calls }) => [node, calls?.length]),
    [['n1', 2]],
  )
  const ofClaim = await findCalls(readerOf(asked), 'pvc/d/data', 'other')
  assert.deepEqual(
    ofClaim.nodes.map(({ node, calls, notShown }) => [node, calls?.length ?? notShown]),
    [
      ['n1', 2],
      ['n3', 'the kubelet of n3 does not answer: timeout'],
    ],
  )
  assert.deepEqual(asked, [`${view}/n1 {"pod":"d/web"}`, ...['n1', 'n2', 'n3'].map((node) => `${view}/${node} {"volume":"h"}`)])
})

test('LRN-07 skiff calls shows outcome, time, pod, arguments and answer of each call', async () => {
  assert.equal(
    describeCalls(await findCalls(readerOf(), 'pod/web', 'd')),
    `n1: 2 calls
  2026-01-01T00:00:00.000Z CSI NodeStageVolume: OK after 12 ms
    request {}
  2026-01-01T00:00:00.000Z CSI NodePublishVolume: NOT_FOUND after 12 ms, for pod d/web
    request {}
    answer  no such volume
`,
  )
  assert.match(describeCalls(await findCalls(readerOf(), 'pod/waiting', 'd')), /^no calls/)
})

for (const [object, message] of [
  ['pod/none', /there is no pod d\/none/],
  ['pvc/unbound', /claim d\/unbound has no volume/],
  ['pvc/local', /volume pv-2 has no CSI driver/],
] as const) {
  test(`LRN-07 skiff calls says why there is nothing to show for ${object}`, async () => {
    await assert.rejects(findCalls(readerOf(), object, 'd'), (error) => error instanceof CommandError && message.test(error.message))
  })
}
