/** The faults that the databases must survive (tests only). Each resolves when it has happened; the caller waits for the recovery. */
import assert from 'node:assert/strict'
import { eventually } from '../localCluster.ts'
import type { CommitWriter } from './commitWriter.ts'
import type { DatabaseCluster } from './databaseCluster.ts'

export interface Fault {
  readonly name: string
  inflict(cluster: DatabaseCluster, victim: CommitWriter): Promise<void>
}

const stepMs = 60_000

/** Smart shutdown waits for clients to leave: the grace period ends before the writer does, and PostgreSQL is killed. */
const podDeleted: Fault = {
  name: 'the pod is deleted',
  inflict: async ({ local }, { name }) => {
    await local.must(['delete', 'pod', name, '--grace-period=1', '--timeout=60s'], stepMs + 10_000)
  },
}

const containerKilled: Fault = {
  name: 'process 1 of the container gets SIGKILL',
  inflict: async (cluster, { name }) => {
    const id = () => cluster.local.must(['get', 'pod', name, '-o', 'jsonpath={.status.containerStatuses[0].containerID}'])
    const killed = await id()
    const node = await cluster.nodeOf(name)
    const tasks = await cluster.onNode(node, 'ctr', '-n', 'k8s.io', 'tasks', 'ls')
    const pid = new RegExp(`^${killed.replace('containerd://', '')} +(\\d+)`, 'm').exec(tasks)?.[1]
    assert.ok(pid, `containerd runs ${killed}`)
    await cluster.onNode(node, 'kill', '-9', pid)
    await eventually('another container', stepMs, id, (now) => now !== '' && now !== killed)
  },
}

const nodeDrained: Fault = {
  name: 'the node is drained',
  inflict: async (cluster, { name }) => {
    const node = await cluster.nodeOf(name)
    try {
      await cluster.local.must(
        ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--grace-period=2', '--timeout=60s'],
        stepMs + 10_000,
      )
    } finally {
      await cluster.local.must(['uncordon', node])
    }
  },
}

const agentKilled: Fault = {
  name: "the node's agent gets SIGKILL",
  inflict: async (cluster, { name }) => cluster.replace('node', await cluster.nodeOf(name)),
}

/** All processes of the node end with its process 1, and its mounts. */
const nodeCrashed: Fault = {
  name: 'process 1 of the node gets SIGKILL',
  inflict: async (cluster, { name }) => cluster.replace('init', await cluster.nodeOf(name)),
}

const volumeExpanded: Fault = {
  name: 'the volume is expanded',
  inflict: async ({ local }, { name }) => {
    const claim = `data-${name}`
    const capacity = () => local.must(['get', 'pvc', claim, '-o', 'jsonpath={.status.capacity.storage}'])
    const before = await capacity()
    const request = await local.must(['get', 'pvc', claim, '-o', 'jsonpath={.spec.resources.requests.storage}'])
    const wanted = `${bytesOf(request) / 2 ** 20 + 16}Mi`
    await local.must(['patch', 'pvc', claim, '--type=merge', '-p', JSON.stringify({ spec: { resources: { requests: { storage: wanted } } } })])
    // The kubelet reads the claims of a pod when it syncs the pod, which it does about once a minute without a change.
    await local.must(['annotate', 'pod', name, '--overwrite', `test/size=${wanted}`])
    const now = await eventually('the larger volume', 2 * stepMs, capacity, (found) => bytesOf(found) >= bytesOf(wanted))
    assert.ok(bytesOf(now) > bytesOf(before))
  },
}

/**
 * The driver copies a directory file by file, so the writer of this database pauses until the copy is complete; the other databases commit meanwhile. The copy has every commit that was
 * acknowledged before it.
 */
const snapshotRestored: Fault = {
  name: 'a snapshot is restored into a second StatefulSet',
  inflict: async (cluster, victim) => {
    const { local } = cluster
    const name = `of-${victim.name}`
    const snapshot = {
      ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot', metadata: { name } },
      spec: { volumeSnapshotClassName: 'csi-hostpath', source: { persistentVolumeClaimName: `data-${victim.name}` } },
    }
    const assertHasAll = await victim.whilePaused(async () => {
      const moment = victim.moment()
      await local.mustWith(JSON.stringify(snapshot), ['apply', '-f', '-'])
      await local.must(['wait', '--for=jsonpath={.status.readyToUse}=true', `volumesnapshot/${name}`, '--timeout=60s'], stepMs + 10_000)
      return moment
    })
    await cluster.withRestored(name, assertHasAll)
    await local.must(['delete', 'volumesnapshot', name, '--timeout=60s'], stepMs + 10_000)
  },
}

const units: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }

function bytesOf(quantity: string): number {
  const [, digits, unit = ''] = /^(\d+)(Ki|Mi|Gi)?$/.exec(quantity) ?? []
  assert.ok(digits, `${quantity} is a number of bytes`)
  return Number(digits) * (units[unit] ?? 1)
}

export const faults: readonly Fault[] = [podDeleted, containerKilled, nodeDrained, agentKilled, nodeCrashed, volumeExpanded, snapshotRestored]
