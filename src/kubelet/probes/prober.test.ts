import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import type { Probe } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { GrpcError } from '#grpc/grpcError'
import type { KubeletContext } from '../core/context.ts'
import { requestHeaders } from '../core/httpRequest.ts'
import { runProbe } from './prober.ts'

type Answer = { exitCode: number; stdout: string } | Error

const dial = (host: string, port: number) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    socket.once('error', reject)
    socket.once('connect', () => resolve(socket))
  })

function contextWith(answer: Answer, commands: string[][] = []): KubeletContext {
  const execSync = async (_id: string, command: string[]) => {
    commands.push(command)
    if (answer instanceof Error) throw answer
    return { exitCode: answer.exitCode, stdout: Buffer.from(answer.stdout), stderr: Buffer.alloc(0) }
  }
  return { runtime: { execSync }, host: { dial }, clock: new VirtualClock() } as unknown as KubeletContext
}

const container = {
  name: 'c',
  ports: [{ name: 'web', containerPort: 1 }],
  env: [
    { name: 'WHO', value: 'me' },
    { name: 'REF', valueFrom: {} },
  ],
}
const target = { kind: 'readiness', container, containerId: 'id', podIP: '127.0.0.1' } as const
const exec: Probe = { exec: { command: ['check', '$(WHO)', '$(REF)', '$(OTHER)'] } }

const execCases: { name: string; answer: Answer; want: { outcome: string; output: string } }[] = [
  { name: 'passes', answer: { exitCode: 0, stdout: 'fine' }, want: { outcome: 'Success', output: 'fine' } },
  { name: 'fails with its output', answer: { exitCode: 1, stdout: 'bad' }, want: { outcome: 'Failure', output: 'bad' } },
  {
    name: 'fails when it takes too long',
    answer: new GrpcError('DEADLINE_EXCEEDED', 'late'),
    want: { outcome: 'Failure', output: 'command "check me  $(OTHER)" timed out' },
  },
  { name: 'says nothing when the runtime cannot', answer: new GrpcError('UNAVAILABLE', 'no runtime'), want: { outcome: 'Unknown', output: 'no runtime' } },
]
for (const c of execCases) test(`KUB-06 an exec probe ${c.name}`, async () => assert.deepEqual(await runProbe(contextWith(c.answer), exec, target), c.want))

test('KUB-06 an exec probe knows the plain values of the environment, and is tried three times when it cannot be run', async () => {
  const commands: string[][] = []
  await runProbe(contextWith(new GrpcError('INTERNAL', 'no'), commands), exec, target)
  assert.deepEqual(commands, Array(3).fill(['check', 'me', '', '$(OTHER)']))
})

const seen: { path: string | undefined; agent: string | undefined }[] = []
function serve(request: IncomingMessage, response: ServerResponse): void {
  seen.push({ path: request.url, agent: request.headers['user-agent'] })
  const to = new Map([
    ['/here', '/ok'],
    ['/away', 'http://192.0.2.9/'],
    ['/round', '/round'],
  ]).get(request.url ?? '')
  response.writeHead(to ? 302 : request.url === '/ok' ? 200 : 500, to ? { location: to } : {}).end(to ? 'moved' : 'body')
}

const httpCases: [path: string, outcome: string, output: RegExp][] = [
  ['/ok', 'Success', /^body$/],
  ['ok', 'Success', /^body$/],
  ['/broken', 'Failure', /^HTTP probe failed with statuscode: 500$/],
  ['/here', 'Success', /^body$/],
  ['/away', 'Warning', /^Probe terminated redirects, Response body: moved$/],
  ['/round', 'Failure', /^Get "http:\/\/127\.0\.0\.1:\d+\/round": stopped after 10 redirects$/],
]
test('KUB-06 an HTTP probe follows redirects of the same host, warns of others, and names itself', async () => {
  const server = createServer(serve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    for (const [path, outcome, output] of httpCases) {
      const result = await runProbe(contextWith(new Error()), { httpGet: { path, port }, timeoutSeconds: 30 }, target)
      assert.equal(result.outcome, outcome, path)
      assert.match(result.output, output)
    }
    assert.deepEqual(seen[0], { path: '/ok', agent: 'kube-probe/1.36' })
  } finally {
    server.close()
  }
})

test('KUB-06 refused connections and unused ports are reported with upstream’s messages', async () => {
  const server = createTcpServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const run = (probe: Probe) => runProbe(contextWith(new Error()), { ...probe, timeoutSeconds: 30 }, target)
  assert.equal((await run({ tcpSocket: { port } })).outcome, 'Success')
  await new Promise((resolve) => server.close(resolve))
  const refused = `dial tcp 127.0.0.1:${port}: connect: connection refused`
  assert.deepEqual(await run({ tcpSocket: { port } }), { outcome: 'Failure', output: refused })
  assert.deepEqual(await run({ httpGet: { port, path: '/x' } }), { outcome: 'Failure', output: `Get "http://127.0.0.1:${port}/x": ${refused}` })
  assert.equal((await run({ httpGet: { port: 'nobody' } })).outcome, 'Unknown')
})

test('KUB-06 headers of a probe replace the standard ones, may repeat, and remove them when empty', () => {
  const header = (name: string, value: string) => ({ name, value })
  const headers = [header('x-many', '1'), header('X-Many', '2'), header('user-agent', 'mine'), header('Accept', '')]
  assert.deepEqual(requestHeaders({ headers, userAgent: 'kube-probe/1.36' }), { 'X-Many': ['1', '2'], 'User-Agent': ['mine'], Connection: ['close'] })
  assert.deepEqual(requestHeaders({ headers: [], userAgent: 'a' }), { 'User-Agent': ['a'], Accept: ['*/*'], Connection: ['close'] })
})
