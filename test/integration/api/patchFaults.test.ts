/** Patches that are refused: by their media type, their form, what they make, what they may not change. Codes and texts are upstream's. */
import assert from 'node:assert/strict'
import { isStatus, type StatusError } from '#api/machinery/status'
import { configMaps } from '#client/builtIn'
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

const path = '/api/v1/namespaces/case/configmaps/m'
const types: Readonly<Record<string, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
}

interface Row {
  readonly name: string
  readonly type: string
  readonly body: unknown
  readonly query?: Readonly<Record<string, string>>
  readonly code: number
  readonly want: string | RegExp
}

const operations = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'ConfigMap' }))
const rows: readonly Row[] = [
  {
    name: 'a media type that is no patch',
    type: 'application/json',
    body: {},
    code: 415,
    want: `the body of the request was in an unknown format - accepted media types include: ${Object.values(types).join(', ')}, application/apply-patch+yaml`,
  },
  { name: 'what is no JSON', type: 'merge', body: '{', code: 400, want: 'invalid JSON patch' },
  {
    name: 'a merge patch that is no object',
    type: 'merge',
    body: [],
    code: 400,
    want: 'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
  },
  {
    name: 'a strategic patch that is no object',
    type: 'strategic',
    body: [],
    code: 400,
    want: 'json: cannot unmarshal array into Go value of type map[string]interface {}',
  },
  { name: 'a JSON patch that is no list', type: 'json', body: {}, code: 400, want: 'json: cannot unmarshal object into Go value of type jsonpatch.Patch' },
  { name: 'too many operations', type: 'json', body: operations, code: 413, want: 'The allowed maximum operations in a JSON patch is 10000, got 10001' },
  {
    name: 'a test that fails',
    type: 'json',
    body: [{ op: 'test', path: '/kind', value: 'X' }],
    code: 422,
    want: 'the server rejected our request due to an error in our request',
  },
  {
    name: 'a field of the wrong type',
    type: 'strategic',
    body: { data: 'x' },
    code: 422,
    want: ' "" is invalid: patch: Invalid value: "map[data:x]": cannot restore map from string',
  },
  {
    name: 'metadata that is a list',
    type: 'strategic',
    body: { metadata: [] },
    code: 422,
    want: ' "" is invalid: patch: Invalid value: "map[metadata:[]]": cannot restore struct from: slice',
  },
  {
    name: 'a number for a text',
    type: 'strategic',
    body: { data: { a: 7 } },
    code: 422,
    want: ' "" is invalid: patch: Invalid value: "map[data:map[a:7]]": cannot convert int64 to string',
  },
  {
    name: 'a number for a truth value',
    type: 'strategic',
    body: { immutable: 7 },
    code: 422,
    want: ' "" is invalid: patch: Invalid value: "map[immutable:7]": unrecognized type: bool',
  },
  {
    name: 'a field of the wrong type in a merge patch',
    type: 'merge',
    body: { data: 'x' },
    code: 422,
    want: /^ "" is invalid: patch: Invalid value: "\{.*\}": json: cannot unmarshal string/,
  },
  { name: 'another kind in a merge patch', type: 'merge', body: { kind: 'Secret' }, code: 422, want: /: unknown conversion$/ },
  {
    name: 'an unknown field, strictly',
    type: 'merge',
    body: { dato: { a: 'b' } },
    query: { fieldValidation: 'Strict' },
    code: 422,
    want: /^ "" is invalid: patch: Invalid value: "\{.*\}": strict decoding error: unknown field "dato"$/,
  },
  {
    name: 'force outside of apply, whatever its value',
    type: 'merge',
    body: {},
    query: { force: 'false' },
    code: 422,
    want: 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
  },
  {
    name: 'another name',
    type: 'merge',
    body: { metadata: { name: 'n' } },
    code: 400,
    want: 'the name of the object (n) does not match the name on the URL (m)',
  },
  {
    name: 'another namespace',
    type: 'merge',
    body: { metadata: { namespace: 'n' } },
    code: 400,
    want: 'the namespace of the provided object does not match the namespace sent on the request',
  },
  {
    name: 'another version of the object',
    type: 'merge',
    body: { metadata: { resourceVersion: '1' } },
    code: 409,
    want: 'Operation cannot be fulfilled on configmaps "m": the object has been modified; please apply your changes to the latest version and try again',
  },
  {
    name: 'another uid',
    type: 'merge',
    body: { metadata: { uid: 'u' } },
    code: 409,
    want: /^Operation cannot be fulfilled on configmaps "m": StorageError: invalid object, Code: 4, /,
  },
]

bothTransports({
  async 'API-11 patches that cannot be are refused with upstream codes and texts, and change nothing'(one: Case) {
    const { transport } = one.client
    const before = await one.client.of(configMaps).create({ metadata: { namespace: one.namespace, name: 'm' }, data: { a: '1' } })
    for (const { name, type, body, query, code, want } of rows) {
      const error = await refused(transport.request({ method: 'PATCH', path, body, contentType: types[type] ?? type, query }))
      assert.deepEqual({ name, code: error.code }, { name, code }, error.message)
      if (typeof want === 'string') assert.equal(error.message, want, name)
      else assert.match(error.message, want, name)
    }
    const after = await one.client.of(configMaps).get({ namespace: one.namespace, name: 'm' })
    assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion)
  },

  async 'API-11 a strategic merge patch is applied whatever kind and version it names'({ client, namespace }: Case) {
    await client.of(configMaps).create({ metadata: { namespace, name: 'm' }, data: { a: '1' } })
    const body = { kind: 'Secret', apiVersion: 'example.com/v7', data: { b: '2' } }
    const { body: patched } = await client.transport.request({ method: 'PATCH', path, body, contentType: types.strategic })
    const { kind, apiVersion, data } = patched as { kind: string; apiVersion: string; data: object }
    assert.deepEqual({ kind, apiVersion, data }, { kind: 'ConfigMap', apiVersion: 'v1', data: { a: '1', b: '2' } })
  },
})
