/** Taints that drive pods away, each after the time it tolerates. Upstream: test/e2e/node/taints.go. */
import assert from 'node:assert/strict'
import { nodes, pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

const key = 'example.com/evict'

async function taint({ client, cleanUp }: BehaviourContext, node: string): Promise<() => Promise<unknown>> {
  const change = (value: object) => client.of(nodes).patch({ name: node }, 'strategic', { spec: { taints: [value] } })
  await change({ key, value: 'yes', effect: 'NoExecute' })
  const remove = () => change({ $patch: 'delete', key, effect: 'NoExecute' })
  cleanUp(remove)
  return remove
}

const tolerate = (seconds: number) => [{ key, value: 'yes', effect: 'NoExecute', tolerationSeconds: seconds }]

export const noExecuteTaints: BehaviourGroup = {
  sig: 'sig-node',
  title: 'NoExecute taints',
  rows: ['CTL-09'],
  behaviours: [
    {
      name: 'several pods evicted by tolerationSeconds',
      alone: true,
      run: async (context) => {
        const [node = ''] = context.nodes
        const start = (name: string, seconds: number) =>
          context.readyPod({ name, script: 'sleep 600', spec: { nodeName: node, restartPolicy: 'Always', tolerations: tolerate(seconds) } })
        await Promise.all([start('brief', 1), start('longer', 10)])
        await taint(context, node)
        await context.waitUntilGone(pods, 'brief')
        const { metadata } = await context.get(pods, 'longer')
        assert.equal(metadata.deletionTimestamp, undefined, 'the other still tolerates it')
        await context.waitUntilGone(pods, 'longer')
      },
    },
    {
      name: 'taint removed in time cancels eviction',
      alone: true,
      run: async (context) => {
        const [node = ''] = context.nodes
        const seconds = 6
        await context.readyPod({ name: 'stays', script: 'sleep 600', spec: { nodeName: node, restartPolicy: 'Always', tolerations: tolerate(seconds) } })
        const tainted = Date.now()
        const remove = await taint(context, node)
        await remove()
        await context.eventually(
          'the time of the eviction that was cancelled',
          async () => Date.now() - tainted,
          (elapsed) => elapsed > (seconds + 2) * 1000,
        )
        const { metadata, status } = await context.get(pods, 'stays')
        assert.equal(metadata.deletionTimestamp, undefined)
        assert.equal(status?.phase, 'Running')
      },
    },
  ],
}
