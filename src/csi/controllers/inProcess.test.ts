/** A driver of this process is given up as one behind a socket is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { GrpcError } from '#grpc/grpcError'
import type { CsiDriver } from '../server/csiTypes.ts'
import { connectInProcess } from './inProcess.ts'

/** Its volumes are never made. */
const hanging: CsiDriver = {
  ...{ name: 'hanging.csi.example.com', version: '1' },
  controller: {
    createVolume: () => new Promise<never>(() => {}),
    deleteVolume: () => {},
    validateVolumeCapabilities: () => ({ confirmed: { volumeCapabilities: [] } }),
  },
}

const request = { name: 'one', volumeCapabilities: [{ mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }] } as const

test('STO-08 a call that a driver of this process does not answer ends with its deadline', async () => {
  const clock = new VirtualClock()
  const call = connectInProcess(hanging, clock).call('createVolume', request, 10_000, new AbortController().signal)
  const ended = assert.rejects(call, ({ code, message }: GrpcError) => code === 'DEADLINE_EXCEEDED' && message.endsWith('context deadline exceeded'))
  await clock.advance(10_000)
  await ended
})

test('STO-08 a call of a driver of this process ends with its signal, and is not made after it', async () => {
  const connection = connectInProcess(hanging, new VirtualClock())
  const stop = new AbortController()
  const call = connection.call('createVolume', request, 10_000, stop.signal)
  stop.abort(new Error('the controllers end'))
  await assert.rejects(call, /^Error: the controllers end$/)
  await assert.rejects(connection.identity('GetPluginInfo', 1000, stop.signal), /^Error: the controllers end$/)
})
