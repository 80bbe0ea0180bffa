/** Custom resources over the API: served at once, with everything that built-in resources can do. */
import assert from 'node:assert/strict'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { refused } from '../../support/refused.ts'
import { bothTransports, type Case } from '../api/bothTransports.ts'
import { crdPath, definition, establish, group, object, plain, until, version } from './support.ts'

const schema: JSONSchemaProps = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, maximum: 10 },
        mode: { type: 'string', enum: ['fast', 'safe'], default: 'safe' },
        replicas: { type: 'integer' },
        note: { type: 'string', nullable: true },
        port: { 'x-kubernetes-int-or-string': true },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        template: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
        tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        parts: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: { type: 'object', required: ['name'], properties: { name: { type: 'string' }, weight: { type: 'integer', default: 1 } } },
        },
      },
    },
    status: {
      type: 'object',
      properties: { replicas: { type: 'integer' }, selector: { type: 'string' }, phase: { type: 'string', enum: ['New', 'Ready'] } },
    },
  },
}

const widgets = definition(
  'widgets',
  'Widget',
  [
    version('v1', schema, {
      subresources: {
        status: {},
        scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
      },
      additionalPrinterColumns: [
        { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
        { name: 'Mode', type: 'string', jsonPath: '.spec.mode', priority: 1, description: 'How it runs.' },
        { name: 'First', type: 'string', jsonPath: '.spec.parts[?(@.weight==1)].name' },
        { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      ],
      selectableFields: [{ jsonPath: '.spec.mode' }],
    }),
  ],
  { names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['all'] } },
)

const widget = (name: string, spec: object = { size: 1 }, more: object = {}) => object('Widget', name, spec, more)
const pathOf = (namespace: string, name = '') => `/apis/${group}/v1/namespaces/${namespace}/widgets${name && `/${name}`}`

bothTransports({
  async 'CRD-01 a resource is served as soon as its definition is established, and gone with it'({ client, namespace }: Case) {
    const api = plain(client)
    const before = await refused(api.request('GET', pathOf(namespace)))
    assert.equal(before.code, 404)
    const made = await establish(client, widgets)
    assert.deepEqual(
      made.status.conditions?.map(({ type, status, reason }) => [type, status, reason]),
      [
        ['NamesAccepted', 'True', 'NoConflicts'],
        ['Established', 'True', 'InitialNamesAccepted'],
      ],
    )
    assert.deepEqual(made.status.storedVersions, ['v1'])
    assert.deepEqual(made.spec.names, {
      plural: 'widgets',
      singular: 'widget',
      kind: 'Widget',
      listKind: 'WidgetList',
      shortNames: ['wd'],
      categories: ['all'],
    })
    const created = await api.request('POST', pathOf(namespace), widget('a', { size: 2, unknown: 1 }))
    assert.deepEqual(created.spec, { size: 2, mode: 'safe' })
    assert.deepEqual([created.apiVersion, created.kind, created.metadata.generation], ['example.com/v1', 'Widget', 1])
    const list = await api.request('GET', pathOf(namespace))
    assert.deepEqual([list.kind, list.apiVersion, list.items[0].kind], ['WidgetList', 'example.com/v1', 'Widget'])
    await api.request('DELETE', `${crdPath}/widgets.${group}`)
    await until('the end of the definition', () => api.isGone(`${crdPath}/widgets.${group}`))
    assert.equal((await refused(api.request('GET', pathOf(namespace, 'a')))).code, 404)
    // A recreated definition of the same name has no objects.
    await establish(client, widgets)
    assert.deepEqual((await api.request('GET', pathOf(namespace))).items, [])
  },

  async 'CRD-01 faults are refused with the paths and texts of upstream'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    const fault = async (spec: unknown) => (await refused(api.request('POST', pathOf(namespace), widget('a', spec as object)))).message
    const prefix = 'Widget.example.com "a" is invalid: '
    assert.equal(await fault({ size: 'x' }), `${prefix}spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`)
    assert.equal(await fault({ size: 0 }), `${prefix}spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1`)
    assert.equal(await fault({}), `${prefix}spec.size: Required value`)
    assert.equal(await fault({ size: 1, mode: 'slow' }), `${prefix}spec.mode: Unsupported value: "slow": supported values: "fast", "safe"`)
    assert.equal(await fault({ size: 1, tags: ['a', 'b', 'a'] }), `${prefix}spec.tags[2]: Duplicate value: "a"`)
    assert.equal(await fault({ size: 1, parts: [{ name: 'p' }, { name: 'p' }] }), `${prefix}spec.parts[1]: Duplicate value: {"name":"p"}`)
    assert.equal(
      await fault({ size: 1, template: { metadata: { name: 'UPPER/x' } } }),
      `${prefix}[spec.template.apiVersion: Required value, spec.template.kind: Required value, spec.template.metadata.name: Invalid value: "UPPER/x": may not contain '/']`,
    )
    assert.equal(await fault({ size: 1, replicas: -1 }), `${prefix}.spec.replicas: Invalid value: -1: should be a non-negative integer`)
  },

  async 'CRD-01 nulls, int-or-string, free parts and embedded objects'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    const spec = {
      size: 1,
      mode: null,
      note: null,
      port: 'http',
      free: { any: { thing: [1, null] } },
      template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', odd: 1, labels: { a: 'b' } }, spec: { x: 1 } },
      parts: [{ name: 'p', weight: null }],
    }
    const made = await api.request('POST', pathOf(namespace), widget('a', spec))
    assert.deepEqual(made.spec, {
      ...spec,
      mode: 'safe',
      template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', labels: { a: 'b' } }, spec: { x: 1 } },
      parts: [{ name: 'p', weight: 1 }],
    })
  },

  async 'CRD-03 status and spec have their own endpoints, and generation counts the spec alone'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    const made = await api.request('POST', pathOf(namespace), widget('a', { size: 1 }, { status: { phase: 'Ready' } }))
    assert.equal(made.status, undefined)
    const withStatus = await api.request('PUT', `${pathOf(namespace, 'a')}/status`, {
      ...made,
      spec: { size: 5 },
      metadata: { ...made.metadata, labels: { x: 'y' } },
      status: { phase: 'Ready' },
    })
    assert.deepEqual(
      [withStatus.spec.size, withStatus.metadata.labels, withStatus.status, withStatus.metadata.generation],
      [1, undefined, { phase: 'Ready' }, 1],
    )
    const changed = await api.request('PUT', pathOf(namespace, 'a'), { ...withStatus, spec: { size: 6 }, status: { phase: 'New' } })
    assert.deepEqual([changed.spec.size, changed.status, changed.metadata.generation], [6, { phase: 'Ready' }, 2])
    const wrong = await refused(api.request('PUT', `${pathOf(namespace, 'a')}/status`, { ...changed, status: { phase: 'Odd' } }))
    assert.equal(wrong.message, 'Widget.example.com "a" is invalid: status.phase: Unsupported value: "Odd": supported values: "New", "Ready"')
    const stale = await refused(api.request('PUT', pathOf(namespace, 'a'), widget('a')))
    assert.equal(stale.message, 'Widget.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update')
  },

  async 'CRD-03 an unknown subresource of a custom resource is not found, by the name of the object'({ client, namespace }: Case) {
    await establish(client, widgets)
    const error = await refused(plain(client).request('GET', `${pathOf(namespace, 'a')}/nope`))
    assert.deepEqual([error.code, error.reason, error.details?.name], [404, 'NotFound', 'a'])
  },

  async 'CRD-03 scale reads and writes the paths that the definition names'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    await api.request('POST', pathOf(namespace), widget('a'))
    const scale = `${pathOf(namespace, 'a')}/scale`
    const absent = await refused(api.request('GET', scale))
    assert.deepEqual([absent.code, absent.message], [500, 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'])
    await api.request('PUT', scale, { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'a', namespace }, spec: { replicas: 3 } })
    await api.request(
      'PATCH',
      `${pathOf(namespace, 'a')}/status`,
      { status: { replicas: 2, selector: 'a=b' } },
      { contentType: 'application/merge-patch+json' },
    )
    const read = await api.request('GET', scale)
    assert.deepEqual([read.kind, read.apiVersion, read.spec, read.status], ['Scale', 'autoscaling/v1', { replicas: 3 }, { replicas: 2, selector: 'a=b' }])
    assert.equal((await api.request('GET', pathOf(namespace, 'a'))).spec.replicas, 3)
  },

  async 'CRD-03 columns come from the definition'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    await api.request('POST', pathOf(namespace), widget('a', { size: 4, parts: [{ name: 'x', weight: 7 }, { name: 'y' }] }))
    const table = await api.request('GET', pathOf(namespace), undefined, { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' })
    assert.deepEqual(
      table.columnDefinitions.map((column: { name: string; type: string; priority: number; description: string }) => [
        column.name,
        column.type,
        column.priority,
      ]),
      [
        ['Name', 'string', 0],
        ['Size', 'integer', 0],
        ['Mode', 'string', 1],
        ['First', 'string', 0],
        ['Age', 'date', 0],
      ],
    )
    assert.deepEqual(table.columnDefinitions[1].description, 'Custom resource definition column (in JSONPath format): .spec.size')
    assert.deepEqual(table.rows[0].cells.slice(0, 4), ['a', 4, 'safe', 'y'])
  },

  async 'CRD-03 objects are selected by the fields that the definition names'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    await api.request('POST', pathOf(namespace), widget('a'))
    await api.request('POST', pathOf(namespace), widget('b', { size: 1, mode: 'fast' }))
    const found = await api.request('GET', `${pathOf(namespace)}?fieldSelector=spec.mode%3Dfast`)
    assert.deepEqual(
      found.items.map((item: { metadata: { name: string } }) => item.metadata.name),
      ['b'],
    )
    const unknown = await refused(api.request('GET', `${pathOf(namespace)}?fieldSelector=spec.size%3D1`))
    assert.deepEqual([unknown.code, unknown.message], [400, 'field label not supported: spec.size'])
  },

  async 'CRD-01 every patch but the strategic one; strict fields; apply keeps list items apart'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    await api.request('POST', pathOf(namespace), widget('a', { size: 1, parts: [{ name: 'x' }] }))
    const patch = (type: string, body: unknown, query = '') => api.request('PATCH', `${pathOf(namespace, 'a')}${query}`, body, { contentType: type })
    assert.equal((await patch('application/merge-patch+json', { spec: { size: 2 } })).spec.size, 2)
    assert.equal((await patch('application/json-patch+json', [{ op: 'replace', path: '/spec/size', value: 3 }])).spec.size, 3)
    const strategic = await refused(patch('application/strategic-merge-patch+json', { spec: { size: 4 } }))
    assert.deepEqual(
      [strategic.code, strategic.message],
      [
        415,
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
      ],
    )
    const applied = await patch('application/apply-patch+yaml', widget('a', { parts: [{ name: 'y', weight: 9 }] }), '?fieldManager=me&force=true')
    assert.deepEqual(applied.spec.parts, [
      { name: 'x', weight: 1 },
      { name: 'y', weight: 9 },
    ])
    assert.ok(applied.metadata.managedFields.some((entry: { manager: string; operation: string }) => entry.manager === 'me' && entry.operation === 'Apply'))
    const strict = await refused(api.request('POST', `${pathOf(namespace)}?fieldValidation=Strict`, widget('b', { size: 1, sise: 2 })))
    assert.equal(strict.code, 400)
    assert.match(strict.message, /strict decoding error: unknown field "spec\.sise"/)
  },

  async 'CRD-06 finalizers hold an instance, and the instance its definition'({ client, namespace }: Case) {
    const api = plain(client)
    await establish(client, widgets)
    await api.request('POST', pathOf(namespace), { ...widget('a'), metadata: { name: 'a', finalizers: ['example.com/hold'] } })
    await api.request('DELETE', `${crdPath}/widgets.${group}`)
    const terminating = await until('the deletion of the instance', async () => {
      const held = await api.request('GET', pathOf(namespace, 'a'))
      return held.metadata.deletionTimestamp && held
    })
    const crd = await api.request('GET', `${crdPath}/widgets.${group}`)
    assert.deepEqual(crd.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io'])
    assert.equal(crd.status.conditions.find((one: { type: string }) => one.type === 'Terminating').status, 'True')
    const late = await refused(api.request('POST', pathOf(namespace), widget('b')))
    assert.deepEqual(
      [late.code, late.message],
      [403, 'widgets.example.com "b" is forbidden: create not allowed while custom resource definition is terminating'],
    )
    await api.request('PUT', pathOf(namespace, 'a'), { ...terminating, metadata: { ...terminating.metadata, finalizers: [] } })
    await until('the end of the definition', () => api.isGone(`${crdPath}/widgets.${group}`))
  },
})
