/**
 * The port forwarder of a local cluster over a real network namespace: the server's process binds, the process in the namespace serves, on both addresses of
 * localhost; a taken port is an error, a killed process is replaced, and none is left when it stops. Needs root; removes what it made.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { ProcessStatus } from '../../src/cli/clusterManager.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { createPortHolders } from '../../src/host/portHolder.ts'
import { createPortForwarder, type ForwarderRun, type PortForwarder } from '../../src/main/layouts/portForwarder.ts'
import { processTools } from '../../src/main/layouts/processTools.ts'
import { freePort } from '../../src/main/localCluster/freePort.ts'
import { eventually } from './support/localCluster.ts'

const root = path.resolve(import.meta.dirname, '../..')
const skip = process.getuid?.() !== 0 ? 'needs root' : false
const options = { skip, timeout: 60_000 }
const namespace = `skiff-ports-${process.pid}`
const self = [process.execPath, '--import', path.join(root, 'node_modules/tsx/dist/loader.mjs'), path.join(root, 'src/main/skiff.ts')]
const node = '10.244.0.1'
const tcp = [{ address: node, port: 8080 }]
const udp = [{ address: node, port: 8053 }]
let server: ReturnType<typeof spawn> | undefined

/** Echoes what it gets, by TCP and by UDP. */
const serverProgram = `
const net = require('net')
const udp = require('dgram').createSocket('udp4')
udp.on('message', (data, { port, address }) => udp.send(data, port, address))
udp.bind(8053, '${node}')
net.createServer({ allowHalfOpen: true }, (s) => { s.on('error', () => {}); s.pipe(s) }).listen(8080, '${node}', () => console.log('ready'))
`

before(async () => {
  if (skip) return
  execFileSync('ip', ['netns', 'add', namespace])
  execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: `link set lo up\naddr add ${node}/32 dev lo\n` })
  const [enter = '', ...rest] = inNetworkNamespace(namespace)
  server = spawn(enter, [...rest, process.execPath, '-e', serverProgram], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(server.stdout as NodeJS.ReadableStream, 'data')
})

after(() => {
  if (skip) return
  server?.kill('SIGKILL')
  execFileSync('ip', ['netns', 'del', namespace])
})

interface World {
  readonly forwarder: PortForwarder
  pid(): number | undefined
  /** Waits for a run other than `before`. */
  run(before?: ForwarderRun): Promise<ForwarderRun>
}

async function withForwarder(work: (world: World) => Promise<void>): Promise<void> {
  const running = new Map<string, ProcessStatus>()
  const processes = {
    set: async (key: string, one: ProcessStatus | undefined) => {
      if (one) running.set(key, one)
      else running.delete(key)
    },
  }
  const forwarder = createPortForwarder({ namespace, cluster: 'tested', self, tools: processTools('test', { verbosity: 0 }), processes })
  const stop = new AbortController()
  const component = forwarder.component.run(stop.signal)
  const run = async (before_?: ForwarderRun) => {
    const found = await eventually(
      'a run of the forwarder',
      20_000,
      async () => forwarder.current(),
      (one) => one !== undefined && one !== before_,
    )
    return found as ForwarderRun
  }
  try {
    await work({ forwarder, pid: () => running.get('forwarder')?.pid, run })
  } finally {
    stop.abort()
    await component
  }
  assert.equal(running.size, 0)
}

async function ask(host: string, port: number, text: string): Promise<string> {
  const socket = net.connect({ host, port, allowHalfOpen: true })
  socket.end(text)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await once(socket, 'end')
  return answer
}

async function askUdp(host: string, port: number, text: string): Promise<string> {
  const socket = dgram.createSocket(host === '::1' ? 'udp6' : 'udp4')
  const answer = once(socket, 'message')
  socket.send(text, port, host)
  const [data] = await answer
  socket.close()
  return String(data)
}

test('SVC-03 a port answers on both addresses of localhost, by TCP and UDP, from another process than the one that opened it', options, () =>
  withForwarder(async ({ run, pid }) => {
    const port = await freePort()
    const { open } = await run()
    const ports = [await open({ protocol: 'TCP', port, targets: tcp }), await open({ protocol: 'UDP', port, targets: udp })]
    const large = 'x'.repeat(2_000_000)
    for (const host of ['127.0.0.1', '::1']) {
      assert.equal(await ask(host, port, large), large)
      assert.equal(await askUdp(host, port, 'a datagram'), 'a datagram')
    }
    const holderOf = createPortHolders(processTools('test', { verbosity: 0 }).clock)
    for (const protocol of ['TCP', 'UDP'] as const) assert.equal((await holderOf(protocol, port))?.pid, pid())
    for (const one of ports) one.close()
    await eventually(
      'the port to be free',
      2000,
      () => ask('127.0.0.1', port, 'closed').catch((error: NodeJS.ErrnoException) => error.code),
      (code) => code === 'ECONNREFUSED',
    )
  }),
)

