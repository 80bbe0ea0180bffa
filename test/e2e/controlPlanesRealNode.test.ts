/** HA-01: three servers and a real node: pods reach each server at an address of its own, and the node outlives the server that runs its agent. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { clusterId } from '#main/localCluster/clusterState'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { eventually, hostTraces, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { createNamespaceDialer } from './support/namespaceDialer.ts'

const skip = obstacleToEtcd() || obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
const traces = skip ? {} : hostTraces()
let cluster: LocalCluster

interface Status {
  readonly servers: readonly { readonly name: string; readonly ready: boolean; readonly leads: readonly string[] }[]
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', cluster.name, '-o', 'json'])).stdout) as Status
const agentOf = ({ pids }: Status) => pids.find(({ role }) => role === 'node')?.pid

before(async () => {
  if (!skip) cluster = await LocalCluster.start('e2e-ha-real', ['--control-planes', '3', '--nodes', '1'])
})
after(async () => {
  if (skip) return
  await cluster.delete()
  assert.deepEqual(hostTraces(), traces)
})

test('HA-01 the addresses of the kubernetes Service lead from the node to three servers', options, async () => {
  const path = '{.endpoints[*].addresses[0]} {.ports[0].port}'
  const words = (await cluster.must(['get', 'endpointslices', 'kubernetes', '-o', `jsonpath=${path}`])).split(' ')
  const port = Number(words.pop())
  assert.equal(new Set(words).size, 3)
  const dialer = createNamespaceDialer(`skiff-${clusterId(cluster.env.SKIFF_HOME as string, cluster.name)}-0`)
  try {
    for (const address of words) (await dialer.dial(address, port)).destroy()
  } finally {
    await dialer.close()
  }
})

test('HA-01 the agent of a node starts again after the kill of its server, and the node stays Ready', options, async () => {
  const before = await status()
  const { name } = before.servers.find(({ leads }) => leads.includes('nodes')) as Status['servers'][number]
  process.kill(before.pids.find(({ node }) => node === name)?.pid as number, 'SIGKILL')
  const agent = agentOf(before)
  await eventually('another agent', 45_000, status, (found) => agentOf(found) !== undefined && agentOf(found) !== agent)
  const condition = 'jsonpath={.status.conditions[?(@.type=="Ready")].lastTransitionTime} {.metadata.creationTimestamp}'
  const [readyAt = '', createdAt = ''] = (await cluster.must(['get', 'node', 'e2e-ha-real-node-1', '-o', condition])).split(' ')
  assert.ok(Date.parse(readyAt) - Date.parse(createdAt) < 15_000, `Ready since ${readyAt}, made at ${createdAt}`)
  await cluster.must(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=5s'])
})

test('HA-04 a suspended server loses the agent of a node to another server, and does not take it back when it continues', options, async () => {
  const before = await status()
  const { name } = before.servers.find(({ leads }) => leads.includes('nodes')) as Status['servers'][number]
  const pid = before.pids.find(({ node }) => node === name)?.pid as number
  const agent = agentOf(before)
  process.kill(pid, 'SIGSTOP')
  let next: number | undefined
  try {
    const found = await eventually('another agent', 60_000, status, (now) => agentOf(now) !== undefined && agentOf(now) !== agent)
    next = agentOf(found)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  const log = async () => (await cluster.skiff(['logs', cluster.name, '--source', name])).stdout
  await eventually('the loss in its log', 15_000, log, (text) => text.includes('leaderelection lost'))
  await cluster.must(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=30s'])
  const now = await status()
  assert.equal(agentOf(now), next)
  assert.deepEqual(agentsIn(cluster.name), [next])
})

/** The pids of all agents of the cluster's nodes. */
function agentsIn(name: string): number[] {
  const home = path.join(cluster.env.SKIFF_HOME as string, 'clusters', name)
  return fs
    .readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0node-agent\0') && fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(home)
      } catch {
        return false
      }
    })
}
