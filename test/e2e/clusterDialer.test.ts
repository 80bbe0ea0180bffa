/**
 * The dialer of a local cluster in a real network namespace: connections are made there and handed over, errors are those of the kernel, a killed process is
 * replaced, and none is left when it stops; dials end with their clients and are limited. Needs root; removes what it made.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import fs from 'node:fs'
import type { Socket } from 'node:net'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { UnreachableAddress } from '../../src/apiserver/backends/reach.ts'
import type { ProcessStatus } from '../../src/cli/clusterManager.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { createClusterDialer } from '../../src/main/layouts/clusterDialer.ts'
import { type DialAnswer, maxDials, maxDialsOfProcess } from '../../src/main/layouts/dialMessages.ts'
import { memoryFlags } from '../../src/main/layouts/namespaceProcess.ts'
import { processTools } from '../../src/main/layouts/processTools.ts'
import { eventually } from './support/localCluster.ts'

const root = path.resolve(import.meta.dirname, '../..')
const skip = process.getuid?.() !== 0 ? 'needs root' : false
const options = { skip, timeout: 60_000 }
const namespace = `skiff-dial-${process.pid}`
const self = [process.execPath, '--import', path.join(root, 'node_modules/tsx/dist/loader.mjs'), path.join(root, 'src/main/skiff.ts')]
let server: ReturnType<typeof spawn> | undefined

/** No host has an address of 10.244.9.0/24, and the device does not ask for one: a dial to such an address stays in SYN-SENT. */
const links = `
link set lo up
addr add 10.244.0.1/32 dev lo
link add silent type veth peer name silent-peer
link set silent arp off up
link set silent-peer up
addr add 10.244.9.1/24 dev silent
`

/** Speaks first, then echoes. */
const serverProgram = `
const net = require('net')
net.createServer((s) => { s.on('error', () => {}); s.write('hello '); s.pipe(s) }).listen(8080, '10.244.0.1', () => console.log('ready'))
`

before(async () => {
  if (skip) return
  execFileSync('ip', ['netns', 'add', namespace])
  execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: links })
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

const silentAddress = (number: number) => `10.244.9.${10 + number}`

/** The states of the kernel's table of connections. */
const established = '01'
const synSent = '02'

/** Connections in the network namespace of a process that are in one state. */
function connectionsIn(pid: number, state: string): number {
  const lines = fs.readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return lines.filter((line) => line.trim().split(/\s+/)[3] === state).length
}

const descriptorsOf = (pid: number | 'self') => fs.readdirSync(`/proc/${pid}/fd`).length

/** A client of many dials. */
function manyDials(): AbortController {
  const client = new AbortController()
  setMaxListeners(0, client.signal)
  return client
}

