/** Binds by a Binding object (L3). Upstream: plugins/defaultbinder. */
import { pods } from '#client/builtIn'
import { definePlugin } from '../framework/plugin.ts'

export const defaultBinder = definePlugin('DefaultBinder', (_args, { client }) => ({
  requeueOn: [],
  bind: async (_state, { pod }, nodeName) => {
    const { namespace, name = '', uid } = pod.metadata
    await client.of(pods).createSubresource({ namespace, name }, 'binding', {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { namespace, name, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
    })
    return undefined
  },
}))
