/** The host path driver is not turned off while it has volumes, and is on when every node has registered it. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { ApiProbe } from './apiProbe.ts'
import { type ClusterPaths, type ClusterState, clusterPaths } from './clusterState.ts'
import { csiHostPath } from './csiHostPathAddon.ts'

const driver = 'hostpath.csi.skiff.dev'
const state: ClusterState = { name: 'a', id: '0000', port: 40_000, nodes: [{ name: 'n', index: 0 }], simulatedNodes: ['s'], verbosity: 2 }
const volumes = '/api/v1/persistentvolumes'
const contents = '/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents'
const csiNodes = '/apis/storage.k8s.io/v1/csinodes'

const empty = clusterPaths('/nowhere', 'a')

/** Paths that are not named are 404. */
function probeOf(lists: Readonly<Record<string, readonly object[]>>): ApiProbe {
  const get = async (path: string) => (lists[path] ? { status: 200, body: JSON.stringify({ items: lists[path] }) } : { status: 404, body: '{}' })
  return { get } as unknown as ApiProbe
}

const volume = (name: string, of: string) => ({ metadata: { name }, spec: { csi: { driver: of } } })
const registered = (name: string, ...drivers: readonly string[]) => ({ metadata: { name }, spec: { drivers: drivers.map((one) => ({ name: one })) } })

test('STO-08 the driver is not turned off while it has a volume or a snapshot, which are named', async () => {
  const probe = probeOf({ [volumes]: [volume('pv-1', driver), volume('pv-2', 'another')], [contents]: [{ metadata: { name: 'snap-1' }, spec: { driver } }] })
  await assert.rejects(async () => csiHostPath.checkRemoval?.(probe, empty, state), {
    exit: 'conflict',
    message: 'the driver has volumes or snapshots that would be lost: 2',
    details: ['pv-1', 'snap-1'],
  })
  await csiHostPath.checkRemoval?.(probeOf({ [volumes]: [volume('pv-2', 'another')] }), empty, state)
  const silent = { get: async () => undefined } as unknown as ApiProbe
  await assert.rejects(async () => csiHostPath.checkRemoval?.(silent, empty, state), { exit: 'timeout' })
})

async function withDriverState(directoryOf: (paths: ClusterPaths) => string, run: (paths: ClusterPaths) => Promise<void>): Promise<void> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'skiff-hostpath-'))
  try {
    const paths = clusterPaths(home, 'a')
    await mkdir(directoryOf(paths), { recursive: true })
    await writeFile(path.join(directoryOf(paths), 'state.json'), JSON.stringify({ volumes: [{ id: 'vol-1' }], snapshots: [{ id: 'snap-1' }], groups: [] }))
    await run(paths)
  } finally {
    await rm(home, { recursive: true })
  }
}

for (const [node, directoryOf] of [
  ['real', (paths: ClusterPaths) => path.join(paths.node('n'), 'kubelet/plugins', driver, 'state')],
  ['simulated', (paths: ClusterPaths) => path.join(paths.dir, 'csi-hostpath/s')],
] as const)
  test(`SDR-06 STO-08 the driver is not turned off while a ${node} node has a snapshot that no object names, as those of backups`, () =>
    withDriverState(directoryOf, async (paths) => {
      const volumeObject = { metadata: { name: 'pv-1' }, spec: { csi: { driver, volumeHandle: 'vol-1' } } }
      await assert.rejects(async () => csiHostPath.checkRemoval?.(probeOf({ [volumes]: [volumeObject] }), paths, state), {
        exit: 'conflict',
        details: ['pv-1', 'snap-1, which no object of the API names'],
      })
      const content = { metadata: { name: 'content-1' }, spec: { driver }, status: { snapshotHandle: 'snap-1' } }
      await assert.rejects(async () => csiHostPath.checkRemoval?.(probeOf({ [volumes]: [volumeObject], [contents]: [content] }), paths, state), {
        details: ['pv-1', 'content-1'],
      })
    }))

test('STO-11 the driver is on when every node has registered it, and off when none has and its objects are gone', async () => {
  const some = probeOf({ [csiNodes]: [registered('n', driver), registered('s', 'another')] })
  assert.equal(await csiHostPath.isThere(state, some), undefined)
  assert.equal(await csiHostPath.isGone(state, some), undefined)
  const all = probeOf({ [csiNodes]: [registered('n', driver), registered('s', 'another', driver)] })
  assert.equal(await csiHostPath.isThere(state, all), true)
  assert.equal(await csiHostPath.isThere({ ...state, addedNodes: [{ first: 2, count: 1, like: {} }] }, all), undefined, 'an added node lacks it')
  const silent = { get: async (path: string) => (path === csiNodes ? undefined : { status: 404, body: '{}' }) } as unknown as ApiProbe
  assert.deepEqual([await csiHostPath.isThere(state, silent), await csiHostPath.isGone(state, silent)], [undefined, undefined], 'no answer yet')
  assert.equal(await csiHostPath.isGone(state, probeOf({ [csiNodes]: [registered('n'), { metadata: { name: 's' }, spec: { drivers: null } }] })), true)
})
