/** The cluster that the second boot finds: it starts with the machine. The power is cut while it runs. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { create, podOf, slowMs, startOnMachine, untilReady } from '../support/machineCluster.ts'
import { rebooted } from '../support/rebooted.ts'

test('ARC-01 a cluster with --autostart has a unit of systemd that is enabled', { timeout: 3 * slowMs }, async () => {
  const cluster = await startOnMachine(rebooted.name, rebooted.directory, ['--autostart'])
  await create(
    cluster,
    { ...podOf('kept', { spec: { restartPolicy: 'Always' } }) },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { color: 'blue' } },
  )
  await untilReady(cluster, 'kept')
  const units = execFileSync('systemctl', ['list-unit-files', '--state=enabled', 'skiff-*'], { encoding: 'utf8' })
  assert.match(units, /skiff-\w+\.service\s+enabled/)
})
