/** What docs/simulated-nodes.md shows, tried. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { parseYaml } from '#api/machinery/yaml'
import { nodes, pods } from '#client/builtIn'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import { defaultStages } from '#testing/stages/defaultStages'
import { templateFunctionNames } from '#testing/stages/player'
import { withCluster } from './withCluster.ts'
import { podSpec } from './workloads.ts'

const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../../docs/simulated-nodes.md'), 'utf8')
const [flaky = '', stage = ''] = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text)

test('X2 the page’s flaky pod crashes twice with its code, then runs', () =>
  withCluster({}, async ({ client, until, clock }) => {
    const ref = { namespace: 'default', name: 'flaky' }
    const pod = parseYaml(flaky) as Pod
    await client.of(pods).create({ ...pod, metadata: { ...pod.metadata, ...ref } })
    const main = async () => (await client.of(pods).get(ref)).status?.containerStatuses?.[0]
    await until(async () => ((await main())?.restartCount === 2 && (await main())?.ready ? true : undefined))
    await clock.advance(600_000)
    assert.equal((await main())?.restartCount, 2)
    assert.equal((await main())?.lastState?.terminated?.exitCode, 3)
  }))

test('X2 the page’s Stage ends a running pod', () =>
  withCluster({ nodes: 0, stages: `${defaultStages}\n---\n${stage}` }, async ({ client, until }) => {
    const ref = { namespace: 'default', name: 'doomed' }
    await client.of(nodes).create({ metadata: { name: 'fake-1', annotations: { 'kwok.x-k8s.io/node': 'fake' } }, spec: {} })
    await client.of(pods).create({ metadata: { ...ref, labels: { chaos: 'yes' } }, spec: podSpec() })
    await until(async () => ((await client.of(pods).get(ref)).status?.phase === 'Failed' ? true : undefined))
    assert.equal((await client.of(pods).get(ref)).status?.containerStatuses?.[0]?.state?.terminated?.reason, 'OOMKilled')
  }))

test('X2 the page names every annotation and every function of templates', () => {
  for (const annotation of Object.values(simulatedAnnotations)) assert.ok(page.includes(annotation.replace('skiff.dev/simulated', '')), annotation)
  for (const name of templateFunctionNames) assert.match(page, new RegExp(`\\b${name}\\b`), name)
})
