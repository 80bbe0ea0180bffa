/** Field ownership over the API where it crosses shapes: the scale subresource, versions of one resource, lists with duplicates. */
import assert from 'node:assert/strict'
import type { KubeObject, ManagedFieldsEntry } from '#api/machinery/meta'
import { isStatus, type StatusError } from '#api/machinery/status'
import { deployments } from '#client/builtIn'
import { ecdsaRequest, selfSignedCertificate } from '#testing/testCertificateRequests'
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

/** The owners of the field, as `manager operation subresource apiVersion`. */
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
  async 'API-11 a null in a configuration claims its field and takes the value out; what is merged by members it leaves alone'(one: Case) {
    const path = '/apis/apps/v1/namespaces/case/deployments/web'
    const apply = (fieldManager: string, replicas: number | null | undefined, more: object = {}) => {
      const { spec, ...rest } = deployment(one.namespace)
      return send(one, path, 'apply', { ...rest, spec: { ...spec, replicas, ...more } }, { fieldManager }) as Promise<
        KubeObject & { spec: Record<string, unknown> }
      >
    }
    await apply('a', 3)
    assert.equal((await refused(apply('b', null))).message, 'Apply failed with 1 conflict: conflict with "a": .spec.replicas')
    const taken = await apply('a', null, { strategy: null })
    assert.equal(taken.spec.replicas, 1)
    assert.deepEqual(ownersOf(taken.metadata.managedFields, 'spec', 'replicas'), ['a Apply - apps/v1'])
    assert.deepEqual(ownersOf(taken.metadata.managedFields, 'spec', 'strategy'), ['a Apply - apps/v1'])
    const merged = await apply('b', undefined, { template: null })
    assert.deepEqual(merged.spec.template, taken.spec.template)
  },
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

  async 'API-11 what Go writes for a field that was left out is nobody’s'(one: Case) {
    const applied = await one.client
      .of(deployments)
      .patch({ namespace: one.namespace, name: 'web' }, 'apply', deployment(one.namespace), { fieldManager: 'owner' })
    assert.deepEqual([applied.spec?.template.spec?.containers[0]?.resources, applied.spec?.strategy !== undefined], [{}, true])
    const owned = JSON.stringify(applied.metadata.managedFields)
    assert.deepEqual(
      ['f:template', 'f:resources', 'f:strategy', 'f:status'].filter((field) => owned.includes(field)),
      ['f:template'],
    )
    const event = await one.client.transport.request({
      method: 'POST',
      path: `/api/v1/namespaces/${one.namespace}/events`,
      body: { apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, involvedObject: { namespace: one.namespace }, reason: 'Told' },
      query: { fieldManager: 'owner' },
    })
    const { source, reportingInstance, metadata } = event.body as KubeObject & { source: object; reportingInstance: string }
    assert.deepEqual([source, reportingInstance], [{}, ''])
    assert.deepEqual(metadata.managedFields?.[0]?.fieldsV1, { 'f:involvedObject': {}, 'f:reason': {} })
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

  async 'API-06 ownership follows the versions of an autoscaler: changes in one are lost in the other, and what is dropped there is gone'(one: Case) {
    const target = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 5 }
    const configuration = (version: string, spec: object) => ({
      apiVersion: `autoscaling/${version}`,
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'h' },
      spec: { ...target, ...spec },
    })
    const path = (version: string) => `/apis/autoscaling/${version}/namespaces/case/horizontalpodautoscalers/h`
    const cpu = (averageUtilization: number) => ({
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }],
    })
    const apply = (version: string, spec: object, manager: string) => send(one, path(version), 'apply', configuration(version, spec), { fieldManager: manager })
    await apply('v1', { targetCPUUtilizationPercentage: 50 }, 'one')

    // What v2 calls metrics is v1's percentage: its owner is asked, in its own words.
    const conflict = await refused(apply('v2', cpu(60), 'two'))
    assert.equal(conflict.message, 'Apply failed with 1 conflict: conflict with "one": .spec.targetCPUUtilizationPercentage')
    const patched = await send(one, path('v2'), 'merge', { spec: cpu(70) }, { fieldManager: 'three' })
    const owners = ownersOf(patched.metadata.managedFields as ManagedFieldsEntry[], 'spec', 'targetCPUUtilizationPercentage')
    assert.deepEqual([owners, ownersOf(patched.metadata.managedFields as ManagedFieldsEntry[], 'spec', 'maxReplicas')], [[], ['one Apply - autoscaling/v1']])
    assert.deepEqual(ownersOf(patched.metadata.managedFields as ManagedFieldsEntry[], 'spec', 'metrics'), ['three Update - autoscaling/v2'])

    // Going on in v2, and leaving something out that was applied in v1.
    await apply('v1', { minReplicas: 2 }, 'one')
    const moved = (await apply('v2', {}, 'one')) as KubeObject & { spec: { minReplicas?: number; metrics?: unknown[] } }
    assert.deepEqual([moved.spec.minReplicas, moved.spec.metrics?.length], [1, 1])
    assert.deepEqual(ownersOf(moved.metadata.managedFields as ManagedFieldsEntry[], 'spec', 'maxReplicas'), ['one Apply - autoscaling/v2'])
  },

  async 'API-11 nobody owns what an endpoint resets: of a certificate request what is asked, nor the metadata that a status leaves alone'(one: Case) {
    const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
    const body = {
      metadata: { name: 'r', labels: { a: 'b' } },
      spec: { request: ecdsaRequest, signerName: 'example.com/signer', usages: ['client auth'] },
    }
    const call = async (method: 'POST' | 'PUT', path: string, sent: object, fieldManager: string) =>
      (await one.client.transport.request({ method, path, body: sent, query: { fieldManager } })).body as KubeObject
    const fields = ({ metadata }: KubeObject, manager: string) => metadata.managedFields?.find((entry) => entry.manager === manager)?.fieldsV1
    const made = await call('POST', requests, body, 'asker')
    assert.deepEqual(fields(made, 'asker'), { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } })
    const condition = { type: 'Approved', status: 'True', reason: 'Fine' }
    const approved = await call('PUT', `${requests}/r/approval`, { ...made, status: { conditions: [condition] } }, 'approver')
    assert.deepEqual(Object.keys((fields(approved, 'approver') ?? {}) as object), ['f:status'])
    const signed = await call(
      'PUT',
      `${requests}/r/status`,
      { ...approved, status: { ...(approved as { status?: object }).status, certificate: selfSignedCertificate } },
      'signer',
    )
    assert.deepEqual(fields(signed, 'signer'), { 'f:status': { 'f:certificate': {} } })

    const attachments = '/apis/storage.k8s.io/v1/volumeattachments'
    const spec = { attacher: 'csi.example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } }
    const attachment = await call('POST', attachments, { metadata: { name: 'a' }, spec }, 'maker')
    const sent = { ...attachment, metadata: { ...attachment.metadata, labels: { x: 'y' } }, status: { attached: true } }
    const written = await call('PUT', `${attachments}/a/status`, sent, 'watcher')
    assert.equal(written.metadata.labels, undefined)
    assert.deepEqual(fields(written, 'watcher'), { 'f:status': { 'f:attached': {} } })
    const { resourceVersion: _, ...blind } = written.metadata
    for (const path of [`${attachments}/a`, `${attachments}/a/status`]) {
      const { message } = await refused(call('PUT', path, { ...written, metadata: blind }, 'watcher'))
      assert.match(message, /metadata.resourceVersion: Invalid value: 0x0: must be specified for an update/)
    }
  },

  async 'API-11 a status is written alike with the very parts of the object that was read, and with copies of them'(one: Case) {
    const { namespace, client } = one
    const written = async (name: string, whole: <T>(object: T) => T) => {
      const made = { ...deployment(namespace, 2), metadata: { namespace, name, finalizers: ['example.com/f'] } }
      const read = await client.of(deployments).create(made, { fieldManager: 'creator' })
      const before = structuredClone(read)
      const status = { replicas: 2, conditions: [{ type: 'Available', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }] }
      const after = await client.of(deployments).updateStatus(whole({ ...read, status }) as typeof read, { fieldManager: 'controller' })
      assert.deepEqual(read, before)
      assert.deepEqual(after.spec, before.spec)
      const byPatch = await client.of(deployments).patch({ namespace, name }, 'strategic', { status: { replicas: 3 } }, { subresource: 'status' })
      assert.deepEqual(byPatch.spec, before.spec)
      return [after, byPatch].map(({ metadata: { generation, finalizers, managedFields }, spec, status: shown }) => {
        // Their order is that of their seconds.
        const owners = managedFields?.map(({ time: _time, ...entry }) => entry).sort((a, b) => (String(a.manager) < String(b.manager) ? -1 : 1))
        return { generation, finalizers, owners, spec, status: shown }
      })
    }
    const own = await written('own', (object) => object)
    assert.deepEqual(own, await written('copied', (object) => structuredClone(object)))
    assert.deepEqual(
      own.map(({ status }) => status?.replicas),
      [2, 3],
    )
  },
})
