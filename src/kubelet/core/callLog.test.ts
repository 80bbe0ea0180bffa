/** Which calls a node keeps, to which pod they belong, and which of their values are hidden. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { GrpcError } from '#grpc/grpcError'
import { createCallLog } from './callLog.ts'

const clock = new VirtualClock('2026-01-01T00:00:00Z')
const nothing = async () => ({})

test('LRN-07 a recorded call has its time, its answer and its pod, and a refused one has the code and the message', async () => {
  const log = createCallLog(clock)
  const request = { config: { metadata: { name: 'web', namespace: 'd', uid: 'u-1' } }, runtimeHandler: '' }
  await log.record({ api: 'CRI', method: 'RunPodSandbox', pod: 'd/web', podUid: 'u-1', request }, async () => ({ podSandboxId: 's' }))
  const refused = async () => {
    throw new GrpcError('NOT_FOUND', 'no such volume')
  }
  await assert.rejects(log.record({ api: 'CSI', method: 'NodePublishVolume', podUid: 'u-1', volume: 'v', request: { volumeId: 'v' } }, refused))
  const base = { time: '2026-01-01T00:00:00.000Z', milliseconds: 0, pod: 'd/web' }
  const sandbox = { ...base, api: 'CRI', method: 'RunPodSandbox', volume: undefined, code: 'OK', answer: '{"podSandboxId":"s"}' }
  assert.deepEqual(log.find({}), [
    { ...sandbox, request: '{"config":{"metadata":{"name":"web","namespace":"d","uid":"u-1"}}}' },
    { ...base, api: 'CSI', method: 'NodePublishVolume', volume: 'v', code: 'NOT_FOUND', answer: 'no such volume', request: '{"volumeId":"v"}' },
  ])
})

test('LRN-07 the calls of a pod include those for its volumes that name no pod, and none of another pod', async () => {
  const log = createCallLog(clock)
  await log.record({ api: 'CSI', method: 'NodeStageVolume', volume: 'v', request: {} }, nothing)
  await log.record({ api: 'CSI', method: 'NodePublishVolume', podUid: 'u-a', volume: 'v', request: {} }, nothing)
  await log.record({ api: 'CRI', method: 'RunPodSandbox', pod: 'd/a', podUid: 'u-a', request: {} }, nothing)
  await log.record({ api: 'CSI', method: 'NodePublishVolume', podUid: 'u-c', volume: 'v', request: {} }, nothing)
  await log.record({ api: 'CSI', method: 'NodePublishVolume', pod: 'd/b', volume: 'v', request: {} }, nothing)
  await log.record({ api: 'CSI', method: 'NodeStageVolume', volume: 'w', request: {} }, nothing)
  const shown = (wanted: Parameters<typeof log.find>[0]) =>
    log.find(wanted, (uid) => (uid === 'u-c' ? 'd/c' : undefined)).map(({ method, pod, volume }) => [method, pod, volume].join(' '))
  assert.deepEqual(shown({ pod: 'd/a' }), ['NodeStageVolume  v', 'NodePublishVolume d/a v', 'RunPodSandbox d/a '])
  assert.deepEqual(shown({ pod: 'd/c' }), ['NodeStageVolume  v', 'NodePublishVolume d/c v'])
  assert.deepEqual(shown({ volume: 'w' }), ['NodeStageVolume  w'])
})

test('LRN-07 secrets, tokens, credentials of registries and values of environment variables are not kept', async () => {
  const log = createCallLog(clock)
  const secret = 'hunter2'
  const request = {
    volumeId: 'v',
    secrets: { key: secret },
    publishContext: { login: secret },
    volumeContext: { 'csi.storage.k8s.io/serviceAccount.tokens': secret, plain: 'shown' },
    auth: { username: 'u', password: secret },
    config: { envs: [{ key: 'PASSWORD', value: Buffer.from(secret) }] },
  }
  await log.record({ api: 'CSI', method: 'NodePublishVolume', volume: 'v', request }, nothing)
  const text = JSON.stringify(log.find({}))
  for (const kept of [secret, Buffer.from(secret).toString('base64'), [...Buffer.from(secret)].join()]) assert.ok(!text.includes(kept), kept)
  for (const shown of ['PASSWORD', 'plain', 'shown', '"volumeId\\":\\"v']) assert.ok(text.includes(shown), shown)
})

test('LRN-07 values of variables are not kept where they stand in the command, and neither are addresses of streams', async () => {
  const log = createCallLog(clock)
  const envs = ['hunter2', 'hunter2-and-more'].map((value, i) => ({ key: `PASSWORD_${i}`, value: Buffer.from(value) }))
  const config = { envs, command: ['/app'], args: ['--password=hunter2-and-more', 'hunter2', '--port=80'] }
  await log.record({ api: 'CRI', method: 'CreateContainer', request: { config } }, nothing)
  await log.record({ api: 'CRI', method: 'Exec', request: { cmd: ['date'] } }, async () => ({ url: 'http://127.0.0.1:1/exec/t0ken' }))
  const [created, exec] = log.find({})
  assert.equal(created?.request, '{"config":{"envs":["PASSWORD_0","PASSWORD_1"],"command":["/app"],"args":["--password=***","***","--port=80"]}}')
  assert.equal(exec?.answer, '{"url":"***"}')
})

test('LRN-07 the log keeps the last 500 calls, and 2 KiB of each text', async () => {
  const log = createCallLog(clock)
  for (let index = 0; index < 510; index++) await log.record({ api: 'CRI', method: `M${index}`, request: { text: 'x'.repeat(5000) } }, nothing)
  const kept = log.find({})
  assert.deepEqual([kept.length, kept[0]?.method, kept[0]?.request.length], [500, 'M10', 2049])
})

test('LRN-07 a call that the runtime made stands where it began, among those of its pod, and long texts are shortened', async () => {
  const log = createCallLog(clock)
  const request = { podSandboxId: 's' }
  await log.record({ api: 'CRI', method: 'RunPodSandbox', pod: 'd/web', podUid: 'u-1', request }, nothing)
  await clock.advance(100)
  await log.record({ api: 'CRI', method: 'CreateContainer', pod: 'd/web', podUid: 'u-1', request }, nothing)
  const time = new Date(clock.now() - 50).toISOString()
  log.add({ api: 'CNI', method: 'ADD ptp', time, milliseconds: 30, code: 'OK', podUid: 'u-1', request: 'x'.repeat(5000), answer: '{}' })
  const found = log.find({ pod: 'd/web' })
  assert.deepEqual(
    found.map(({ method }) => method),
    ['RunPodSandbox', 'ADD ptp', 'CreateContainer'],
  )
  assert.deepEqual([found[1]?.request.length, found[1]?.pod], [2049, 'd/web'])
})
