/** /configz shows the values of the controllers' flags under upstream's names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOptions } from '../apiserver/options/readOptions.ts'
import { controllerManagerGroups } from '../layouts/controllerManager.ts'
import { configzOf } from './configz.ts'
import { controllersConfigz } from './controllersConfigz.ts'

const noFiles = { file: (path: string) => ({ path, read: () => Promise.reject(new Error(`${path} cannot be read`)), follow: () => {} }) }

async function shown(args: readonly string[]): Promise<Record<string, Record<string, unknown>>> {
  const { controllers, volumes } = await readOptions(controllerManagerGroups, ['--kubeconfig=/k', ...args], noFiles)
  return configzOf(controllersConfigz({ ...controllers.options, ...volumes })) as Record<string, Record<string, unknown>>
}

test('OBS-09 CTL-22 /configz names each controller’s settings as upstream does', async () => {
  const told = await shown(['--concurrent-gc-syncs=7', '--max-endpoints-per-slice=250', '--pvclaimbinder-sync-period=3s', '--disable-force-detach-on-timeout'])
  assert.deepEqual(told.GarbageCollectorController, { ConcurrentGCSyncs: 7 })
  assert.deepEqual(told.EndpointSliceController, { ConcurrentServiceEndpointSyncs: 5, MaxEndpointsPerSlice: 250, EndpointUpdatesBatchPeriod: '0s' })
  assert.equal(told.PersistentVolumeBinderController?.PVClaimBinderSyncPeriod, '3s')
  assert.deepEqual(told.AttachDetachController, {
    DisableAttachDetachReconcilerSync: false,
    ReconcilerSyncLoopPeriod: '1m0s',
    DisableForceDetachOnTimeout: true,
  })
  assert.equal(told.TTLAfterFinishedController?.ConcurrentTTLSyncs, 5)
  assert.equal(told.SAController?.ConcurrentSATokenSyncs, 5)
})

test('CTL-22 --max-endpoints-per-slice above 1000 and a zero sync period are refused', async () => {
  const faults = (...args: string[]) =>
    shown(args).then(
      () => assert.fail('taken'),
      (error: unknown) => String((error as Error).message),
    )
  assert.match(await faults('--max-endpoints-per-slice=1001'), /max-endpoints-per-slice must be between 1 and 1000, but got 1001/)
  assert.match(await faults('--namespace-sync-period=0s'), /--namespace-sync-period must be greater than zero/)
  assert.match(await faults('--pvclaimbinder-sync-period=0s'), /pvclaimbinder-sync-period must be greater than 0/)
})
