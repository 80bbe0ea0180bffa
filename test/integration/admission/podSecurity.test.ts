/** ADM-08 over the wire: labels of a namespace select its Pod Security Standard. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { type AdmissionCluster, withCluster } from './cluster.ts'

/** The answer with its warnings; a refusal as its status and text. */
async function call(
  { api }: AdmissionCluster,
  method: 'POST' | 'PATCH',
  path: string,
  body: unknown,
): Promise<{ status: number; warnings: readonly string[]; message?: string }> {
  try {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
    const { status, warnings } = await api.client.transport.request({ method, path, body, ...(contentType ? { contentType } : {}) })
    return { status, warnings }
  } catch (error) {
    if (!isStatus(error)) throw error
    return { status: error.code, warnings: [], message: error.message }
  }
}

const pod = (spec: object = {}) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'a', image: 'i' }], ...spec } })

test('ADM-08 restricted refuses a plain pod with all that is wrong, and warns of a Deployment', () =>
  withCluster(async (cluster) => {
    const { notes, request } = cluster
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tight', labels } })
    const wrong =
      'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    const refused = await call(cluster, 'POST', '/api/v1/namespaces/tight/pods', pod())
    assert.equal(refused.status, 403)
    assert.equal(refused.message, `pods "p" is forbidden: violates PodSecurity "restricted:latest": ${wrong}`)
    assert.ok(notes.some(([key, value]) => key === 'pod-security.kubernetes.io/enforce-policy' && value === 'restricted:latest'))
    const template = { metadata: { labels: { app: 'd' } }, spec: pod().spec }
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' }, spec: { selector: { matchLabels: { app: 'd' } }, template } }
    const warned = await call(cluster, 'POST', '/apis/apps/v1/namespaces/tight/deployments', deployment)
    assert.deepEqual([warned.status, warned.warnings], [201, [`would violate PodSecurity "restricted:latest": ${wrong}`]])
  }))

test('ADM-08 tightening a namespace warns of its pods and leaves them', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    await request('POST', '/api/v1/namespaces/default/pods', pod({ hostPID: true }))
    const label = (value: string) => ({ metadata: { labels: { 'pod-security.kubernetes.io/enforce': value } } })
    const patch = (value: string) => call(cluster, 'PATCH', '/api/v1/namespaces/default', label(value))
    assert.deepEqual((await patch('baseline')).warnings, [
      'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
      'p: host namespaces',
    ])
    assert.equal((await patch('strict')).status, 422)
    assert.equal((await request('GET', '/api/v1/namespaces/default/pods/p')).metadata.name, 'p')
  }))
