/** Managed fields of a custom resource with several versions: entries are compared in their own version, and those of a removed version are dropped. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { startTestApiServer } from '#testing/apiServer'
import { type Any, crdPath, definition, establish, group, object, type Plain, plain, until, version } from './support.ts'

const text: JSONSchemaProps = { type: 'string' }
const schemaOf = (properties: Record<string, JSONSchemaProps>): JSONSchemaProps => ({ type: 'object', properties: { spec: { type: 'object', properties } } })
const ports = (listType: 'map' | 'atomic'): JSONSchemaProps => ({
  type: 'array',
  items: { type: 'object', required: ['name'], properties: { name: text, number: { type: 'integer' } } },
  ...(listType === 'map' ? { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] } : { 'x-kubernetes-list-type': 'atomic' }),
})
const v1 = version('v1', schemaOf({ host: text, tier: text, ports: ports('map') }))
const v1beta1 = version('v1beta1', schemaOf({ host: text, tier: text, ports: ports('atomic') }), { storage: false })
const hosts = definition('hosts', 'Host', [v1, v1beta1])
const path = (of: string) => `/apis/${group}/${of}/namespaces/default/hosts/a`

const applying = (client: Plain, of: string, manager: string, spec: object, force = false) =>
  client.request('PATCH', `${path(of)}?fieldManager=${manager}&force=${force}`, object('Host', 'a', spec, {}, `${group}/${of}`), {
    contentType: 'application/apply-patch+yaml',
  })

const claims = (one: Any) =>
  Object.fromEntries(
    one.metadata.managedFields.map((entry: Any) => [`${entry.manager} ${entry.apiVersion.split('/')[1]}`, Object.keys(entry.fieldsV1['f:spec'] ?? {})]),
  )

async function withHosts(run: (client: Plain) => Promise<void>): Promise<void> {
  const api = await startTestApiServer()
  try {
    await establish(api.client, hosts)
    await run(plain(api.client))
  } finally {
    await api.close()
  }
}

/** The definition without v1beta1, and that it is not served any more. */
async function dropOldVersion(client: Plain): Promise<void> {
  await client.request('PATCH', `${crdPath}/hosts.${group}`, { spec: { versions: [v1] } }, { contentType: 'application/merge-patch+json' })
  await until('the end of v1beta1', () => client.isGone(path('v1beta1')))
}

test('API-11 CRD-04 an apply in v1 takes over what the same manager applied in v1beta1, and back', () =>
  withHosts(async (client) => {
    await applying(client, 'v1beta1', 'm', { host: 'h', tier: 'low' })
    const moved = await applying(client, 'v1', 'm', { host: 'h' })
    assert.deepEqual([moved.spec, claims(moved)], [{ host: 'h' }, { 'm v1': ['f:host'] }])
    const back = await applying(client, 'v1beta1', 'm', { tier: 'high' })
    assert.deepEqual([back.spec, claims(back)], [{ tier: 'high' }, { 'm v1beta1': ['f:tier'] }])
  }))

test('API-11 CRD-04 a conflict names the field as the version of its claim sees it', () =>
  withHosts(async (client) => {
    await applying(client, 'v1beta1', 'old', { ports: [{ name: 'a', number: 1 }] })
    await assert.rejects(applying(client, 'v1', 'new', { ports: [{ name: 'a', number: 2 }] }), (error: Any) => {
      assert.deepEqual(
        [error.code, error.details.causes.map((cause: Any) => cause.field)],
        // v1beta1 has the list as one value, v1 has items.
        [409, ['.spec.ports']],
      )
      return true
    })
    const forced = await applying(client, 'v1', 'new', { ports: [{ name: 'a', number: 2 }] }, true)
    assert.deepEqual(claims(forced), { 'new v1': ['f:ports'] })
  }))

test('API-11 CRD-04 the next write drops managed fields of a removed version, and their fields have no owner', () =>
  withHosts(async (client) => {
    await applying(client, 'v1beta1', 'old', { host: 'h', tier: 'low' })
    await applying(client, 'v1', 'new', { host: 'h' })
    await dropOldVersion(client)
    assert.deepEqual(claims(await client.request('GET', path('v1'))), { 'old v1beta1': ['f:host', 'f:tier'], 'new v1': ['f:host'] })
    const applied = await applying(client, 'v1', 'new', { host: 'g' })
    assert.deepEqual([applied.spec, claims(applied)], [{ host: 'g', tier: 'low' }, { 'new v1': ['f:host'] }])
    const again = await applying(client, 'v1', 'old', { tier: 'high' })
    assert.deepEqual(claims(again), { 'new v1': ['f:host'], 'old v1': ['f:tier'] })
  }))

test('API-11 CRD-04 an update, too, drops the claims of a version that is gone', () =>
  withHosts(async (client) => {
    await applying(client, 'v1beta1', 'old', { host: 'h' })
    await dropOldVersion(client)
    const patched = await client.request(
      'PATCH',
      `${path('v1')}?fieldManager=editor`,
      { spec: { tier: 'low' } },
      { contentType: 'application/merge-patch+json' },
    )
    assert.deepEqual(claims(patched), { 'editor v1': ['f:tier'] })
  }))
