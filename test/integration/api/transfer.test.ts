/** SDR-04: the objects of one API server are exported, and imported into another one. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Unstructured } from '#api/machinery/meta'
import type { CommandError } from '#cli/exitCodes'
import { lineOf } from '#cli/past/copier'
import type { Draft } from '#cli/past/forkPlan'
import { exportObjects } from '#cli/transfer/exportObjects'
import { importObjects, tryImport } from '#cli/transfer/importObjects'
import { configMaps, namespaces, secrets } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import type { Transport } from '#client/transport'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { runCommand } from '#testing/commandRun'
import { realClock } from '#testing/realClock'
import { definition, establish, group, version } from '../crd/support.ts'

const servers: TestApiServer[] = []
const listeners: TestListener[] = []
const transports: HttpTransport[] = []

/** Requests for this resource are refused. */
let forbidden = 'none'

async function start(): Promise<Transport> {
  const authorize = ({ resource }: { readonly resource?: string | undefined }) => ({ decision: resource === forbidden ? 'deny' : 'allow', reason: '' }) as const
  const api = await startTestApiServer({ deps: () => ({ authorizers: [{ name: 'test', authorize }] }) })
  servers.push(api)
  const listener = await api.listen()
  listeners.push(listener)
  const { url, ca, token } = listener
  const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock, exactIntegers: true })
  transports.push(transport)
  return transport
}

const ledgers = { group, version: 'v1', resource: 'ledgers', kind: 'Ledger', namespaced: true } as const
const long = 9007199254740993n
let old: Transport

before(async () => {
  old = await start()
  const client = createClient(old)
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
  await establish(client, definition('ledgers', 'Ledger', [version('v1', schema)]))
  for (const name of ['shop', 'other']) await client.of(namespaces).create({ metadata: { name }, spec: {} })
  const ledger = { apiVersion: `${group}/v1`, kind: 'Ledger', metadata: { namespace: 'shop', name: 'a' }, count: long }
  const owner = await client.of<Unstructured>(ledgers).create(ledger as unknown as Unstructured)
  const ownerReferences = [{ apiVersion: `${group}/v1`, kind: 'Ledger', name: 'a', uid: owner.metadata.uid ?? '', controller: true }]
  await client.of(configMaps).create({ metadata: { namespace: 'shop', name: 'owned', ownerReferences }, data: { a: '1' } })
  await client.of(secrets).create({ metadata: { namespace: 'other', name: 'door' }, stringData: { code: '1234' } })
})

after(async () => {
  await Promise.all(transports.map((transport) => transport.close()))
  await Promise.all(servers.map((server) => server.close()))
})

async function exported(options: Partial<Parameters<typeof exportObjects>[1]> = {}): Promise<Draft[]> {
  const objects: Draft[] = []
  await exportObjects(old, { namespaces: [], included: [], ...options }, async (object) => void objects.push(object))
  return objects
}

async function* lines(objects: readonly Draft[]) {
  for (const [at, object] of objects.entries()) yield { line: at + 1, object }
}

const namesOf = (objects: readonly Draft[]) => objects.map(({ kind, metadata: { namespace, name } }) => [kind, namespace, name].filter(Boolean).join(' '))
const users = /Ledger|shop|other|CustomResourceDefinition/

test('SDR-04 an export has what users made, in the order in which it can be created', async () => {
  const names = namesOf(await exported())
  assert.deepEqual(names.filter((name) => users.test(name)).toSorted(), [
    'ConfigMap shop owned',
    `CustomResourceDefinition ledgers.${group}`,
    'Ledger shop a',
    'Namespace other',
    'Namespace shop',
    'Secret other door',
  ])
  assert.ok(names.indexOf('Namespace shop') < names.indexOf('ConfigMap shop owned'))
  assert.ok(names.indexOf(`CustomResourceDefinition ledgers.${group}`) < names.indexOf('Ledger shop a'))
  assert.deepEqual(
    names.filter((name) => !users.test(name)),
    [],
    'a fresh server has nothing that users made',
  )
})

