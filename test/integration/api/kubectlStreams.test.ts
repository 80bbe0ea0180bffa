/** The real kubectl's exec and port-forward through the server to a kubelet's streams, over WebSocket and over SPDY. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import test, { after, before } from 'node:test'
import { nodes, pods } from '#client/builtIn'
import { acceptPortForward, acceptRemoteCommand } from '#streaming/remoteCommand'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { type TestKubectl, testKubectl, withoutKubectl } from '../../support/kubectl.ts'

const skip = withoutKubectl
let api: TestApiServer
let kubectl: TestKubectl
let kubelet: ReturnType<typeof createServer>
/** The protocols that port-forwards reached the kubelet in. */
const forwardedIn: (string | undefined)[] = []

before(async () => {
  kubelet = createServer(await testCertificates())
  kubelet.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '/', 'https://kubelet')
    const upgrade = { request, socket, head }
    if (url.pathname.startsWith('/portForward/')) forwardedIn.push(request.headers.upgrade)
    const work = url.pathname.startsWith('/exec/') ? exec(upgrade, url) : acceptPortForward(upgrade, ports(url), ({ data }) => data.pipe(data))
    work.catch(() => socket.destroy())
  })
  await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve))
  api = await startTestApiServer()
  kubectl = testKubectl(await api.listen())
  const Port = (kubelet.address() as AddressInfo).port
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
  for (const [node, pod, declaredFeatures] of [
    ['n1', 'p', []],
    ['n2', 'tunnelled', ['ExtendWebSocketsToKubelet']],
  ] as const) {
    const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port } }, declaredFeatures: [...declaredFeatures] }
    await api.client.of(nodes).create({ metadata: { name: node }, spec: {}, status })
    await api.client.of(pods).create({ metadata: { namespace: 'default', name: pod }, spec: { containers: [{ name: 'c', image: 'x' }] } })
    await api.client.of(pods).createSubresource({ namespace: 'default', name: pod }, 'binding', { target: { kind: 'Node', name: node } })
    await api.client.of(pods).patch({ namespace: 'default', name: pod }, 'merge', { status: { phase: 'Running' } }, { subresource: 'status' })
  }
})
after(async () => {
  await api.close()
  kubelet.close()
  kubectl.remove()
})

type Upgrade = Parameters<typeof acceptRemoteCommand>[0]

/**
 * Prints its command, echoes its input, and ends with code 7. It prints nothing before the first input: until v1.33, kubectl may drop messages that
 * arrive over a WebSocket before it has made its streams ("Unknown stream id 1, discarding message").
 */
async function exec(upgrade: Upgrade, url: URL): Promise<void> {
  const has = (name: string) => url.searchParams.get(name) === '1'
  const session = await acceptRemoteCommand(upgrade, { stdin: has('input'), stdout: has('output'), stderr: has('error'), tty: has('tty') })
  const heard: Buffer[] = []
  for await (const chunk of session.stdin ?? []) heard.push(chunk)
  session.stdout?.write(`${url.searchParams.getAll('command').join(' ')}\n`)
  session.stderr?.write('a complaint\n')
  for (const chunk of heard) session.stdout?.write(chunk)
  await session.finish({ exitCode: 7 })
}

function ports(url: URL): number[] {
  return (url.searchParams.get('port') ?? '').split(',').filter(Boolean).map(Number)
}

const transports = [
  { name: 'WebSocket', env: {} },
  { name: 'SPDY', env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' } },
]

for (const { name, env } of transports) {
  test(`API-24 kubectl exec over ${name}: input, output, errors and the exit code`, { skip }, async () => {
    const result = await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const child = execFile(
        'kubectl',
        ['exec', '-i', 'p', '--', 'say', 'hi'],
        { env: { ...kubectl.env, ...env }, timeout: 20_000 },
        (error, stdout, stderr) => {
          resolve({ code: error?.code, stdout, stderr })
        },
      )
      child.stdin?.end('some input\n')
    })
    assert.deepEqual([result.code, result.stdout], [7, 'say hi\nsome input\n'])
    assert.match(result.stderr, /^a complaint\ncommand terminated with exit code 7\n$/)
  })
}

const forwards = [
  { name: 'SPDY to a kubelet that knows SPDY', pod: 'p', env: { KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' }, upgrade: 'SPDY/3.1' },
  { name: 'a tunnel to a kubelet that knows SPDY alone', pod: 'p', env: {}, upgrade: 'SPDY/3.1' },
  { name: 'a tunnel to a kubelet that takes tunnels', pod: 'tunnelled', env: {}, upgrade: 'websocket' },
]
for (const { name, pod, env, upgrade } of forwards) {
  test(`API-24 kubectl port-forward over ${name}: two connections, each its own, at the first attempt`, { skip }, async () => {
    const child = spawn('kubectl', ['port-forward', pod, ':80', '-v=4'], { env: { ...kubectl.env, ...env } })
    let log = ''
    child.stderr.on('data', (chunk) => {
      log += chunk
    })
    forwardedIn.length = 0
    try {
      const port = await new Promise<number>((resolve, reject) => {
        child.stdout.on('data', (chunk: Buffer) => {
          const match = /127\.0\.0\.1:(\d+) -> 80/.exec(chunk.toString())
          if (match) resolve(Number(match[1]))
        })
        child.on('exit', () => reject(new Error('kubectl ended')))
      })
      assert.deepEqual(await Promise.all([echo(port, 'one'), echo(port, 'two')]), ['one', 'two'])
      assert.deepEqual(forwardedIn, [upgrade])
      assert.doesNotMatch(log, /fallback to secondary dialer/)
    } finally {
      child.kill()
    }
  })
}

function echo(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk) => {
      socket.destroy()
      resolve(chunk.toString())
    })
    socket.on('error', reject)
  })
}
