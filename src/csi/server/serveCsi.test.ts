/** The library under CSI drivers, called through its socket: capabilities, checks, order, refusals. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { csiProto } from '#grpc/proto/csi'
import { connectUnixService } from '#grpc/unixService'
import { type CsiDriver, CsiError } from './csiTypes.ts'
import { serveCsi } from './serveCsi.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'csi-'))
after(() => rmSync(directory, { recursive: true }))
let sockets = 0

type Call = (service: 'Identity' | 'Controller' | 'Node', method: string, request?: object) => Promise<never>

async function withDriver(driver: Partial<CsiDriver>, work: (call: Call) => Promise<void>): Promise<void> {
  const socket = path.join(directory, `${sockets++}.sock`)
  const server = await serveCsi({ name: 'test.csi.skiff.dev', version: '1', ...driver }, `unix://${socket}`)
  const services = new Map(
    (['Identity', 'Controller', 'Node'] as const).map((name) => [name, connectUnixService(csiProto, `csi.v1.${name}`, `unix:${socket}`)]),
  )
  try {
    await work((service, method, request = {}) => services.get(service)?.call(method, request, 10_000) as Promise<never>)
  } finally {
    for (const service of services.values()) service.close()
    await server.close()
  }
}

const validateVolumeCapabilities = () => ({ message: 'none' })
const capability = { mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }
const hasCode = (code: string) => (error: { code?: string }) => error.code === code

test('STO-08 the capabilities of a driver follow from its methods', () =>
  withDriver(
    { controller: { validateVolumeCapabilities, createVolume: () => ({ volume: { volumeId: 'a', capacityBytes: 1 } }), deleteVolume: () => {} } },
    async (call) => {
      assert.deepEqual(await call('Controller', 'ControllerGetCapabilities'), { capabilities: [{ rpc: { type: 'CREATE_DELETE_VOLUME' } }] })
      assert.deepEqual(await call('Identity', 'GetPluginCapabilities'), {
        capabilities: [{ service: { type: 'CONTROLLER_SERVICE' }, volumeExpansion: null }],
      })
      assert.deepEqual(await call('Identity', 'Probe'), { ready: { value: true } })
      await assert.rejects(call('Controller', 'ListVolumes'), hasCode('UNIMPLEMENTED'))
      await assert.rejects(call('Node', 'NodeGetInfo'), hasCode('UNIMPLEMENTED'))
    },
  ))

const faults = [
  { name: 'no name', request: { volumeCapabilities: [capability] } },
  { name: 'no capability', request: { name: 'a' } },
  { name: 'a capability without an access type', request: { name: 'a', volumeCapabilities: [{ accessMode: capability.accessMode }] } },
  { name: 'a capability with two access types', request: { name: 'a', volumeCapabilities: [{ ...capability, block: {} }] } },
  { name: 'a capability without an access mode', request: { name: 'a', volumeCapabilities: [{ mount: {} }] } },
  { name: 'a name of 129 bytes', request: { name: 'a'.repeat(129), volumeCapabilities: [capability] } },
  { name: 'a name with a zero byte', request: { name: 'a\0', volumeCapabilities: [capability] } },
  { name: 'parameters of more than 4 KiB', request: { name: 'a', volumeCapabilities: [capability], parameters: { a: 'b'.repeat(4096) } } },
  { name: 'a limit below the required size', request: { name: 'a', volumeCapabilities: [capability], capacityRange: { requiredBytes: 2, limitBytes: 1 } } },
  { name: 'a negative size', request: { name: 'a', volumeCapabilities: [capability], capacityRange: { requiredBytes: -1 } } },
]
test('STO-08 a request with invalid arguments is refused before the driver is called', async () => {
  let calls = 0
  const createVolume = () => {
    calls++
    return { volume: { volumeId: 'a', capacityBytes: 1 } }
  }
  await withDriver({ controller: { validateVolumeCapabilities, createVolume } }, async (call) => {
    for (const { name, request } of faults) await assert.rejects(call('Controller', 'CreateVolume', request), hasCode('INVALID_ARGUMENT'), name)
    assert.equal(calls, 0)
    await call('Controller', 'CreateVolume', { name: 'a'.repeat(128), volumeCapabilities: [capability] })
    assert.equal(calls, 1)
  })
})

test('STO-09 a second operation for a volume is aborted while the first one runs, and one for another volume is not', async () => {
  const first = deferred()
  const started = deferred()
  const deleteVolume = ({ volumeId }: { readonly volumeId: string }) => {
    started.resolve()
    return volumeId === 'a' ? first.promise : undefined
  }
  await withDriver({ controller: { validateVolumeCapabilities, deleteVolume } }, async (call) => {
    const running = call('Controller', 'DeleteVolume', { volumeId: 'a' })
    await started.promise
    await assert.rejects(call('Controller', 'DeleteVolume', { volumeId: 'a' }), hasCode('ABORTED'))
    await call('Controller', 'DeleteVolume', { volumeId: 'b' })
    first.resolve()
    await running
    await call('Controller', 'DeleteVolume', { volumeId: 'a' })
  })
})

test('STO-08 a driver that throws is answered with the code of its CsiError, RESOURCE_EXHAUSTED on a full disk, else INTERNAL', async () => {
  const errors = [new CsiError('OUT_OF_RANGE', 'too large'), Object.assign(new Error('full'), { code: 'ENOSPC' }), new Error('broken')]
  const deleteVolume = () => {
    throw errors.shift()
  }
  await withDriver({ controller: { validateVolumeCapabilities, deleteVolume } }, async (call) => {
    for (const code of ['OUT_OF_RANGE', 'RESOURCE_EXHAUSTED', 'INTERNAL'])
      await assert.rejects(call('Controller', 'DeleteVolume', { volumeId: 'a' }), hasCode(code))
  })
})

function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve: () => resolve() }
}
