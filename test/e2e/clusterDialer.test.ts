/**
 * The dialer of a local cluster in a real network namespace: connections are made there and handed over, errors are those of the kernel, a killed process is
 * replaced, and none is left when it stops. Needs root; removes what it made.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import type { Socket } from 'node:net'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { ProcessStatus } from '../../src/cli/clusterManager.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { createClusterDialer } from '../../src/main/layouts/clusterDialer.ts'
import { processTools } from '../../src/main/layouts/processTools.ts'

const root = path.resolve(import.meta.dirname, '../..')
const skip = process.getuid?.() !== 0 ? 'needs root' : false
const options = { skip, timeout: 60_000 }
const namespace = `skiff-dial-${process.pid}`
let server: ReturnType<typeof spawn> | undefined

/** Speaks first, then echoes. */
const serverProgram = `
const net = require('net')
net.createServer((s) => { s.write('hello '); s.pipe(s) }).listen(8080, '10.244.0.1', () => console.log('ready'))
`

before(async () => {
  if (skip) return
  execFileSync('ip', ['netns', 'add', namespace])
  execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: 'link set lo up\naddr add 10.244.0.1/32 dev lo\n' })
  const [enter = '', ...rest] = inNetworkNamespace(namespace)
  server = spawn(enter, [...rest, process.execPath, '-e', serverProgram], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(server.stdout as NodeJS.ReadableStream, 'data')
})

after(() => {
  if (skip) return
  server?.kill('SIGKILL')
  execFileSync('ip', ['netns', 'del', namespace])
})

/** Runs a dialer while the test works. */
async function withDialer(work: (dialer: ReturnType<typeof createClusterDialer>, pid: () => number | undefined) => Promise<void>): Promise<void> {
  const running = new Map<string, ProcessStatus>()
  const processes = {
    set: async (key: string, one: ProcessStatus | undefined) => {
      if (one) running.set(key, one)
      else running.delete(key)
    },
  }
  const self = [process.execPath, '--import', path.join(root, 'node_modules/tsx/dist/loader.mjs'), path.join(root, 'src/main/skiff.ts')]
  const dialer = createClusterDialer({ namespace, self, tools: processTools('test', { verbosity: 0 }), processes })
  const stop = new AbortController()
  const component = dialer.component.run(stop.signal)
  try {
    await work(dialer, () => running.get('dialer')?.pid)
  } finally {
    stop.abort()
    await component
  }
  assert.equal(running.size, 0)
}

async function exchange(socket: Socket, text: string): Promise<string> {
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.end(text)
  await once(socket, 'close')
  return received
}

test('API-29 a dial before the process is ready waits, and the connection carries all bytes of both ends', options, () =>
  withDialer(async ({ dial }) => {
    const large = 'x'.repeat(1_000_000)
    const sockets = await Promise.all(Array.from({ length: 20 }, () => dial('10.244.0.1', 8080)))
    for (const socket of sockets) assert.equal(await exchange(socket, large), `hello ${large}`)
  }),
)

test('API-29 a dial that fails has the error of the kernel in the namespace', options, () =>
  withDialer(async ({ dial }) => {
    await assert.rejects(dial('10.244.0.1', 9), { code: 'ECONNREFUSED' })
    await assert.rejects(dial('10.244.7.7', 80), { code: 'ENETUNREACH' })
  }),
)

test('API-29 a dial that is given up is rejected, and its connection is closed when it arrives', options, () =>
  withDialer(async ({ dial }) => {
    const gone = AbortSignal.abort(new Error('the client went away'))
    await assert.rejects(dial('10.244.0.1', 8080, gone), /the client went away/)
    const leaving = new AbortController()
    const late = dial('10.244.0.1', 8080, leaving.signal)
    leaving.abort(new Error('the client went away'))
    await assert.rejects(late, /the client went away/)
    assert.equal(await exchange(await dial('10.244.0.1', 8080), 'still here'), 'hello still here')
  }),
)

test('API-29 a killed process is replaced; connections that it made stay, and a dial meanwhile waits for the next', options, () =>
  withDialer(async ({ dial }, pid) => {
    const before_ = await dial('10.244.0.1', 8080)
    const first = pid() ?? 0
    process.kill(first, 'SIGKILL')
    assert.equal(await exchange(await dial('10.244.0.1', 8080), 'after'), 'hello after')
    assert.notEqual(pid(), first)
    assert.equal(await exchange(before_, 'before'), 'hello before')
  }),
)

test('API-29 the process ends when its server is killed', options, async () => {
  const [enter = '', ...rest] = inNetworkNamespace(namespace)
  const program = [path.join(root, 'node_modules/tsx/dist/loader.mjs'), path.join(root, 'src/main/skiff.ts')]
  const serverOfDialer = `
    const { spawn } = require('node:child_process')
    const child = spawn(${JSON.stringify(enter)}, ${JSON.stringify([...rest, process.execPath, '--import', ...program, 'dialer'])}, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    child.on('message', () => console.log(child.pid))
    child.send({ id: 1, address: '10.244.0.1', port: 9 })
  `
  const killed = spawn(process.execPath, ['-e', serverOfDialer], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [printed] = (await once(killed.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  const dialerPid = Number(String(printed))
  killed.kill('SIGKILL')
  const deadline = Date.now() + 20_000
  const lives = () => fs.existsSync(`/proc/${dialerPid}`) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${dialerPid}/status`, 'utf8'))
  while (lives()) assert.ok(Date.now() < deadline, 'the dialer outlives its server')
})
