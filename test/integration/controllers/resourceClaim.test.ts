/** Claims from templates, and their end, with the rights of the controller's own service account. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { deviceClasses, events, pods, resourceClaims, resourceClaimTemplates } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

const namespace = 'default'
const devices = { requests: [{ name: 'r', exactly: { deviceClassName: 'gpu' } }] }
const containers = [{ name: 'c', image: 'a' }]

test('ARC-19 SCH-20 CTL-22 a claim is made from its template for a pod, reserved, released with the pod, and deleted when it was made for it', async () => {
  const cluster = await startTestCluster({ podsRun: false })
  const { client } = cluster
  try {
    await client.of(deviceClasses).create({ metadata: { name: 'gpu' }, spec: {} })
    const claims = client.of(resourceClaims)
    await claims.create({ metadata: { namespace, name: 'shared' }, spec: { devices } })
    const spec = {
      nodeName: 'n',
      containers,
      resourceClaims: [
        { name: 'own', resourceClaimTemplateName: 't' },
        { name: 'shared', resourceClaimName: 'shared' },
      ],
    }
    await client.of(pods).create({ metadata: { namespace, name: 'p' }, spec })
    // Without its template the pod waits, with an event.
    await eventually(async () => (await client.of(events).list({ namespace })).items.some(({ reason }) => reason === 'FailedResourceClaimCreation'))
    await client.of(resourceClaimTemplates).create({ metadata: { namespace, name: 't' }, spec: { metadata: { labels: { l: '1' } }, spec: { devices } } })
    const own = await eventually(async () => {
      const { status } = await client.of(pods).get({ namespace, name: 'p' })
      return status?.resourceClaimStatuses?.find(({ name }) => name === 'own')?.resourceClaimName ?? false
    })
    const made = await claims.get({ namespace, name: own })
    assert.match(own, /^p-own-/)
    assert.deepEqual([made.metadata.labels, made.metadata.annotations?.['resource.kubernetes.io/pod-claim-name']], [{ l: '1' }, 'own'])
    assert.equal((await claims.list({ namespace })).items.length, 2)

    const allocate = async (name: string) => {
      const claim = await claims.get({ namespace, name })
      const held = await claims.update({ ...claim, metadata: { ...claim.metadata, finalizers: ['resource.kubernetes.io/delete-protection'] } })
      const results = [{ request: 'r', driver: 'd.example.com', pool: 'p', device: 'g0' }]
      await claims.updateStatus({ ...held, status: { allocation: { devices: { results } } } } as never)
    }
    for (const name of [own, 'shared']) {
      await eventually(() => allocate(name))
      await eventually(async () => (await claims.get({ namespace, name })).status?.reservedFor?.[0]?.name === 'p')
    }

    await client.of(pods).patch({ namespace, name: 'p' }, 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' })
    await eventually(() =>
      claims.get({ namespace, name: own }).then(
        () => false,
        (error: unknown) => isStatus(error, 'NotFound'),
      ),
    )
    await eventually(async () => {
      const { metadata, status } = await claims.get({ namespace, name: 'shared' })
      return status?.reservedFor === undefined && status?.allocation === undefined && (metadata.finalizers ?? []).length === 0
    })
  } finally {
    await cluster.close()
  }
})
