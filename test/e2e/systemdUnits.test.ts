/** HA-01: a cluster as a service of a real systemd: installed, killed, stopped, over a reboot, and uninstalled. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { until } from '../support/until.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { obstacleToSystemd, type SystemdHost, startSystemdHost } from './support/systemdHost.ts'

const skip = obstacleToCluster(false) || obstacleToSystemd
const options = { skip, timeout: 240_000 }
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-systemd-'))
let host: SystemdHost
let cluster: LocalCluster
let unit = ''

before(async () => {
  if (skip) return
  host = await startSystemdHost(directory)
  cluster = await LocalCluster.start('unit', ['--runtime', 'simulated', '--nodes', '0', '--simulated-nodes', '1', '-q'], host.enter)
})
after(async () => {
  await cluster?.delete()
  await host?.end()
  fs.rmSync(directory, { recursive: true, force: true })
})

interface Status {
  readonly running: boolean
  readonly ready: boolean
  readonly pids: readonly { readonly role: string; readonly pid: number }[]
}

async function status(): Promise<Status> {
  return JSON.parse((await cluster.skiff(['status', 'unit', '-o', 'json'])).stdout)
}
const untilReady = () => eventually('the cluster is ready', 120_000, status, (found) => found.ready)
const pidOf = (found: Status, role: string) => found.pids.find((one) => one.role === role)?.pid

test('HA-01 server install starts the cluster as a unit that is enabled, and its objects are those of before', options, async () => {
  await cluster.must(['create', 'configmap', 'kept'])
  const { code, stderr } = await cluster.skiff(['server', 'install', 'unit'])
  assert.equal(code, 0, stderr)
  unit = /(skiff-\w+\.service) runs cluster "unit"/.exec(stderr)?.[1] ?? ''
  assert.equal(await host.systemctl('is-enabled', unit), 'enabled')
  assert.equal(await host.systemctl('is-active', unit), 'active')
  await untilReady()
  await cluster.must(['get', 'configmap', 'kept'])
})

test('HA-01 systemd starts another supervisor for one that was killed, which takes over the server that runs', options, async () => {
  const before = await untilReady()
  const supervisor = pidOf(before, 'supervisor')
  assert.ok(supervisor)
  const killed = await cluster.run('kill', ['-KILL', String(supervisor)])
  assert.equal(killed.code, 0, killed.stderr)
  const isReplaced = (found: Status) => found.ready && (pidOf(found, 'supervisor') ?? supervisor) !== supervisor
  const later = await eventually('another supervisor', 60_000, status, isReplaced)
  assert.equal(pidOf(later, 'server'), pidOf(before, 'server'))
  assert.equal(await host.systemctl('is-active', unit), 'active')
})

test('HA-01 systemctl stop stops the cluster, and systemctl start finds its objects again', options, async () => {
  await host.systemctl('stop', unit)
  assert.equal((await status()).running, false)
  assert.equal(await host.systemctl('is-active', unit), 'inactive')
  await host.systemctl('start', unit)
  await untilReady()
  await cluster.must(['get', 'configmap', 'kept'])
})

test('HA-01 the cluster runs again after a power cut of the host, without a command', options, async () => {
  // The start of the test before may still hold its lock. Processes have other numbers in each of these hosts, so that only the first one finds it stale.
  const lock = path.join(cluster.dir, 'home/clusters/unit.lock')
  await until('the command that started the cluster has ended', () => fs.lstatSync(lock, { throwIfNoEntry: false }) === undefined, { timeoutMs: 60_000 })
  await host.reboot()
  await untilReady()
  await cluster.must(['get', 'configmap', 'kept'])
  assert.equal(await host.systemctl('is-active', unit), 'active')
})

test('HA-01 server uninstall stops the cluster and removes the unit, and the cluster starts without it', options, async () => {
  const { code, stderr } = await cluster.skiff(['server', 'uninstall', 'unit'])
  assert.equal(code, 0, stderr)
  assert.equal((await status()).running, false)
  assert.deepEqual(
    fs.readdirSync(path.join(directory, 'units'), { recursive: true }).filter((name) => String(name).includes('skiff')),
    [],
  )
  assert.equal(await host.systemctl('is-enabled', unit), '')
  assert.equal((await cluster.skiff(['start', 'unit', '-q'])).code, 0)
  await cluster.must(['get', 'configmap', 'kept'])
})
