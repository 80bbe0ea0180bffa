/** Audit policies over the wire, row by row: which requests are logged, at which level, at which stages, and in which order with answers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import WebSocket from 'ws'
import { AuditTexts } from '#apiserver/audit/texts'
import { namespaces, nodes, pods, serviceAccounts } from '#client/builtIn'
import { createPrometheusMetrics } from '#main/prometheus'
import { acceptRemoteCommand } from '#streaming/remoteCommand'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { connectHttp2 } from '../../../bench/tools/http2Connection.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { type RawRequest, rawHttp } from './rawHttp.ts'

type Event = Readonly<Record<string, unknown>> & { readonly stage: string; readonly auditID: string; readonly annotations?: Readonly<Record<string, string>> }

async function start(t: TestContext, policy: string, flags: readonly string[] = [], more: TestApiServerOptions = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-audit-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = (name: string, content: string) => {
    fs.writeFileSync(path.join(folder, name), content)
    return path.join(folder, name)
  }
  const tokens = file('tokens.csv', 'alice-token,alice,uid-1,"system:masters"\nann-token,ann,uid-2,"auditors,system:masters"\n')
  const log = path.join(folder, 'audit.log')
  const server = [`--token-auth-file=${tokens}`, `--audit-policy-file=${file('policy.yaml', policy)}`, `--audit-log-path=${log}`, ...flags]
  const api = await startServerWithFlags(server, more)
  t.after(() => api.close())
  const events = (id: string): Event[] =>
    fs
      .readFileSync(log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event)
      .filter(({ auditID }) => auditID === id)
  return { api, listener: await api.listen(), events }
}

const json = (body: unknown) => ({ body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
const core = '/api/v1/namespaces/default'

const rules = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, verbs: [list], namespaces: [default], resources: [{group: "", resources: [configmaps]}]}
- {level: Metadata, userGroups: [auditors]}
- {level: Metadata, omitStages: [ResponseComplete], resources: [{group: "", resources: [secrets]}]}
- {level: Request, resources: [{group: "", resources: [configmaps], resourceNames: ["", asked]}]}
- {level: RequestResponse, omitManagedFields: false, resources: [{group: "", resources: [configmaps]}]}
- {level: Metadata, nonResourceURLs: ["/version*"]}
`
const configMap = (name: string) => json({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
const complete = ['ResponseComplete']
const rows: readonly { name: string; request: RawRequest; level?: string; stages: readonly string[]; bodies?: readonly string[] }[] = [
  { name: 'a verb, namespace and resource of level None', request: { path: `${core}/configmaps` }, stages: [] },
  { name: 'the same in another namespace', request: { path: '/api/v1/namespaces/kube-system/configmaps' }, level: 'Request', stages: complete },
  { name: 'a group of users', request: { path: `${core}/services`, token: 'ann-token' }, level: 'Metadata', stages: complete },
  { name: 'a user that no rule names', request: { path: `${core}/services` }, stages: [] },
  { name: 'a stage that the rule omits in addition to the policy', request: { path: `${core}/secrets` }, stages: [] },
  {
    name: 'level Request',
    request: { method: 'POST', path: `${core}/configmaps`, ...configMap('asked') },
    ...{ level: 'Request', stages: complete, bodies: ['requestObject'] },
  },
  {
    name: 'level RequestResponse, by name',
    request: { path: `${core}/configmaps/other` },
    ...{ level: 'RequestResponse', stages: complete, bodies: ['responseObject'] },
  },
  { name: 'a path by its beginning', request: { path: '/version/' }, level: 'Metadata', stages: complete },
  { name: 'a path that no rule names', request: { path: '/healthz' }, stages: [] },
]

test('API-21 the first rule that matches decides: users, verbs, namespaces, resources, names, paths, stages', async (t) => {
  const { listener, events } = await start(t, rules)
  for (const [index, { name, request, level, stages, bodies = [] }] of rows.entries()) {
    await t.test(`API-21 ${name}`, async () => {
      const id = `row-${index}`
      await rawHttp(listener, { token: 'alice-token', ...request, headers: { ...request.headers, 'audit-id': id } })
      const own = events(id)
      const shown = (event: Event) => ['requestObject', 'responseObject'].filter((body) => event[body] !== undefined)
      assert.deepEqual(
        own.map((event) => [event.level, event.stage, shown(event)]),
        stages.map((stage) => [level, stage, bodies]),
      )
    })
  }
})

const everything = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n'

test('API-21 an event that is too large loses its bodies if flags enable that, and is annotated as truncated', async (t) => {
  const { listener, events } = await start(t, everything, ['--audit-log-truncate-enabled', '--audit-log-truncate-max-event-size=4096'])
  const large = json({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data: { text: 'x'.repeat(5_000) } })
  await rawHttp(listener, { method: 'POST', path: `${core}/configmaps`, token: 'alice-token', ...large, headers: { ...large.headers, 'audit-id': 'large' } })
  const [received, completed] = events('large')
  assert.deepEqual([received?.stage, received?.annotations], ['RequestReceived', undefined])
  assert.deepEqual([completed?.requestObject, completed?.responseObject], [undefined, undefined])
  assert.equal(completed?.annotations?.['audit.k8s.io/truncated'], 'true')
  assert.equal(completed?.annotations?.['authorization.k8s.io/decision'], 'allow')
})

test('API-21 what pod security thinks of a pod is annotated', async (t) => {
  const { api, listener, events } = await start(t, everything)
  await api.client.of(namespaces).create({ metadata: { name: 'watched', labels: { 'pod-security.kubernetes.io/audit': 'restricted' } }, spec: {} })
  await api.client.of(serviceAccounts).create({ metadata: { namespace: 'watched', name: 'default' } })
  const pod = json({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'x' }] } })
  const { status } = await rawHttp(listener, {
    ...{ method: 'POST', path: '/api/v1/namespaces/watched/pods', token: 'alice-token', ...pod },
    headers: { ...pod.headers, 'audit-id': 'pod' },
  })
  assert.equal(status, 201)
  const { annotations = {} } = events('pod').at(-1) ?? assert.fail('no event')
  assert.equal(annotations['pod-security.kubernetes.io/enforce-policy'], 'privileged:latest')
  assert.match(
    annotations['pod-security.kubernetes.io/audit-violations'] ?? '',
    /^would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false/,
  )
})

test('API-21 the last event of a request for a deprecated resource says so, that of others does not', async (t) => {
  const metrics = createPrometheusMetrics()
  const { listener, events } = await start(t, everything, [], { metrics })
  for (const resource of ['endpoints', 'pods'])
    await rawHttp(listener, { method: 'GET', path: `${core}/${resource}`, token: 'alice-token', headers: { 'audit-id': resource } })
  const said = (id: string) => events(id).map(({ stage, annotations }) => [stage, annotations?.['k8s.io/deprecated']])
  assert.deepEqual(said('endpoints'), [
    ['RequestReceived', undefined],
    ['ResponseComplete', 'true'],
  ])
  assert.deepEqual(said('pods'), [
    ['RequestReceived', undefined],
    ['ResponseComplete', undefined],
  ])
  const series = metrics.render().match(/^apiserver_requested_deprecated_apis\{.*/gm)
  assert.deepEqual(series, ['apiserver_requested_deprecated_apis{group="",version="v1",resource="endpoints",subresource="",removed_release=""} 1'])
})

