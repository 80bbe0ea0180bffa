/** A load against a whole cluster under virtual time: what it creates, changes, measures and removes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { CommandError } from '#cli/exitCodes'
import { readLoadPlan } from '#cli/load/loadPlan'
import { describeLoad, type LoadReport } from '#cli/load/loadReport'
import { runLoad } from '#cli/load/runLoad'
import { namespaces, pods } from '#client/builtIn'
import type { TestCluster } from '#testing/cluster'
import { withCluster } from './withCluster.ts'

const progress = { step: <T>(_title: string, work: (report: (state: string) => void) => Promise<T>) => work(() => {}), note: () => {} }

async function measured({ client, clock, until }: TestCluster, text: string, keep = false): Promise<LoadReport> {
  let outcome: { readonly report: LoadReport } | { readonly error: unknown } | undefined
  void runLoad({ client, clock, log: noLog, progress }, readLoadPlan('load.yaml', text), keep, new AbortController().signal).then(
    (report) => {
      outcome = { report }
    },
    (error) => {
      outcome = { error }
    },
  )
  const ended = await until(async () => outcome)
  if ('error' in ended) throw ended.error
  return ended.report
}

const load = `
name: try
namespaces: 2
fillTimeout: 2m
deployments: [{ name: web, count: 4, replicas: 3-5 }]
`

test('ARC-13 a load fills the cluster, changes what it made at its rates, and removes it', () =>
  withCluster({ nodes: 5 }, async (cluster) => {
    const report = await measured(cluster, `${load}churn: { for: 20s, scale: 30/m, rollOut: 6/m, deletePod: 1/s }`)
    const { fill, churn } = report
    assert.deepEqual([report.deployments, report.namespaces, report.failures], [4, 2, []])
    assert.deepEqual([fill.operations, fill.unsettled, fill.unscheduled], [{ create: 4 }, 0, 0])
    assert.ok(fill.pods >= 12 && fill.pods <= 20 && fill.ready === fill.pods, `${fill.ready} of ${fill.pods}`)
    const counts = new Map(fill.times.map(({ what, count }) => [what, count]))
    assert.deepEqual([counts.get('pod created to ready'), counts.get('Deployment created to all ready')], [fill.pods, 4])
    assert.deepEqual(churn?.operations, { scale: 10, rollOut: 2, deletePod: 20 })
    assert.equal(churn.unsettled, 0)
    const requests = new Map(report.requests.map(({ what, count }) => [what, count]))
    assert.deepEqual(requests.get('patch Deployment (scale)'), 10)
    assert.deepEqual(requests.get('delete Pod'), 20)
    assert.ok((report.removalMs ?? 0) > 0)
    const left = (await cluster.client.of(namespaces).list({ labelSelector: 'skiff.dev/load' })).items
    assert.deepEqual([left.length, (await cluster.client.of(pods).list()).items.length], [0, 0])
    assert.match(describeLoad(report), /^Filled: 4 Deployments in 2 namespaces, (\d+) of \1 pods ready, in \d+\.\d s/)
  }))

test('ARC-13 a load that does not fit says how many pods have no node, leaves its namespaces when asked, and is not started over them', () =>
  withCluster({ nodes: [{ name: 'small', cpus: 1 }] }, async (cluster) => {
    const report = await measured(cluster, load, true)
    assert.ok(report.fill.unscheduled > 0 && report.fill.unsettled > 0 && report.removalMs === undefined)
    assert.match(describeLoad(report), /pods without a node: \d+\n/)
    await assert.rejects(
      measured(cluster, load),
      (error) => error instanceof CommandError && error.exit === 'alreadyExists' && /namespace try-1/.test(error.message),
    )
  }))

test('ARC-13 what the server refuses is counted by message, and the load continues', () =>
  withCluster({ nodes: 1 }, async (cluster) => {
    const report = await measured(cluster, `fillTimeout: 20s\ndeployments: [{ count: 3, replicas: 1, template: { spec: { containers: [] } } }]`)
    assert.deepEqual(
      report.failures.map(({ what, count }) => [what, count]),
      [
        ['create Deployment', 1],
        ['create Deployment', 1],
        ['create Deployment', 1],
      ],
    )
    assert.match(describeLoad(report), /create Deployment, 1 times: Deployment\.apps "web-1" is invalid/)
  }))
