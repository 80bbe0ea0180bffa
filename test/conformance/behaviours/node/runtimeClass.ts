/** Pods with a RuntimeClass, and its overhead. Upstream: test/e2e/common/node/runtimeclass.go. */
import assert from 'node:assert/strict'
import type { RuntimeClass } from '#api/gen/types/node.v1'
import { runtimeClasses } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

/** containerd's own name for its runtime. */
const handler = 'runc'

async function createClass(context: BehaviourContext, overhead: RuntimeClass['overhead']): Promise<string> {
  const name = context.unique('class')
  await context.client.of(runtimeClasses).create({ metadata: { name }, handler, ...(overhead ? { overhead } : {}) })
  context.cleanUp(() => context.client.of(runtimeClasses).delete({ name }))
  return name
}

export const runtimeClass: BehaviourGroup = {
  sig: 'sig-node',
  title: 'RuntimeClass scheduling',
  rows: ['CRI-06'],
  behaviours: [
    {
      name: 'scheduled without overhead',
      run: async (context) => {
        const runtimeClassName = await createClass(context, undefined)
        const pod = await context.runPod({ script: 'exit 0', spec: { runtimeClassName } })
        assert.equal(pod.spec.overhead, undefined)
      },
    },
    {
      name: 'overhead initialised',
      run: async (context) => {
        const runtimeClassName = await createClass(context, { podFixed: { cpu: '10m', memory: '1Mi' } })
        const pod = await context.runPod({ script: 'exit 0', spec: { runtimeClassName } })
        assert.deepEqual(pod.spec.overhead, { cpu: '10m', memory: '1Mi' })
      },
    },
  ],
}
