import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isEnabled } from '#controllers/framework/manager'
import { controllers } from '#controllers/index'
import { readOptions } from '../apiserver/options/readOptions.ts'
import { localControllerGroups } from '../component/options/local.ts'
import { controllerArgs } from './controllerArgs.ts'

const plan = { clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16', clusterDns: '10.96.0.10', clusterDomain: 'cluster.local', apiClusterIp: '10.96.0.1' }
const noFiles = {
  file: () => {
    throw new Error('no flag of this test names a file')
  },
}

/** The controllers that do not run with these flags of the user. */
async function off(...own: string[]): Promise<string[]> {
  const { controllers: told } = await readOptions(localControllerGroups, controllerArgs(plan, own), noFiles)
  return controllers.filter((one) => !isEnabled(one, told.controllers)).map(({ name }) => name)
}

test('CTL-22 all controllers run in a local cluster, and flags of the user turn any of them off', async () => {
  assert.deepEqual(await off(), [])
  for (const name of ['local-path-provisioner-controller', 'token-cleaner-controller', 'service-lb-controller']) {
    assert.deepEqual(await off(`--controllers=*,-${name}`), [name])
  }
  assert.deepEqual(await off('--allocate-node-cidrs=false'), ['node-ipam-controller'])
})