/** A node whose kubelet takes part in each command until its input ends. */
async function startNode(t: TestContext, api: TestApiServer): Promise<void> {
  const kubelet = createServer(await testCertificates())
  kubelet.on('upgrade', (request, socket, head) => {
    const session = acceptRemoteCommand({ request, socket, head }, { stdin: true, stdout: true, stderr: false, tty: false })
    session
      .then(async ({ stdin, stdout, finish }) => {
        for await (const chunk of stdin ?? []) stdout?.write(chunk)
        await finish({ exitCode: 0 })
      })
      .catch(() => socket.destroy())
  })
  kubelet.listen(0, '127.0.0.1')
  await once(kubelet, 'listening')
  t.after(() => kubelet.close())
  const Port = (kubelet.address() as AddressInfo).port
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
  await api.client.of(nodes).create({ metadata: { name: 'n1' }, spec: {}, status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port } } } })
  await api.client.of(serviceAccounts).create({ metadata: { namespace: 'default', name: 'default' } })
  const pod = { namespace: 'default', name: 'p' }
  await api.client.of(pods).create({ metadata: pod, spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }] } })
  await api.client.of(pods).createSubresource(pod, 'binding', { target: { kind: 'Node', name: 'n1' } })
}

for (const what of ['exec', 'attach']) {
  test(`API-21 ${what} has an event when it begins, before the client knows, and one when it ends`, { timeout: 60_000 }, async (t) => {
    const { api, listener, events } = await start(t, everything, [], { kubelet: await testCertificates() })
    await startNode(t, api)
    const url = `wss://127.0.0.1:${listener.port}${core}/pods/p/${what}?stdin=true&stdout=true${what === 'exec' ? '&command=cat' : ''}`
    const headers = { authorization: 'Bearer alice-token', 'audit-id': what }
    const client = new WebSocket(url, 'v5.channel.k8s.io', { ca: listener.ca, headers })
    const received: string[] = []
    client.on('message', (data: Buffer) => received.push(`${data[0]}${data.toString('utf8', 1)}`))
    await once(client, 'open')
    const stages = () => events(what).map(({ stage, verb, responseStatus }) => [stage, verb, (responseStatus as { code?: number } | undefined)?.code])
    const begun = [
      ['RequestReceived', 'get', undefined],
      ['ResponseStarted', 'get', 101],
    ]
    assert.deepEqual(stages(), begun)
    client.send(Buffer.from([0, ...Buffer.from('hello')]))
    client.send(Buffer.from([255, 0]))
    await once(client, 'close')
    assert.deepEqual(received, ['1hello', '3{"metadata":{},"status":"Success"}'])
    while (stages().length < 3) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(stages(), [...begun, ['ResponseComplete', 'get', 101]])
  })
}