test('SVC-03 a port that is taken on one address of localhost is an error, and the other address is free', options, () =>
  withForwarder(async ({ run }) => {
    const { open } = await run()
    for (const [taken, other] of [
      ['127.0.0.1', '::1'],
      ['::1', '127.0.0.1'],
    ] as const) {
      const holder = net.createServer().listen(0, taken)
      await once(holder, 'listening')
      const { port } = holder.address() as net.AddressInfo
      await assert.rejects(open({ protocol: 'TCP', port, targets: tcp }), { code: 'EADDRINUSE', address: taken })
      const free = net.createServer().listen(port, other)
      await once(free, 'listening')
      for (const one of [holder, free]) one.close()
    }
  }),
)

test('SVC-03 connections that come while a port is opened are served, also those of many ports at once', options, () =>
  withForwarder(async ({ run }) => {
    const { open } = await run()
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    for (let i = 0; i < 30; i++) {
      const port = await freePort()
      const opening = open({ protocol: 'TCP', port, targets: tcp })
      const answers = Array.from({ length: 5 }, () =>
        eventually(
          'an answer',
          5000,
          () => ask('127.0.0.1', port, 'early').catch((error: NodeJS.ErrnoException) => error.code),
          // Refused before the port listens; from then on each connection is served.
          (answer) => answer !== 'ECONNREFUSED',
        ),
      )
      assert.deepEqual(new Set(await Promise.all(answers)), new Set(['early']))
      ;(await opening).close()
    }
    process.off('warning', onWarning)
    assert.deepEqual(warnings, [])
  }),
)

test('SVC-03 a busy event loop of the server delays no connection', options, () =>
  withForwarder(async ({ run }) => {
    const port = await freePort()
    const { open } = await run()
    const opened = await open({ protocol: 'TCP', port, targets: tcp })
    const client = `
      const net = require('net')
      const ask = () => new Promise((resolve) => {
        const start = performance.now()
        const s = net.connect(${port}, '127.0.0.1', () => s.end('hello'))
        s.resume().on('close', () => resolve(performance.now() - start))
      })
      ;(async () => {
        await ask()
        console.log('measuring')
        let worst = 0
        for (let i = 0; i < 50; i++) worst = Math.max(worst, await ask())
        console.log(worst)
      })()`
    const asking = spawn(process.execPath, ['-e', client], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(asking.stdout, 'data')
    // This process stands for the server: it does nothing else for two seconds.
    for (const end = Date.now() + 2000; Date.now() < end; );
    const [worst] = (await once(asking.stdout, 'data')) as [Buffer]
    assert.ok(Number(worst) < 1000, `${worst} ms`)
    opened.close()
  }),
)

test('SVC-03 a killed process is replaced, and the next one serves the ports that are opened again', options, () =>
  withForwarder(async ({ run, pid, forwarder }) => {
    const port = await freePort()
    const first = await run()
    await first.open({ protocol: 'TCP', port, targets: tcp })
    assert.equal(await ask('127.0.0.1', port, 'before'), 'before')
    let changes = 0
    forwarder.onChange(() => changes++)
    const killed = pid() ?? 0
    process.kill(killed, 'SIGKILL')
    const second = await run(first)
    assert.ok(changes >= 2, 'the end and the next start are announced')
    await assert.rejects(first.open({ protocol: 'TCP', port, targets: tcp }))
    await second.open({ protocol: 'TCP', port, targets: tcp })
    assert.equal(await ask('127.0.0.1', port, 'after'), 'after')
    assert.notEqual(pid(), killed)
  }),
)

test('SVC-03 no process runs before there is a port', options, () =>
  withForwarder(async ({ pid, run }) => {
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(pid(), undefined)
    await run()
    const words = fs.readFileSync(`/proc/${pid()}/cmdline`, 'utf8').split('\0')
    assert.deepEqual(words.slice(-4), ['forwarder', '--cluster', 'tested', ''])
  }),
)
