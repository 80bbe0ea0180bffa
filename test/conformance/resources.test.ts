/**
 * Every resource of v1.36 against a real server, one row of ./resourceTable.ts each: its place in discovery, and its whole life in every form
 * that clients ask for.
 */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { aggregatedDiscoveryType } from '#api/discovery/discovery'
import { type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { parseYaml } from '#api/machinery/yaml'
import { decodeProtobuf, partialObjectMetadataSchema, protobufMediaType } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import { decode } from '#api/schema/decode'
import { withNils } from '#api/schema/nils'
import type { ApiRequest } from '#client/transport'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { rawHttp } from '../integration/api/rawHttp.ts'
import { sinceKubectl, testKubectl } from '../support/kubectl.ts'
import { startServerWithReviews } from '../support/serverWithReviews.ts'
import { leastOf, nameFor, type ResourceRow, resourceTable } from './resourceTable.ts'

let api: TestApiServer
let listener: TestListener
before(async () => {
  // Priority and fairness would write the status of flow schemas while their forms are compared.
  api = await startServerWithReviews({ priorityAndFairness: false })
  listener = await api.listen()
})
after(() => api.close())

interface Body {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
    readonly labels?: Readonly<Record<string, string>>
    readonly managedFields?: readonly { readonly manager: string; readonly operation: string; readonly fieldsV1?: Readonly<Record<string, object>> }[]
    readonly deletionTimestamp?: string
  }
  readonly spec?: { readonly replicas?: number }
  readonly status?: Readonly<Record<string, unknown>>
}

async function send<T>(method: ApiRequest['method'], path: string, body?: unknown, contentType?: string, query?: ApiRequest['query']): Promise<T> {
  return (await api.client.transport.request({ method, path, body, contentType, query })).body as T
}

/** An answer as it is on the wire. */
async function read(path: string, accept: string): Promise<Buffer> {
  const answer = await rawHttp(listener, { path, headers: { accept } })
  assert.equal(answer.status, 200, answer.body.toString('utf8'))
  assert.equal(String(answer.headers['content-type']).split(';')[0], accept.split(';')[0])
  return answer.body
}

async function readJson<T>(path: string, accept = 'application/json'): Promise<T> {
  return JSON.parse((await read(path, accept)).toString('utf8')) as T
}

