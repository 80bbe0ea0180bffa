/** API-10: each of the two groups of Events selects by its own names of the fields. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { KubeList, KubeObject } from '#api/machinery/meta'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'

let api: TestApiServer
before(async () => {
  api = await startTestApiServer()
  const event = (name: string, about: object, more: object) => ({ metadata: { name }, involvedObject: { namespace: 'default', ...about }, ...more })
  const one = { kind: 'Pod', name: 'web', uid: 'u1', apiVersion: 'v1', resourceVersion: '7', fieldPath: 'spec.containers{c}' }
  await create(event('one', one, { reason: 'Started', type: 'Normal', source: { component: 'kubelet' } }))
  await create(event('two', { kind: 'Node', name: 'n1' }, { reason: 'Lost', type: 'Warning', reportingComponent: 'node-controller' }))
})
after(() => api.close())

const path = (groupVersion: string) => `/${groupVersion === 'v1' ? 'api' : 'apis'}/${groupVersion}/namespaces/default/events`
const create = (body: object) => api.client.transport.request({ method: 'POST', path: path('v1'), body })

async function select(groupVersion: string, fieldSelector: string): Promise<string[]> {
  const { body } = await api.client.transport.request({ method: 'GET', path: path(groupVersion), query: { fieldSelector } })
  return (body as KubeList<KubeObject>).items.map(({ metadata }) => metadata.name ?? '')
}

const about: readonly (readonly [string, string, readonly string[]])[] = [
  ['kind', 'Pod', ['one']],
  ['namespace', 'default', ['one', 'two']],
  ['name', 'n1', ['two']],
  ['uid', 'u1', ['one']],
  ['apiVersion', 'v1', ['one']],
  ['resourceVersion', '7', ['one']],
  ['fieldPath', 'spec.containers{c}', ['one']],
]
const common: readonly (readonly [string, string, readonly string[]])[] = [
  ['reason', 'Lost', ['two']],
  ['type', 'Normal', ['one']],
  ['metadata.name', 'two', ['two']],
  ['metadata.namespace', 'default', ['one', 'two']],
]
const groups = [
  {
    groupVersion: 'v1',
    fields: [
      ...about.map(([field, value, want]) => [`involvedObject.${field}`, value, want] as const),
      ['reportingComponent', 'node-controller', ['two']] as const,
      ['source', 'node-controller', ['two']] as const,
      ['source', 'kubelet', ['one']] as const,
    ],
    foreign: ['regarding.kind', 'reportingController'],
  },
  {
    groupVersion: 'events.k8s.io/v1',
    fields: [
      ...about.map(([field, value, want]) => [`regarding.${field}`, value, want] as const),
      ['reportingController', 'node-controller', ['two']] as const,
    ],
    foreign: ['involvedObject.kind', 'reportingComponent', 'source'],
  },
]

for (const { groupVersion, fields, foreign } of groups) {
  for (const [field, value, want] of [...fields, ...common]) {
    test(`API-10 events of ${groupVersion} are selected by ${field}=${value}`, async () => {
      assert.deepEqual(await select(groupVersion, `${field}=${value}`), want)
    })
  }
  for (const field of foreign) {
    test(`API-10 events of ${groupVersion} are not selected by ${field}`, async () => {
      await assert.rejects(select(groupVersion, `${field}=x`), (error: Error) => error.message.includes(`field label not supported: ${field}`))
    })
  }
}
