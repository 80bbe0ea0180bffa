/** After a power cut the machine boots, and systemd starts the cluster without a command. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { test } from 'node:test'
import { eventually, hostTraces, LocalCluster, skiffBin } from '../../e2e/support/localCluster.ts'
import { command, slowMs } from '../support/machineCluster.ts'
import { rebooted } from '../support/rebooted.ts'

const options = { timeout: 3 * slowMs }
const cluster = LocalCluster.at(rebooted.name, rebooted.directory)

test('ARC-01 the cluster is ready after the boot, without a command, and its pod runs again', options, async () => {
  const status = async () => (await cluster.run(process.execPath, [skiffBin, 'status', cluster.name, '-o', 'json'], slowMs)).stdout
  await eventually('the cluster is ready', 2 * slowMs, status, (text) => text.startsWith('{') && JSON.parse(text).ready)
  assert.equal(await cluster.must(['get', 'configmap', 'kept', '-o', 'jsonpath={.data.color}'], slowMs), 'blue')
  await cluster.must(['wait', '--for=condition=Ready', '--timeout=240s', 'node', '--all'], slowMs)
  const restarts = () =>
    cluster.must(
      ['get', 'pod', 'kept', '-o', 'jsonpath={.status.phase} {.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}'],
      slowMs,
    )
  await eventually('the pod runs again', slowMs, restarts, (text) => /^Running true [1-9]/.test(text))
})

test('ARC-04 delete removes the unit, and leaves nothing on the machine', options, async () => {
  await command(cluster, 'delete', cluster.name)
  const units = execFileSync('systemctl', ['list-unit-files'], { encoding: 'utf8' })
  assert.doesNotMatch(units, /skiff/)
  for (const [kind, left] of Object.entries(hostTraces())) assert.deepEqual(left, [], kind)
  fs.rmSync(rebooted.directory, { recursive: true, force: true })
})
