/** What happens to pods when their namespace goes. Upstream: test/e2e/apimachinery/namespace.go. */
import assert from 'node:assert/strict'
import { configMaps, namespaces, pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { podOf } from '../context.ts'

export const namespaceEnds: BehaviourGroup = {
  sig: 'sig-api-machinery',
  title: 'Namespaces (need pods)',
  rows: ['CTL-10'],
  behaviours: [
    {
      name: 'pods removed with namespace',
      run: async (context) => {
        const { client } = context
        const name = context.unique('ends')
        const create = async () => {
          await client.of(namespaces).create({ metadata: { name }, spec: {} })
          await context.eventually(
            'a pod in it',
            () =>
              client
                .of(pods)
                .create(podOf({ script: 'sleep 600' }, { namespace: name, name: 'one' }))
                .catch(() => undefined),
            (pod) => pod !== undefined,
          )
        }
        await create()
        await client.of(namespaces).delete({ name })
        await context.waitUntilGone(namespaces, name)
        // A new one of the same name is empty.
        await client.of(namespaces).create({ metadata: { name }, spec: {} })
        context.cleanUp(() => client.of(namespaces).delete({ name }))
        assert.deepEqual((await client.of(pods).list({ namespace: name })).items, [])
      },
    },
    {
      name: 'ordered deletion: pods go first',
      run: async (context) => {
        const { client } = context
        const name = context.unique('ordered')
        await client.of(namespaces).create({ metadata: { name }, spec: {} })
        const held = { ...podOf({ script: 'sleep 600' }, { namespace: name, name: 'held' }) }
        await context.eventually(
          'a pod in it',
          () =>
            client
              .of(pods)
              .create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/held'] } })
              .catch(() => undefined),
          (pod) => pod !== undefined,
        )
        await client.of(configMaps).create({ metadata: { namespace: name, name: 'waits' } })
        await client.of(namespaces).delete({ name })
        const waiting = await context.waitForObject(namespaces, name, 'waits for its pods', ({ status }) =>
          (status?.conditions ?? []).some(({ type, status: value }) => type === 'NamespaceFinalizersRemaining' && value === 'True'),
        )
        assert.equal(waiting.status?.phase, 'Terminating')
        const { metadata } = await client.of(configMaps).get({ namespace: name, name: 'waits' })
        assert.equal(metadata.deletionTimestamp, undefined)
        await client.of(pods).patch({ namespace: name, name: 'held' }, 'merge', { metadata: { finalizers: null } })
        await context.waitUntilGone(namespaces, name)
      },
    },
  ],
}
