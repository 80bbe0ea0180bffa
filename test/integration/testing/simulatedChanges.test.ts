/** Annotations that change while a simulated pod runs, under virtual time: its containers follow them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container } from '#api/gen/types/core.v1'
import { pods } from '#client/builtIn'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import type { TestCluster } from '#testing/cluster'
import { withCluster } from './withCluster.ts'
import { podSpec } from './workloads.ts'

type Says = Partial<Record<keyof typeof simulatedAnnotations, string | null>>

const ref = { namespace: 'default', name: 'pod' }
const probed: Container = { name: 'main', image: 'example.com/app:1', readinessProbe: { httpGet: { port: 80 }, periodSeconds: 1, failureThreshold: 1 } }

const mainOf = async ({ client }: TestCluster) => (await client.of(pods).get(ref)).status?.containerStatuses?.[0]
const isReady = async (cluster: TestCluster) => (await mainOf(cluster))?.ready === true

function reaches(cluster: TestCluster, check: (main: Awaited<ReturnType<typeof mainOf>>) => boolean): Promise<unknown> {
  return cluster.until(async () => (check(await mainOf(cluster)) ? true : undefined))
}

async function runningPod(cluster: TestCluster): Promise<void> {
  await cluster.client.of(pods).create({ metadata: ref, spec: podSpec({ containers: [probed] }) })
  await cluster.until(async () => ((await isReady(cluster)) ? true : undefined))
  await cluster.clock.advance(60_000)
}

async function annotate({ client }: TestCluster, says: Says): Promise<void> {
  const annotations = Object.fromEntries(Object.entries(says).map(([key, value]) => [simulatedAnnotations[key as keyof Says], value]))
  await client.of(pods).patch(ref, 'merge', { metadata: { annotations: annotations as Record<string, string> } })
}

test('X2 an annotation ends a running simulated container at once, and again after each start, until the annotation is gone', () =>
  withCluster({}, async (cluster) => {
    await runningPod(cluster)
    await annotate(cluster, { exitAfterSeconds: '1', exitCode: '7' })
    await reaches(cluster, (main) => (main?.restartCount ?? 0) >= 3)
    assert.equal((await mainOf(cluster))?.lastState?.terminated?.exitCode, 7)
    await annotate(cluster, { exitAfterSeconds: null, exitCode: null })
    await reaches(cluster, (main) => main?.ready === true)
    await cluster.clock.advance(1_000)
    const restarts = (await mainOf(cluster))?.restartCount
    await cluster.clock.advance(3_600_000)
    assert.deepEqual([(await mainOf(cluster))?.restartCount, await isReady(cluster)], [restarts, true])
  }))

test('X2 a running simulated container ends so long after its start, not after the change, and as often as the annotation says', () =>
  withCluster({}, async (cluster) => {
    await runningPod(cluster)
    await annotate(cluster, { exitAfterSeconds: '120', exitReason: 'OOMKilled', exitTimes: '1' })
    await cluster.clock.advance(30_000)
    assert.equal((await mainOf(cluster))?.restartCount, 0)
    await cluster.clock.advance(60_000)
    const ended = (await mainOf(cluster))?.lastState?.terminated
    assert.deepEqual([(await mainOf(cluster))?.restartCount, ended?.exitCode, ended?.reason], [1, 137, 'OOMKilled'])
    await cluster.clock.advance(600_000)
    assert.equal((await mainOf(cluster))?.restartCount, 1)
  }))

test('X2 a running simulated container becomes unready and ready with its annotation', () =>
  withCluster({}, async (cluster) => {
    await runningPod(cluster)
    await annotate(cluster, { readiness: 'fail' })
    await reaches(cluster, (main) => main?.ready === false)
    await annotate(cluster, { readiness: null })
    await reaches(cluster, (main) => main?.ready === true)
    assert.equal((await mainOf(cluster))?.restartCount, 0)
  }))

test('X2 a change of an annotation that cannot be read leaves a running simulated container as it is', () =>
  withCluster({}, async (cluster) => {
    await runningPod(cluster)
    await annotate(cluster, { exitAfterSeconds: 'soon', readiness: 'fail' })
    await cluster.clock.advance(120_000)
    assert.deepEqual([(await mainOf(cluster))?.restartCount, await isReady(cluster)], [0, true])
    await annotate(cluster, { exitAfterSeconds: null })
    await reaches(cluster, (main) => main?.ready === false)
  }))