test('SDR-04 an export of a namespace has the namespace and its objects', async () => {
  assert.deepEqual(namesOf(await exported({ namespaces: ['shop'] })), ['Namespace shop', 'ConfigMap shop owned', 'Ledger shop a'])
})

test('SDR-04 kinds that are asked for are exported whole; an unknown one is refused', async () => {
  assert.ok(namesOf(await exported({ included: ['ns'] })).includes('Namespace kube-system'))
  await assert.rejects(exported({ included: ['unicorns'] }), /the cluster has no kind "unicorns"/)
})

test('SDR-04 an import creates what was exported, with its owners, and names what was there when it is repeated', async () => {
  const to = await start()
  const objects = await exported()
  assert.deepEqual(await tryImport(to, lines(objects)), { created: objects.length, thereCount: 0, there: [], failed: [] })
  const client = createClient(to)
  assert.deepEqual((await client.of(configMaps).list({ namespace: 'shop' })).items, [], 'a dry run creates nothing')
  assert.deepEqual(await importObjects(to, realClock, lines(objects)), { created: objects.length, thereCount: 0, there: [], failed: [] })
  const ledger = await client.of<Unstructured>(ledgers).get({ namespace: 'shop', name: 'a' })
  assert.equal(ledger.count, long)
  const owned = await client.of(configMaps).get({ namespace: 'shop', name: 'owned' })
  assert.deepEqual(
    [owned.data, owned.metadata.ownerReferences],
    [{ a: '1' }, [{ apiVersion: `${group}/v1`, kind: 'Ledger', name: 'a', uid: ledger.metadata.uid, controller: true }]],
  )
  const again = await importObjects(to, realClock, lines(objects))
  assert.equal(again.created, 0)
  assert.equal(again.there.length, objects.length)
  assert.ok(again.there.includes('configmaps shop/owned'))
  assert.deepEqual((await tryImport(to, lines(objects))).there, again.there)
})

test('SDR-04 an import reports what the cluster refuses without waiting for it, and creates the rest', async () => {
  const to = await start()
  const configMap = (name: string): Draft => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name } })
  const objects = [{ apiVersion: 'none.io/v1', kind: 'None', metadata: { name: 'x' } }, configMap('No'), configMap('yes')]
  const unknown = 'line 1: the cluster serves no None of none.io/v1'
  const patient = { ...realClock, sleep: () => assert.fail('the import waits') }
  for (const report of [await tryImport(to, lines(objects)), await importObjects(to, patient, lines(objects))]) {
    assert.equal(report.created, 1)
    assert.deepEqual(
      report.failed.map((line) => line.split(': ').slice(0, 2).join(': ')),
      [unknown, 'configmaps default/No: ConfigMap "No" is invalid'],
    )
  }
  assert.equal(lineOf({ group: '', resource: 'configmaps' } as never, configMap('yes')), 'configmaps default/yes')
})

test('SDR-04 an import names a hundred of the objects that were there, and counts them all', async () => {
  const to = await start()
  const objects = Array.from({ length: 103 }, (_, at): Draft => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: `c-${at}` } }))
  await importObjects(to, realClock, lines(objects))
  for (const { thereCount, there } of [await tryImport(to, lines(objects)), await importObjects(to, realClock, lines(objects))])
    assert.deepEqual([thereCount, there.length, there[99], there[100]], [103, 101, 'configmaps default/c-99', '3 more'])
})

