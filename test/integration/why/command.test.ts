/** `skiff why` as a command over a kubeconfig: kinds by their names, pods of other namespaces, unknown kinds, JSON, and a user with few rights. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { createReader } from '#cli/net/reader'
import { pageAnswers } from '#cli/page/answers'
import type { ObjectAnswer } from '#cli/why/object'
import { startCluster, type TestCluster } from '#testing/cluster'
import { runCommand } from '#testing/commandRun'
import { explainObject } from '#why/explainObject'
import { claimYaml, objectsOf, podYaml, workloadYaml } from './broken.ts'

const manifests = [
  ['/api/v1/namespaces/default/persistentvolumeclaims', claimYaml('data', 'storageClassName: fast')],
  ['/api/v1/namespaces/default/pods', podYaml('app', { spec: 'volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]' })],
  ['/apis/apps/v1/namespaces/default/deployments', workloadYaml('Deployment', '', { spec: 'nodeSelector: {disk: ssd}' })],
  ['/api/v1/namespaces', 'apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n'],
] as const

describe('the command why', () => {
  let cluster: TestCluster
  let dir: string

  before(async () => {
    cluster = await startCluster({ clock: 'real' })
    dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-why-'))
    await fs.writeFile(path.join(dir, 'kubeconfig'), await cluster.kubeconfig())
    for (const [url, text] of manifests) for (const body of objectsOf(text)) await cluster.client.transport.request({ method: 'POST', path: url, body })
    const running = { ...objectsOf(podYaml('web'))[0], metadata: { name: 'web' } }
    await cluster.until(async () =>
      cluster.client.transport.request({ method: 'POST', path: '/api/v1/namespaces/team/pods', body: running }).catch(() => undefined),
    )
    await cluster.until(async () => (await skiff('deploy/web')).stdout.includes('no node fits'))
    await cluster.until(async () => (await skiff('team/web')).stdout.includes('does not wait'))
  })

  after(async () => {
    await cluster.close()
    await fs.rm(dir, { recursive: true })
  })

  const skiff = (...words: string[]) => runCommand(['why', ...words, '--kubeconfig', path.join(dir, 'kubeconfig')])

  test('X8 why pod/NAME prints the cause, the evidence and the next command, also of its claim', async () => {
    const { stdout, error } = await skiff('pod/app')
    assert.equal(error, undefined)
    assert.equal(
      stdout,
      'Pod default/app: its claim data has no volume: its StorageClass fast does not exist\n' +
        '  shown by: spec.storageClassName fast\n  next:     kubectl get storageclasses\n',
    )
    assert.equal((await skiff('app')).stdout, stdout)
    assert.equal((await skiff('default/app')).stdout, stdout)
  })

  test('X8 why takes kinds by every name that kubectl takes, and a pod of another namespace', async () => {
    assert.match((await skiff('pvc/data')).stdout, /^PersistentVolumeClaim default\/data: its StorageClass fast does not exist\n/)
    for (const name of ['deploy/web', 'deployments.apps/web', 'Deployment/web']) assert.match((await skiff(name)).stdout, /^Deployment default\/web: pod web-/)
    assert.match((await skiff('web', '-n', 'team')).stdout, /^Pod team\/web does not wait: it runs on n1, ready, restarts: 0\n$/)
    assert.match((await skiff('node/n1')).stdout, /^Node n1 does not wait: it is Ready\n$/)
  })

  test('X8 why of an unknown kind is an error that lists kinds, and of an object that does not exist one that says so', async () => {
    const { error } = await skiff('hpaa/web')
    assert.match(String(error), /^CommandError: the cluster has no kind "hpaa", and there is no pod hpaa\/web$/)
    assert.match((error as { hint?: string }).hint ?? '', /deployments, .*persistentvolumeclaims, .*every other kind is explained by its conditions$/)
    for (const [name, expected] of [
      ['deploy/none', /there is no Deployment default\/none/],
      ['none', /there is no pod default\/none/],
      ['crd/none', /there is no CustomResourceDefinition none/],
    ] as const) {
      const missing = await skiff(name)
      assert.equal((missing.error as { exit?: string }).exit, 'notFound')
      assert.match(String(missing.error), expected)
    }
  })

  test('X8 why -o json has the causes with their evidence', async () => {
    const found = JSON.parse((await skiff('pvc/data', '-o', 'json')).stdout) as ObjectAnswer
    assert.deepEqual(found, {
      object: 'PersistentVolumeClaim default/data',
      state: 'its phase is Pending',
      causes: [{ text: 'its StorageClass fast does not exist', evidence: 'spec.storageClassName fast', next: 'kubectl get storageclasses' }],
      isSettled: false,
      notRead: [],
    })
  })

  test('X8 why says what a user may not read', async () => {
    const rules = [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }]
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
    const post = (url: string, body: object) => cluster.client.transport.request({ method: 'POST', path: url, body })
    await post(`${rbac}/roles`, { metadata: { name: 'looker' }, rules })
    await post(`${rbac}/rolebindings`, {
      metadata: { name: 'looker' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'looker' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
    })
    const { transport } = cluster.clientAs({ name: 'bob', groups: ['system:authenticated'] })
    const reader = createReader(transport)
    const found = await cluster.until(async () => (await reader.get<KubeObject>('/apis/apps/v1/namespaces/default/deployments/web')).found)
    const answer = await explainObject({ group: 'apps', resource: 'deployments' }, found, reader)
    assert.deepEqual(answer.notRead, ['you may not list replicasets.apps in the namespace default'])
    assert.deepEqual(answer.causes, [])
  })

  test('X8 the page gets the same answer for every kind', async () => {
    const query = new URLSearchParams({ group: '', resource: 'persistentvolumeclaims', namespace: 'default', name: 'data' })
    const answer = (await pageAnswers['/front/why']?.(query, { transport: cluster.client.transport } as never)) as ObjectAnswer
    assert.equal(answer.causes[0]?.text, 'its StorageClass fast does not exist')
  })
})