/** Starts dials that stay in SYN-SENT. Returns a function that gives them all up. */
function startSilentDials(dial: ReturnType<typeof createClusterDialer>['dial'], count: number, perAddress: number) {
  const client = manyDials()
  const dials = Array.from({ length: count }, (_, i) => dial(silentAddress(Math.floor(i / perAddress)), 80, client.signal))
  const ended = Promise.allSettled(dials)
  return async () => {
    client.abort(new Error('the client went away'))
    return (await ended).map((one) => (one.status === 'rejected' ? (one.reason as Error).message : 'connected'))
  }
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

test('API-29 dials that are given up leave no socket in the namespace of the dialer', options, () =>
  withDialer(async ({ dial }, pid) => {
    ;(await dial('10.244.0.1', 8080)).destroy()
    const dialer = pid() ?? 0
    const before_ = descriptorsOf(dialer)
    const giveUp = startSilentDials(dial, 500, 50)
    await eventually(
      '500 dials are under way',
      10_000,
      async () => connectionsIn(dialer, synSent),
      (count) => count === 500,
    )
    assert.deepEqual(new Set(await giveUp()), new Set(['the client went away']))
    await eventually(
      'no dial is left',
      1000,
      async () => connectionsIn(dialer, synSent),
      (count) => count === 0,
    )
    await eventually(
      'no descriptor is left',
      1000,
      async () => descriptorsOf(dialer),
      (count) => count <= before_,
    )
    assert.equal(pid(), dialer)
  }),
)

test('API-29 dials that are given up while their connections are handed over leave no descriptor on either side', options, () =>
  withDialer(async ({ dial }, pid) => {
    ;(await dial('10.244.0.1', 8080)).destroy()
    const dialer = pid() ?? 0
    const before_ = { dialer: descriptorsOf(dialer), server: descriptorsOf('self') }
    for (let round = 0; round < 10; round++) {
      const client = manyDials()
      const dials = Array.from({ length: 50 }, () => dial('10.244.0.1', 8080, client.signal))
      // The others are requested, connecting, connected or being handed over.
      await Promise.race(dials)
      client.abort(new Error('the client went away'))
      for (const one of await Promise.allSettled(dials)) if (one.status === 'fulfilled') one.value.destroy()
    }
    const counts = async () => ({ dialer: descriptorsOf(dialer), server: descriptorsOf('self'), connections: connectionsIn(dialer, established) })
    await eventually('all are closed', 5000, counts, (now) => now.dialer <= before_.dialer && now.server <= before_.server && now.connections === 0)
  }),
)

test('API-29 a dial beyond the limit of its address is refused at once, and a dial to another address succeeds', options, () =>
  withDialer(async ({ dial }) => {
    const giveUp = startSilentDials(dial, maxDials.perAddress, maxDials.perAddress)
    const refused = await dial(silentAddress(0), 81, AbortSignal.timeout(5000)).catch((error: Error) => error)
    assert.ok(refused instanceof UnreachableAddress, String(refused))
    assert.match(refused.message, /^256 connections to 10\.244\.9\.10 are being made already/)
    assert.equal(await exchange(await dial('10.244.0.1', 8080), 'other'), 'hello other')
    assert.deepEqual(new Set(await giveUp()), new Set(['the client went away']))
    const giveUpNext = startSilentDials(dial, maxDials.perAddress, maxDials.perAddress)
    assert.deepEqual(new Set(await giveUpNext()), new Set(['the client went away']))
  }),
)

test('API-29 a dial beyond the limit of the cluster is refused at once, and succeeds after the others are given up', options, () =>
  withDialer(async ({ dial }) => {
    const giveUp = startSilentDials(dial, maxDials.ofServer, 128)
    const refused = await dial('10.244.0.1', 8080).catch((error: Error) => error)
    assert.ok(refused instanceof UnreachableAddress, String(refused))
    assert.match(refused.message, /^1024 connections into the cluster are being made already/)
    await giveUp()
    assert.equal(await exchange(await dial('10.244.0.1', 8080), 'free'), 'hello free')
  }),
)

test('API-29 the process refuses dials beyond its own limit, which its memory allows, until one of them is cancelled', options, async () => {
  const [enter = '', ...rest] = inNetworkNamespace(namespace)
  const [node = '', ...entry] = self
  const dialer = spawn(enter, [...rest, node, ...memoryFlags, ...entry, 'dialer'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const answerTo = async (id: number, address: string, port: number) => {
    dialer.send({ id, address, port })
    return (await once(dialer, 'message')) as [DialAnswer, Socket | undefined]
  }
  try {
    for (let id = 1; id <= maxDialsOfProcess; id++) dialer.send({ id, address: silentAddress(id % 200), port: 80 })
    const [refusal] = await answerTo(5000, '10.244.0.1', 8080)
    assert.deepEqual(refusal, { id: 5000, error: { message: 'the dialer makes 2048 connections already: try again later', isRefusal: true } })
    dialer.send({ cancel: 7 })
    const [answer, socket] = await answerTo(5001, '10.244.0.1', 8080)
    assert.deepEqual(answer, { id: 5001 })
    assert.equal(await exchange(socket as Socket, 'one more'), 'hello one more')
  } finally {
    const exited = once(dialer, 'exit')
    dialer.disconnect()
    await exited
  }
})

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
  const serverOfDialer = `
    const { spawn } = require('node:child_process')
    const child = spawn(${JSON.stringify(enter)}, ${JSON.stringify([...rest, ...self, 'dialer'])}, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
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
