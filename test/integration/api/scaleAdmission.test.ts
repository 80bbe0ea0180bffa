/** What admission sees of a write through the scale subresource: the Scale, of the kind Scale, which mutating plugins may change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdmissionAttributes, AdmissionPlugin } from '#apiserver/admission/admission'
import { deployments } from '#client/builtIn'
import { startTestApiServer } from '#testing/apiServer'
import { rawHttp } from './rawHttp.ts'

const path = '/apis/apps/v1/namespaces/default/deployments/web/scale'
const web = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace: 'default', name: 'web' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: 'a:1' }] } },
  },
}

type Replicas = { spec?: { replicas?: number } } | undefined

/** `half: operation resource/subresource kind old→new`. */
function seen(half: string, { operation, resource, subresource, kind, object, oldObject }: AdmissionAttributes): string {
  const [old, now] = [oldObject as Replicas, object as Replicas].map((one) => one?.spec?.replicas ?? 'none')
  return `${half}: ${operation} ${resource.resource}/${subresource} ${kind.group}/${kind.version} ${kind.kind} ${object?.kind} ${old}→${now}`
}

test('API-10 who scales is admitted as a writer of the Scale', async (t) => {
  const log: string[] = []
  const watching: AdmissionPlugin = {
    name: 'Watching',
    handles: () => true,
    admit(attributes) {
      log.push(seen('admit', attributes))
      const spec = (attributes.object as Replicas)?.spec
      if (attributes.subresource === 'scale' && spec?.replicas === 7) spec.replicas = 5
    },
    validate: (attributes) => void log.push(seen('validate', attributes)),
  }
  const api = await startTestApiServer({ deps: () => ({ admission: [watching] }) })
  t.after(() => api.close())
  await api.client.of(deployments).create(web)
  log.length = 0
  const { transport } = api.client
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'web', namespace: 'default' }, spec: { replicas: 2 } }
  await transport.request({ method: 'PUT', path, body: scale })
  await transport.request({ method: 'PATCH', path, body: { spec: { replicas: 7 } }, contentType: 'application/merge-patch+json' })
  const what = 'UPDATE deployments/scale autoscaling/v1 Scale Scale'
  assert.deepEqual(log, [`admit: ${what} 1→2`, `validate: ${what} 1→2`, `admit: ${what} 2→7`, `validate: ${what} 2→5`])
  assert.equal((await api.client.of(deployments).get({ namespace: 'default', name: 'web' })).spec?.replicas, 5)
})

const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

test('API-10 a Scale is shown as a table with the desired and available replicas, whether it is read or written', async (t) => {
  const api = await startTestApiServer()
  t.after(() => api.close())
  await api.client.of(deployments).create(web)
  const listener = await api.listen()
  const headers = { accept: tableType, 'content-type': 'application/merge-patch+json' }
  for (const [request, desired] of [
    [{ method: 'GET' }, 1],
    [{ method: 'PATCH', body: '{"spec":{"replicas":3}}' }, 3],
  ] as const) {
    const answer = await rawHttp(listener, { ...request, path, headers, token: listener.token })
    const { kind, columnDefinitions, rows } = JSON.parse(answer.body.toString())
    assert.equal(kind, 'Table')
    assert.deepEqual(
      columnDefinitions.map(({ name, type }: { name: string; type: string }) => `${name} ${type}`),
      ['Name string', 'Desired integer', 'Available integer', 'Age string'],
    )
    assert.deepEqual(rows[0].cells.slice(0, 3), ['web', desired, 0])
    assert.match(rows[0].cells[3], /^\d+s$/)
  }
})
