/** Field ownership over the API where it crosses shapes: the scale subresource, versions of one resource, lists with duplicates. */
import assert from 'node:assert/strict'
import type { KubeObject, ManagedFieldsEntry } from '#api/machinery/meta'
import { isStatus, type StatusError } from '#api/machinery/status'
import { deployments } from '#client/builtIn'
import { bothTransports, type Case } from './bothTransports.ts'

async function refused(call: Promise<unknown>): Promise<StatusError> {
  try {
    await call
  } catch (error) {
    if (isStatus(error)) return error
    throw error
  }
  throw new Error('was not refused')
}

const deployment = (namespace: string, replicas?: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace, name: 'web' },
  spec: {
    ...(replicas === undefined ? {} : { replicas }),
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: 'a:1' }] } },
  },
})

const scalePath = '/apis/apps/v1/namespaces/case/deployments/web/scale'

function send(one: Case, path: string, type: string, body: unknown, query: Readonly<Record<string, string>> = {}): Promise<KubeObject> {
  const contentType = type === 'apply' ? 'application/apply-patch+yaml' : `application/${type}-patch+json`
  return one.client.transport.request({ method: 'PATCH', path, body, contentType, query }).then((answer) => answer.body as KubeObject)
}

const scale = (replicas: number) => ({ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'web' }, spec: { replicas } })

/** Who owns the field, as `manager operation subresource apiVersion`. */
function ownersOf(entries: readonly ManagedFieldsEntry[] | undefined, ...path: readonly string[]): string[] {
  const owners = (entries ?? []).filter((entry) => {
    let node: unknown = entry.fieldsV1
    for (const part of path) node = (node as Record<string, unknown> | undefined)?.[`f:${part}`]
    return node !== undefined
  })
  return owners.map(({ manager, operation, subresource = '-', apiVersion }) => `${manager} ${operation} ${subresource} ${apiVersion}`)
}

async function replicasOwners(one: Case): Promise<string[]> {
  const object = await one.client.of(deployments).get({ namespace: one.namespace, name: 'web' })
  return ownersOf(object.metadata.managedFields as ManagedFieldsEntry[], 'spec', 'replicas')
}

bothTransports({
  async 'API-11 who scales owns the replicas of the object, by the subresource'(one: Case) {
    await one.client.of(deployments).patch({ namespace: one.namespace, name: 'web' }, 'apply', deployment(one.namespace, 1), { fieldManager: 'owner' })
    assert.deepEqual(await replicasOwners(one), ['owner Apply - apps/v1'])
    await send(one, scalePath, 'merge', { spec: { replicas: 3 } }, { fieldManager: 'scaler' })
    assert.deepEqual(await replicasOwners(one), ['scaler Update scale apps/v1'])
    const conflict = await refused(
      one.client.of(deployments).patch({ namespace: one.namespace, name: 'web' }, 'apply', deployment(one.namespace, 1), { fieldManager: 'owner' }),
    )
    assert.equal(conflict.message, 'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas')
    // Without the field the owner gives it up, and the scaler keeps it.
    await one.client.of(deployments).patch({ namespace: one.namespace, name: 'web' }, 'apply', deployment(one.namespace), { fieldManager: 'owner' })
    const object = await one.client.of(deployments).get({ namespace: one.namespace, name: 'web' })
    assert.deepEqual([object.spec?.replicas, await replicasOwners(one)], [3, ['scaler Update scale apps/v1']])
  },

  async 'API-11 a Scale is applied: owned, refused on conflict in its own words, taken by force, and still the second time'(one: Case) {
    await one.client.of(deployments).patch({ namespace: one.namespace, name: 'web' }, 'apply', deployment(one.namespace, 1), { fieldManager: 'owner' })
    const conflict = await refused(send(one, scalePath, 'apply', scale(2), { fieldManager: 'scaler' }))
    assert.deepEqual([conflict.code, conflict.message], [409, 'Apply failed with 1 conflict: conflict with "owner": .spec.replicas'])
    await send(one, scalePath, 'apply', scale(2), { fieldManager: 'scaler', force: 'true' })
    assert.deepEqual(await replicasOwners(one), ['scaler Apply scale apps/v1'])
    const before = await one.client.of(deployments).get({ namespace: one.namespace, name: 'web' })
    await send(one, scalePath, 'apply', scale(2), { fieldManager: 'scaler' })
    const after = await one.client.of(deployments).get({ namespace: one.namespace, name: 'web' })
    assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion)
    const nameless = await refused(send(one, scalePath, 'apply', scale(2)))
    assert.equal(nameless.message, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
    const missing = await refused(send(one, scalePath.replace('web', 'none'), 'apply', { ...scale(2), metadata: { name: 'none' } }, { fieldManager: 'x' }))
    assert.deepEqual([missing.code, missing.message], [404, 'deployments.apps "none" not found'])
  },
})