/** Events are written only before an answer, as if the turn of the event loop never ended. */
function keepingSink() {
  const kept: string[] = []
  const written: string[] = []
  const audit = {
    rule: () => ({ level: 'Metadata' as const, omitStages: new Set<never>(), omitManagedFields: false }),
    texts: new AuditTexts(),
    process: (event: { json(): string }) => kept.push(event.json()) > 0,
    flush: () => void written.push(...kept.splice(0)),
  }
  const stages = (uri: string) => written.map((line) => JSON.parse(line)).flatMap(({ requestURI, stage }) => (requestURI === uri ? [stage] : []))
  return { audit, stages }
}

test('API-21 no answer goes out before its events are written, of either protocol and of upgrades', async (t) => {
  const { audit, stages } = keepingSink()
  const api = await startTestApiServer({ deps: () => ({ audit }) })
  t.after(() => api.close())
  const listener = await api.listen()
  const both = ['RequestReceived', 'ResponseComplete']
  await rawHttp(listener, { path: '/version' })
  assert.deepEqual(stages('/version'), both)
  const connection = await connectHttp2({ host: '127.0.0.1', port: listener.port, ca: listener.ca })
  t.after(() => connection.close())
  const headers = { authorization: `Bearer ${listener.token}` }
  assert.equal((await connection.request({ method: 'GET', path: '/api', headers })).status, 200)
  assert.deepEqual(stages('/api'), both)
  const missing = `${core}/pods/missing/exec?command=ls`
  const refused = new WebSocket(`wss://127.0.0.1:${listener.port}${missing}`, 'v5.channel.k8s.io', { ca: listener.ca, headers })
  await once(refused, 'unexpected-response')
  refused.on('error', () => {}).terminate()
  assert.deepEqual(stages(missing), ['RequestReceived', 'ResponseStarted', 'ResponseComplete'])
})
