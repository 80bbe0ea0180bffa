/** CTL-10: namespaces whose deletion waits for an extension server that is away. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findCondition } from '#api/machinery/conditions'
import { isStatus } from '#api/machinery/status'
import { namespaces } from '#client/builtIn'
import { startCluster } from '#testing/cluster'

const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices'
const body = {
  metadata: { name: 'v1beta1.metrics.example.com' },
  spec: {
    group: 'metrics.example.com',
    version: 'v1beta1',
    groupPriorityMinimum: 100,
    versionPriority: 100,
    service: { namespace: 'default', name: 'away' },
    insecureSkipTLSVerify: true,
  },
}

test('CTL-10 a namespace names the stale group version that it waits for, and goes within a minute of its return', async () => {
  await using cluster = await startCluster({ nodes: 0, scheduler: false, controllers: ['namespace-controller'] })
  const { client, clock } = cluster
  await client.transport.request({ method: 'POST', path: apiServices, body })
  await clock.advance(60_000)
  await client.of(namespaces).create({ metadata: { name: 'leaving' }, spec: {} })
  await client.of(namespaces).delete({ name: 'leaving' }, {})
  // The wait between tries has reached its longest.
  await clock.advance(30 * 60_000)
  const { status } = await client.of(namespaces).get({ name: 'leaving' })
  assert.equal(
    findCondition(status?.conditions, 'NamespaceDeletionDiscoveryFailure')?.message,
    'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: ' +
      'metrics.example.com/v1beta1: stale GroupVersion discovery: metrics.example.com/v1beta1',
  )
  await client.transport.request({ method: 'DELETE', path: `${apiServices}/${body.metadata.name}` })
  await clock.advance(61_000)
  await assert.rejects(client.of(namespaces).get({ name: 'leaving' }), (error) => isStatus(error, 'NotFound'))
})
