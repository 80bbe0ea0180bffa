/** A pod's generation counts changes of its spec, and status.observedGeneration names the one it reports on. Upstream: test/e2e/node/pods.go, Pod Generation. */
import assert from 'node:assert/strict'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

const manyUpdates = 500

const settled = (generation: number) => (pod: Frozen<Pod>) =>
  pod.metadata.generation === generation &&
  pod.status?.observedGeneration === generation &&
  (pod.status.conditions ?? []).every((condition) => condition.type === 'PodScheduled' || condition.observedGeneration === generation)

const deadline = ({ client, namespace }: BehaviourContext, name: string, seconds: number) =>
  client.of(pods).patch({ namespace, name }, 'merge', { spec: { activeDeadlineSeconds: seconds } })

export const podGeneration: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Pod generation',
  rows: ['KUB-09', 'KUB-12'],
  behaviours: [
    {
      name: 'starts at 1 and increments',
      run: async (context) => {
        const pod = await context.readyPod({ script: 'sleep 600' })
        const name = pod.metadata.name ?? ''
        await context.waitForPod(name, 'has settled at 1', settled(1))
        await deadline(context, name, 5000)
        await context.waitForPod(name, 'has settled at 2', settled(2))
        await context.client.of(pods).patch({ namespace: context.namespace, name }, 'merge', { metadata: { labels: { of: 'no-spec' } } })
        await deadline(context, name, 4000)
        await context.waitForPod(name, 'has settled at 3', settled(3))
      },
    },
    {
      name: '500 updates converge',
      run: async (context) => {
        const pod = await context.readyPod({ script: 'sleep 600' })
        const name = pod.metadata.name ?? ''
        for (let update = 0; update < manyUpdates; update++) await deadline(context, name, 10_000 - update)
        await context.waitForPod(name, `has settled at ${manyUpdates + 1}`, settled(manyUpdates + 1))
      },
    },
    {
      name: 'graceful delete bumps generation',
      run: async (context) => {
        const script = 'trap "until [ -f /tmp/go ]; do sleep 0.1; done; exit 0" TERM; while true; do sleep 0.1; done'
        const pod = await context.readyPod({ script, spec: { terminationGracePeriodSeconds: 30 } })
        const name = pod.metadata.name ?? ''
        await context.client.of(pods).delete({ namespace: context.namespace, name })
        const ending = await context.waitForPod(name, 'has observed its end', ({ status }) => status?.observedGeneration === 2)
        assert.equal(ending.metadata.generation, 2)
        assert.ok(ending.metadata.deletionTimestamp)
        await context.execText(name, 'touch /tmp/go')
        await context.waitUntilGone(pods, name)
      },
    },
  ],
}
