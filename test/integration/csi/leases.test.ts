/** The controllers of a driver and upstream's sidecars: one of both acts, by the Lease. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatMicroTime } from '#base/time'
import { leases, volumeAttachments } from '#client/builtIn'
import type { TestCluster } from '#testing/cluster'
import { CsiCluster, driverName, leaseNamespace } from './csiSetup.ts'

const name = 'hostpath-csi-skiff-dev'

test("STO-08 a controller stands back while upstream's sidecar holds its Lease, the others act, and it acts when the Lease is given up", async () => {
  const now = () => formatMicroTime(Date.now())
  const prepare = ({ client }: TestCluster) =>
    client.of(leases).create({
      metadata: { namespace: leaseNamespace, name },
      spec: { holderIdentity: 'sidecar', leaseDurationSeconds: 3600, acquireTime: now(), renewTime: now(), leaseTransitions: 0 },
    })
  await using csi = await CsiCluster.start({ hasLeases: true, prepare })
  const { client } = csi.cluster
  await csi.addClass('fast')
  await csi.addClaim('data', 'fast')
  const source = { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], csi: { driver: driverName, volumeHandle: 'none' } } }
  await client.of(volumeAttachments).create({ metadata: { name: 'one' }, spec: { attacher: driverName, nodeName: 'n1', source } })
  const attempted = await csi.cluster.until(async () => (await client.of(volumeAttachments).get({ name: 'one' })).status?.attachError?.message, 30_000)
  assert.match(attempted, /code = NotFound/)
  assert.deepEqual(await csi.volumeIds(), [])
  const { items } = await client.of(leases).list({ namespace: leaseNamespace })
  const holders = Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec?.holderIdentity]))
  assert.deepEqual([holders[name], holders[`external-attacher-leader-${name}`]], ['sidecar', 'test'])
  await client.of(leases).patch({ namespace: leaseNamespace, name }, 'merge', { spec: { holderIdentity: '', leaseDurationSeconds: 1 } })
  await csi.boundVolume('data')
})