const rootOf = (groupVersion: string): string => (groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`)

function pathOf([groupVersion, resource, , , scope]: ResourceRow): string {
  return `${rootOf(groupVersion)}${scope === 'ns' ? '/namespaces/default' : ''}/${resource}`
}

for (const row of resourceTable) {
  const [groupVersion, resource, , , , verbs] = row
  if (verbs.includes('watch')) test(`API-01 ${resource} of ${groupVersion} live a whole life in every form`, () => lifeOf(row))
  else if (resource !== 'componentstatuses' && resource !== 'bindings') test(`API-01 ${resource} of ${groupVersion} are answered`, () => answerOf(row))
}

/** Reviews: created, answered, never stored. */
async function answerOf(row: ResourceRow): Promise<void> {
  const [groupVersion, resource, , kind] = row
  const made = await send<Body>('POST', pathOf(row), { apiVersion: groupVersion, kind, ...leastOf(parseGroupVersion(groupVersion).group, resource) })
  assert.deepEqual([made.apiVersion, made.kind, typeof made.status], [groupVersion, kind, 'object'])
}

test('API-01 bindings of v1 give a pod its node', async () => {
  await send('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'bound' }, ...leastOf('', 'pods') })
  await send('POST', '/api/v1/namespaces/default/bindings', { metadata: { name: 'bound' }, ...leastOf('', 'bindings') })
  const pod = await send<{ spec: { nodeName?: string } }>('GET', '/api/v1/namespaces/default/pods/bound')
  assert.equal(pod.spec.nodeName, 'n')
})

test('API-01 componentstatuses of v1 are listed', async () => {
  const list = await readJson<{ kind: string; items: unknown[] }>('/api/v1/componentstatuses')
  assert.deepEqual([list.kind, Array.isArray(list.items)], ['ComponentStatusList', true])
})

async function lifeOf(row: ResourceRow): Promise<void> {
  const [groupVersion, resource, , kind, , verbs, , subresources] = row
  const path = pathOf(row)
  const name = nameFor(resource)
  const one = `${path}/${name}`
  const { metadata: before } = await send<{ metadata: { resourceVersion: string } }>('GET', path)
  const posted = await send<Body>('POST', path, { metadata: { name }, ...leastOf(parseGroupVersion(groupVersion).group, resource) })
  assert.deepEqual([posted.apiVersion, posted.kind, posted.metadata.name], [groupVersion, kind, name])
  const made = resource === 'customresourcedefinitions' ? await established(one) : posted
  await formsOf(row, one, made)
  await listFormsOf(row, path, made)
  const list = await send<{ kind: string; apiVersion: string; items: Body[] }>('GET', path)
  assert.deepEqual([list.apiVersion, list.kind], [groupVersion, `${kind}List`])
  assert.ok(list.items.some((item) => item.metadata.uid === made.metadata.uid))
  const updated = await send<Body>('PUT', one, made)
  assert.equal(updated.metadata.resourceVersion, made.metadata.resourceVersion, 'an update that changes nothing')
  await patchesOf(row, one)
  const names = subresources.split(' ')
  if (names.includes('status')) await statusOf(resource, one)
  if (names.includes('scale')) await scaleOf(one)
  assert.deepEqual((await watched(path, name, before.resourceVersion)).slice(0, 2), ['ADDED', 'MODIFIED'])
  const left = await deleted(one, () => send('DELETE', one, { gracePeriodSeconds: 0, propagationPolicy: 'Background' }))
  if (left || !verbs.includes('deletecollection')) return
  await send('POST', path, { metadata: { name }, ...leastOf(parseGroupVersion(groupVersion).group, resource) })
  const query = { fieldSelector: `metadata.name=${name}` }
  await deleted(one, () => send('DELETE', path, { gracePeriodSeconds: 0, propagationPolicy: 'Background' }, undefined, query))
}

/** Definitions are established by the server itself: from then on they rest. */
async function established(one: string): Promise<Body> {
  const deadlineMs = Date.now() + 5_000
  for (;;) {
    const found = await send<Body>('GET', one)
    const conditions = (found.status?.conditions ?? []) as readonly { type: string; status: string }[]
    if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return found
    if (Date.now() > deadlineMs) throw new Error(`${one} is not established`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Deletes; tells whether something is left: protection finalizers are their controllers' to take off. */
async function deleted(one: string, act: () => Promise<unknown>): Promise<boolean> {
  await act()
  const gone = await send<Body>('GET', one).catch((error: unknown) => error)
  if (!(gone instanceof StatusError)) assert.ok((gone as Body).metadata.deletionTimestamp)
  else assert.equal(gone.code, 404)
  return !(gone instanceof StatusError)
}

/** The collection as Table, bare metadata and protobuf. */
async function listFormsOf([groupVersion, , , kind]: ResourceRow, path: string, made: Body): Promise<void> {
  type List = { kind: string; apiVersion: string; items: Body[]; metadata: { resourceVersion?: string } }
  const table = await readJson<{ kind: string; rows: { object: Body }[] }>(path, 'application/json;as=Table;v=v1;g=meta.k8s.io')
  assert.ok(table.kind === 'Table' && table.rows.some(({ object }) => object.metadata.uid === made.metadata.uid))
  const partial = await readJson<List>(path, 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io')
  assert.equal(partial.kind, 'PartialObjectMetadataList')
  assert.deepEqual(
    partial.items.find(({ metadata }) => metadata.uid === made.metadata.uid),
    { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: made.metadata },
  )
  const { group, version } = parseGroupVersion(groupVersion)
  const schema = schemaFor(group, version, `${kind}List`)
  assert.ok(schema)
  const list = decodeProtobuf(await read(path, protobufMediaType), () => schema) as unknown as List
  assert.deepEqual([list.apiVersion, list.kind, typeof list.metadata.resourceVersion], [groupVersion, `${kind}List`, 'string'])
  assert.ok(list.items.some(({ metadata }) => metadata.uid === made.metadata.uid))
}

/** One object as YAML, protobuf, Table and bare metadata, against its JSON. */
async function formsOf([groupVersion, , , kind]: ResourceRow, one: string, made: Body): Promise<void> {
  const { group, version } = parseGroupVersion(groupVersion)
  const schema = schemaFor(group, version, kind)
  assert.ok(schema)
  // In-process answers have no nulls; on the wire absent lists and times are null, as upstream.
  const wire = withNils(made as KubeObject)
  assert.deepEqual(await readJson(one), wire)
  const owned = (made.metadata.managedFields ?? []).flatMap(({ fieldsV1 }) => Object.keys(fieldsV1?.['f:spec'] ?? {}))
  const unknown = owned.filter((field) => field !== '.' && !schema.fields?.get('spec')?.schema.fields?.has(field.slice('f:'.length)))
  assert.deepEqual(unknown, [], 'fields are owned under the names of the version')
  assert.deepEqual(parseYaml((await read(one, 'application/yaml')).toString('utf8')), wire)
  const message = decodeProtobuf(await read(one, protobufMediaType), () => schema)
  const fromJson = decode(structuredClone(made), schema, { unknown: 'drop' }).object
  assert.deepEqual(decode(message, schema, { unknown: 'drop' }).object, withoutEmptyLists(fromJson))
  type Table = { kind: string; columnDefinitions: { name: string }[]; rows: { cells: unknown[]; object: Body }[] }
  const table = await readJson<Table>(one, 'application/json;as=Table;v=v1;g=meta.k8s.io')
  const [line] = table.rows
  assert.deepEqual(
    [table.kind, table.rows.length, line?.cells.length, line?.object.kind, line?.object.metadata.uid],
    ['Table', 1, table.columnDefinitions.length, 'PartialObjectMetadata', made.metadata.uid],
  )
  const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: made.metadata }
  const as = ';as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
  assert.deepEqual(await readJson(one, `application/json${as}`), partial)
  assert.deepEqual(
    decodeProtobuf(await read(one, `${protobufMediaType}${as}`), () => partialObjectMetadataSchema(false)),
    partial,
  )
}

/** An empty list is nothing on protobuf's wire. */
function withoutEmptyLists(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmptyLists)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([, member]) => !Array.isArray(member) || member.length > 0)
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutEmptyLists(member)]))
}

/** The three patches and an apply, each of which leaves its label. */
async function patchesOf([groupVersion, , , kind]: ResourceRow, one: string): Promise<void> {
  const labels = (by: string) => ({ metadata: { labels: { [by]: 'yes' } } })
  await send('PATCH', one, labels('merge'), 'application/merge-patch+json')
  await send('PATCH', one, labels('strategic'), 'application/strategic-merge-patch+json')
  await send('PATCH', one, [{ op: 'add', path: '/metadata/labels/by', value: 'json' }], 'application/json-patch+json')
  const applied = { apiVersion: groupVersion, kind, metadata: { ...labels('applied').metadata } }
  const last = await send<Body>('PATCH', one, applied, 'application/apply-patch+yaml', { fieldManager: 'conformance', force: 'true' })
  const { merge, strategic, by, applied: byApply } = last.metadata.labels ?? {}
  assert.deepEqual({ merge, strategic, by, byApply }, { merge: 'yes', strategic: 'yes', by: 'json', byApply: 'yes' })
  assert.ok(last.metadata.managedFields?.some(({ manager, operation }) => manager === 'conformance' && operation === 'Apply'))
}

const conditions = [{ type: 'Known', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z', reason: 'Reason', message: 'text' }]
/** What a status can hold, where that is not conditions. */
const statusFor: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  // The server fills in a time that is not given.
  certificatesigningrequests: { conditions: conditions.map((condition) => ({ ...condition, lastUpdateTime: '2026-01-01T00:00:00Z' })) },
  cronjobs: { lastScheduleTime: '2026-01-01T00:00:00Z' },
  horizontalpodautoscalers: { currentReplicas: 3, desiredReplicas: 4 },
  ingresses: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } },
  persistentvolumeclaims: { phase: 'Lost' },
  persistentvolumes: { phase: 'Failed' },
  resourcequotas: { hard: { pods: '2' } },
  validatingadmissionpolicies: { observedGeneration: 1 },
  volumeattachments: { attached: true },
  resourceclaims: { allocation: { allocationTimestamp: '2026-01-01T00:00:00Z', devices: {} } },
}

/** The status is read, replaced unchanged, and changed by a patch that reaches nothing else. */
async function statusOf(resource: string, one: string): Promise<void> {
  const object = await send<Body>('GET', `${one}/status`)
  assert.deepEqual(object, await send('GET', one))
  await send('PUT', `${one}/status`, object)
  const status = statusFor[resource] ?? { conditions }
  const patched = await send<Body>('PATCH', `${one}/status`, { status }, 'application/merge-patch+json')
  const got = Object.fromEntries(Object.keys(status).map((key) => [key, patched.status?.[key]]))
  assert.deepEqual(got, status)
  assert.deepEqual(patched.spec, object.spec)
}

async function scaleOf(one: string): Promise<void> {
  const scale = await send<{ kind: string; apiVersion: string; spec: object }>('GET', `${one}/scale`)
  assert.deepEqual([scale.apiVersion, scale.kind], ['autoscaling/v1', 'Scale'])
  const schema = schemaFor('autoscaling', 'v1', 'Scale')
  assert.deepEqual((decodeProtobuf(await read(`${one}/scale`, protobufMediaType), () => schema) as unknown as Body).spec, scale.spec)
  await send('PUT', `${one}/scale`, { ...scale, spec: { replicas: 3 } })
  assert.equal((await send<Body>('GET', one)).spec?.replicas, 3)
}

/** The types of the events that an object has had since a version, up to now. */
async function watched(path: string, name: string, resourceVersion: string): Promise<string[]> {
  const stop = new AbortController()
  const types: string[] = []
  const query = { resourceVersion, fieldSelector: `metadata.name=${name}` }
  for await (const batch of api.client.transport.watch({ method: 'GET', path, query }, stop.signal)) {
    types.push(...batch.map(({ type }) => type))
    if (types.length >= 2) break
  }
  stop.abort()
  return types
}

test('a query number that is none is refused', async () => {
  for (const query of ['limit=x', 'watch=1&timeoutSeconds=x']) {
    const { status, body } = await rawHttp(listener, { path: `/api/v1/pods?${query}` })
    assert.deepEqual([status, (JSON.parse(body.toString('utf8')) as { message: string }).message], [400, 'strconv.ParseInt: parsing "x": invalid syntax'])
  }
})

const expectedLines = resourceTable.map(([groupVersion, name, shortNames, kind, scope, verbs, categories, subresources]) =>
  [groupVersion, name, shortNames, kind, scope, verbs, categories, subresources.split(' ').map(withVerbs).sort().join(' ')].join('|'),
)

function withVerbs(subresource: string): string {
  return subresource === '' || subresource.includes(':') ? subresource : `${subresource}:get,patch,update`
}

const groupVersions = [...new Set(resourceTable.map(([groupVersion]) => groupVersion))]

interface Entry {
  readonly name: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
}

function lineOf(groupVersion: string, entry: Entry, subresources: readonly string[]): string {
  const { name, kind, namespaced, verbs, shortNames = [], categories = [] } = entry
  return [
    groupVersion,
    name,
    shortNames.join(','),
    kind,
    namespaced ? 'ns' : '',
    verbs.join(' '),
    categories.join(','),
    [...subresources].sort().join(' '),
  ].join('|')
}

test('API-14 legacy discovery lists the resources of v1.36 and no others', async () => {
  const lines: string[] = []
  for (const groupVersion of groupVersions) {
    const { resources } = await readJson<{ resources: Entry[] }>(rootOf(groupVersion))
    for (const entry of resources.filter(({ name }) => !name.includes('/'))) {
      const below = resources.filter(({ name }) => name.startsWith(`${entry.name}/`))
      const subresources = below.map(({ name, verbs }) => `${name.slice(entry.name.length + 1)}:${verbs.join(',')}`)
      lines.push(lineOf(groupVersion, entry, subresources))
    }
  }
  assert.deepEqual(lines.sort(), [...expectedLines].sort())
})

interface Aggregated {
  readonly items: readonly {
    readonly metadata: { readonly name?: string }
    readonly versions: readonly {
      readonly version: string
      readonly resources: readonly (Omit<Entry, 'name' | 'kind' | 'namespaced'> & {
        readonly resource: string
        readonly scope: string
        readonly responseKind: { readonly kind: string }
        readonly subresources?: readonly { readonly subresource: string; readonly verbs: readonly string[] }[]
      })[]
    }[]
  }[]
}

test('API-14 aggregated discovery lists the same', async () => {
  const items = [
    ...(await readJson<Aggregated>('/api', aggregatedDiscoveryType)).items,
    ...(await readJson<Aggregated>('/apis', aggregatedDiscoveryType)).items,
  ]
  const lines = items.flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources }) =>
      resources.map(({ resource, scope, responseKind, subresources = [], ...entry }) => {
        const below = subresources.map(({ subresource, verbs }) => `${subresource}:${verbs.join(',')}`)
        const named = { ...entry, name: resource, kind: responseKind.kind, namespaced: scope === 'Namespaced' }
        return lineOf(metadata.name ? `${metadata.name}/${version}` : version, named, below)
      }),
    ),
  )
  assert.deepEqual(lines.sort(), [...expectedLines].sort())
})

// The column of categories came with 1.26.
test('API-14 kubectl api-resources -o wide shows the same', sinceKubectl(26), async () => {
  const kubectl = testKubectl(listener)
  const { stdout: text } = await kubectl.run('api-resources -o wide')
  kubectl.remove()
  const [header = '', ...rows] = text.trimEnd().split('\n')
  const starts = ['NAME', 'SHORTNAMES', 'APIVERSION', 'NAMESPACED', 'KIND', 'VERBS', 'CATEGORIES'].map((column) => header.indexOf(column))
  const lines = rows.map((row) => starts.map((start, i) => row.slice(start, starts[i + 1]).trim()).join('|'))
  // kubectl shows preferred versions: horizontalpodautoscalers once.
  const expected = resourceTable
    .filter(([groupVersion]) => groupVersion !== 'autoscaling/v1')
    .map(([groupVersion, name, short, kind, scope, verbs, categories]) =>
      [name, short, groupVersion, String(scope === 'ns'), kind, verbs.replaceAll(' ', ','), categories].join('|'),
    )
  assert.deepEqual(lines.sort(), expected.sort())
})