/** Runs a command as a user of the first server. */
async function runOn(kubeconfig: string, words: readonly string[]) {
  const { url, ca, token } = listeners[0] as TestListener
  const config = {
    clusters: [{ name: 'c', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  await fs.writeFile(kubeconfig, JSON.stringify(config))
  const { error } = await runCommand([...words, '-q', '--kubeconfig', kubeconfig])
  return error as CommandError | undefined
}

const exportTo = (file: string, words: readonly string[] = []) => runOn(path.join(path.dirname(file), 'kubeconfig'), ['export', file, ...words])

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-export-'))
  await work(folder).finally(() => fs.rm(folder, { recursive: true }))
}

test('SDR-04 an export without the right to read a kind writes the other kinds, fails and names the kind', () =>
  inFolder(async (folder) => {
    const file = path.join(folder, 'lab.jsonl')
    forbidden = 'secrets'
    const error = await exportTo(file).finally(() => {
      forbidden = 'none'
    })
    assert.equal(error?.exit, 'internal')
    assert.match(error.message, /incomplete/)
    assert.match(error.details.join('\n'), /^secrets: secrets is forbidden: .*$/)
    const text = await fs.readFile(file, 'utf8')
    assert.deepEqual([text.includes('"Ledger"'), text.includes('"Secret"')], [true, false])
  }))

test('SDR-04 an export of a namespace that does not exist is refused, and writes no file', () =>
  inFolder(async (folder) => {
    const error = await exportTo(path.join(folder, 'lab.jsonl'), ['-n', 'shop', 'shopp'])
    assert.deepEqual([error?.exit, error?.message], ['notFound', 'the cluster has no namespace "shopp"'])
    assert.deepEqual(await fs.readdir(folder), ['kubeconfig'])
  }))

test('SDR-04 an export names a group version whose server does not answer', async () => {
  const stale: Transport = {
    watch: (...args) => old.watch(...args),
    async request(request, signal) {
      const answer = await old.request(request, signal)
      if (request.path !== '/apis') return answer
      const body = answer.body as { readonly items: readonly object[] }
      const item = { metadata: { name: 'silent.io' }, versions: [{ version: 'v1', freshness: 'Stale' }] }
      return { ...answer, body: { ...body, items: [...body.items, item] } }
    },
  }
  const { failed } = await exportObjects(stale, { namespaces: [], included: [] }, async () => {})
  assert.deepEqual(failed, ['silent.io/v1: stale GroupVersion discovery: silent.io/v1'])
})

test('SDR-04 an export escapes characters that would split a line or turn its direction, and the JSON stays the same', () =>
  inFolder(async (folder) => {
    const client = createClient(old).of(configMaps)
    const text = 'a\u2028b\u202ec\ufeffd\u009be'
    await client.create({ metadata: { namespace: 'other', name: 'marks' }, data: { text } })
    const file = path.join(folder, 'lab.jsonl')
    assert.equal(await exportTo(file, ['-n', 'other']).finally(() => client.delete({ namespace: 'other', name: 'marks' })), undefined)
    const line = (await fs.readFile(file, 'utf8')).split('\n').find((one) => one.includes('"marks"')) ?? ''
    assert.ok(line.includes('a\\u2028b\\u202ec\\ufeffd\\u009be'), line)
    assert.equal((JSON.parse(line) as { readonly data: { readonly text: string } }).data.text, text)
  }))

test('SDR-04 an export removes the parts of exports that were killed, and refuses a directory as its file', () =>
  inFolder(async (folder) => {
    const file = path.join(folder, 'lab.jsonl')
    // No process has this id: it is above the limit of Linux.
    await fs.writeFile(`${file}.4194305.part`, 'secret')
    assert.equal(await exportTo(file, ['-n', 'other']), undefined)
    assert.deepEqual((await fs.readdir(folder)).toSorted(), ['kubeconfig', 'lab.jsonl'])
    forbidden = 'namespaces'
    const error = await exportTo(`${folder}/.`).finally(() => {
      forbidden = 'none'
    })
    assert.match(error?.message ?? '', /is a directory, a file is needed/, 'before anything is read')
  }))

test('SDR-04 an import reads lines of any end, and refuses a line that no object can have', () =>
  inFolder(async (folder) => {
    const file = path.join(folder, 'lab.jsonl')
    const object = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data: { a: 'a\u2028b' } })
    const importFile = () => runOn(path.join(folder, 'kubeconfig'), ['import', file])
    await fs.writeFile(file, `${object('first')}\r\n\n${object('second')}`)
    assert.equal(await importFile(), undefined)
    await fs.writeFile(file, Buffer.alloc(6 * 3 * 2 ** 20 + 1, ' '))
    const error = await importFile()
    assert.deepEqual([error?.exit, error?.message], ['usage', `${file}: line 1 is longer than any object`])
  }))
