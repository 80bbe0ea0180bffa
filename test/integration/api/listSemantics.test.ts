/** Lists over the API: which options go together, which revision is shown, pages that outlive a compaction. */
import assert from 'node:assert/strict'
import { isStatus, type StatusError } from '#api/machinery/status'
import { configMaps } from '#client/builtIn'
import { bothTransports, type Case } from './bothTransports.ts'

const path = '/api/v1/namespaces/case/configmaps'

interface Listed {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string; readonly remainingItemCount?: number }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

async function list(one: Case, query: Readonly<Record<string, string>>): Promise<Listed & { names: string }> {
  const { body } = await one.client.transport.request({ method: 'GET', path, query })
  const listed = body as Listed
  return { ...listed, names: listed.items.map((item) => item.metadata.name).join('') }
}

async function refusal(call: Promise<unknown>): Promise<StatusError> {
  try {
    await call
  } catch (error) {
    if (isStatus(error)) return error
    throw error
  }
  throw new Error('was not refused')
}

const map = (one: Case, name: string, labels: Record<string, string> = {}) =>
  one.client.of(configMaps).create({ metadata: { namespace: one.namespace, name, labels } })

async function maps(one: Case, names: string): Promise<number> {
  let revision = 0
  for (const name of names) revision = Number((await map(one, name)).metadata.resourceVersion)
  return revision
}

const head = 'ListOptions.meta.k8s.io "" is invalid: '
const refused: readonly { name: string; query: Readonly<Record<string, string>>; want: string; code: number }[] = [
  {
    name: 'a match without a version',
    query: { resourceVersionMatch: 'Exact' },
    want: `${head}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`,
    code: 422,
  },
  {
    name: 'every fault at once',
    query: { resourceVersionMatch: 'Newest', continue: 'x', sendInitialEvents: 'false' },
    want:
      `${head}[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, ` +
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided, ' +
      'resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", "", ' +
      'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]',
    code: 422,
  },
  {
    name: 'exactly version 0',
    query: { resourceVersionMatch: 'Exact', resourceVersion: '0' },
    want: `${head}resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`,
    code: 422,
  },
  {
    name: 'a forged token',
    query: { continue: 'e30' },
    want: 'invalid continue token: continue key is not valid: server does not recognize this encoded version ',
    code: 400,
  },
  {
    name: 'a field the kind does not know',
    query: { fieldSelector: 'spec.x=1' },
    want: '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    code: 400,
  },
]

bothTransports({
  async 'API-07 options that exclude each other are refused in upstream words'(one: Case) {
    for (const { name, query, want, code } of refused) {
      const { message, code: got } = await refusal(list(one, query))
      assert.deepEqual({ name, message, code: got }, { name, message: want, code })
    }
  },

  async 'API-07 which state a list shows: the newest, one not older, exactly one, with and without a limit'(one: Case) {
    const atTwo = await maps(one, 'ab')
    await maps(one, 'c')
    const resourceVersion = String(atTwo)
    const rows: readonly [Readonly<Record<string, string>>, string][] = [
      [{}, 'abc'],
      [{ resourceVersion: '0' }, 'abc'],
      [{ resourceVersion: '0', limit: '1' }, 'abc'],
      [{ resourceVersion }, 'abc'],
      [{ resourceVersion, resourceVersionMatch: 'NotOlderThan' }, 'abc'],
      [{ resourceVersion, resourceVersionMatch: 'NotOlderThan', limit: '2' }, 'ab'],
      [{ resourceVersion, resourceVersionMatch: 'Exact' }, 'ab'],
      [{ resourceVersion, resourceVersionMatch: 'Exact', limit: '1' }, 'a'],
      [{ resourceVersion, limit: '5' }, 'ab'],
      [{ limit: '5' }, 'abc'],
    ]
    for (const [query, want] of rows) {
      const { names, metadata } = await list(one, query)
      const isExact = want === 'ab' && query.limit !== '2' ? metadata.resourceVersion === resourceVersion : true
      assert.deepEqual({ query, names, isExact }, { query, names: want, isExact: true })
    }
  },

  async 'API-07 the rest is counted without selectors, and unknown with one'(one: Case) {
    for (const name of 'abcde') await map(one, name, { all: 'yes' })
    const plain = await list(one, { limit: '2' })
    const selected = await list(one, { limit: '2', labelSelector: 'all=yes' })
    assert.deepEqual([plain.names, plain.metadata.remainingItemCount, selected.names, selected.metadata.remainingItemCount], ['ab', 3, 'ab', undefined])
    const last = await list(one, { limit: '3', continue: plain.metadata.continue ?? '' })
    assert.deepEqual([last.names, last.metadata.continue, last.metadata.resourceVersion], ['cde', undefined, plain.metadata.resourceVersion])
  },

  async 'API-07 pages show one state, and after its compaction go on with the token of the refusal'(one: Case) {
    await maps(one, 'abcd')
    const first = await list(one, { limit: '2' })
    const token = first.metadata.continue ?? ''
    await one.client.of(configMaps).delete({ namespace: one.namespace, name: 'c' })
    const newest = await maps(one, 'e')
    assert.equal((await list(one, { continue: token })).names, 'cd')

    await one.api.store.compact(newest)
    const error = await refusal(list(one, { continue: token, limit: '1' }))
    assert.deepEqual([error.code, error.reason], [410, 'Expired'])
    assert.match(error.message, /^The provided continue parameter is too old .* or use the continue token in this response to retrieve the remainder/)
    const rest = await list(one, { continue: error.continue ?? '', limit: '1' })
    assert.deepEqual([rest.names, Number(rest.metadata.resourceVersion) >= newest], ['d', true])
    assert.equal((await list(one, { continue: rest.metadata.continue ?? '' })).names, 'e')
    const tooOld = await refusal(list(one, { resourceVersion: first.metadata.resourceVersion, resourceVersionMatch: 'Exact' }))
    assert.deepEqual([tooOld.code, tooOld.message], [410, 'The resourceVersion for the provided list is too old.'])
  },

  async 'API-10 each kind takes the fields it lists, and names the one it does not know'(one: Case) {
    const ask = (collection: string, field: string) =>
      one.client.transport.request({ method: 'GET', path: `/api/v1/${collection}`, query: { fieldSelector: `${field}=x` } })
    const known = {
      pods: ['metadata.namespace', 'spec.nodeName', 'status.podIPs'],
      nodes: ['metadata.name', 'spec.unschedulable'],
      namespaces: ['status.phase'],
    }
    for (const [collection, fields] of Object.entries(known)) for (const field of fields) assert.equal((await ask(collection, field)).status, 200)
    const unknown = { pods: 'spec.x', nodes: 'metadata.namespace', namespaces: 'name' }
    for (const [collection, field] of Object.entries(unknown)) {
      const { code, message } = await refusal(ask(collection, field))
      assert.deepEqual([code, message], [400, `field label not supported: ${field}`])
    }
  },
})
