/** The userspace mode with sockets of its own: addresses of 127.0.0.0/8 stand for cluster IPs, which every process may bind. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { createWakeUp } from '#base/wakeUp'
import type { Exec } from '#host/exec'
import { realClock } from '#testing/realClock'
import type { ProxyModel, ServiceRule } from '../model.ts'
import type { ProxyModeDeps } from './mode.ts'
import { wantedListeners } from './userspace/serve.ts'
import { userspace } from './userspace.ts'

/** Not of another run of these tests. */
const address = (last: number) => `127.${77 + (process.pid % 100)}.${(process.pid >> 7) % 250}.${last}`
const clusterIp = address(10)
const port = 28_080

function ruleWith(changes: Partial<ServiceRule>): ServiceRule {
  const clusterEndpoints = changes.clusterEndpoints ?? []
  return {
    service: 'default/web',
    portName: 'http',
    protocol: 'tcp',
    clusterIp,
    port,
    nodePort: undefined,
    externalIps: [],
    loadBalancerIps: [],
    sourceRanges: undefined,
    affinitySeconds: undefined,
    internalPolicyLocal: false,
    externalPolicyLocal: false,
    clusterEndpoints,
    localEndpoints: clusterEndpoints.filter(({ isLocal }) => isLocal),
    ...changes,
  }
}

/** A server that answers each connection with its name; the rule's endpoint. */
async function endpoint(name: string, isLocal = true) {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.end(name)
  })
  server.listen({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  return { server, ip: '127.0.0.1', port: (server.address() as net.AddressInfo).port, isLocal }
}

/** What the server said, or the code of the error. */
function ask(host: string, to = port, localAddress = '127.0.0.1'): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = net.connect({ host, port: to, localAddress, timeout: 5000 })
    socket.on('data', (data) => {
      text += data
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
    socket.on('timeout', () => socket.destroy(new Error('timeout')))
    socket.on('close', () => resolve(text))
  })
}

interface World {
  give(rules: readonly ServiceRule[]): Promise<void>
  /** Resolves when the mode has applied the model again. */
  waitForRetry(clock: VirtualClock): Promise<void>
  allowRoutes(): void
  readonly commands: string[]
  readonly warnings: string[]
}

async function withMode(work: (world: World) => Promise<void>, options: { mayRoute?: boolean; clock?: Clock } = {}): Promise<void> {
  let { mayRoute = true } = options
  const [commands, warnings]: string[][] = [[], []]
  const exec = {
    run: async (command: string, args: readonly string[]) => {
      commands?.push([command, ...args].join(' '))
      return { code: mayRoute ? 0 : 2, stdout: '', stderr: 'RTNETLINK answers: Operation not permitted', timedOut: false }
    },
  } as unknown as Exec
  const note = (message: string, values: object) => void warnings?.push(`${message} ${JSON.stringify(values)}`)
  const log: Logger = { ...noLog, info: note, warn: note } as Logger
  const changes = createWakeUp()
  const stop = new AbortController()
  let model: ProxyModel = []
  let asked = () => {}
  const models = {
    newest: () => model,
    next: async (signal: AbortSignal) => {
      // Asked for the next model, the mode has applied the one before.
      asked()
      await changes.wait(signal)
      signal.throwIfAborted()
      return model
    },
  }
  const deps: ProxyModeDeps = {
    exec,
    clock: options.clock ?? realClock,
    log,
    metrics: noMetrics,
    conntrack: { delete: async () => assert.fail('the process may not change the table of flows') },
  }
  const nextApplied = () =>
    new Promise<void>((resolve) => {
      asked = resolve
    })
  const started = nextApplied()
  const running = userspace.run(deps, models, stop.signal)
  await started
  const waitForRetry = async (clock: VirtualClock) => {
    const applied = nextApplied()
    await clock.advance(30_000)
    return applied
  }
  const allowRoutes = () => {
    mayRoute = true
  }
  const give = (rules: readonly ServiceRule[]) => {
    const applied = nextApplied()
    model = [{ family: 'IPv4', rules, clusterCidrs: ['10.244.0.0/16'], serviceCidrs: ['10.96.0.0/16'] }]
    changes.ring()
    return applied
  }
  try {
    await work({ give, waitForRetry, allowRoutes, commands: commands ?? [], warnings: warnings ?? [] })
  } finally {
    stop.abort()
    await running
  }
}

test('SVC-08 userspace spreads connections over the endpoints, takes up changed ones, and closes the port with the Service', async () => {
  const [a, b] = await Promise.all([endpoint('a'), endpoint('b')])
  await withMode(async ({ give, commands }) => {
    await give([ruleWith({ clusterEndpoints: [a, b] })])
    assert.deepEqual(commands, ['ip -4 route replace local 10.96.0.0/16 dev lo proto 109'])
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(clusterIp)))
    assert.deepEqual([answers.filter((one) => one === 'a').length, answers.filter((one) => one === 'b').length], [5, 5])
    await give([ruleWith({ clusterEndpoints: [b] })])
    assert.deepEqual(await Promise.all([ask(clusterIp), ask(clusterIp)]), ['b', 'b'])
    await give([ruleWith({ clusterEndpoints: [] })])
    assert.equal(await ask(clusterIp), 'ECONNREFUSED')
    await give([ruleWith({ clusterEndpoints: [a] })])
    assert.equal(await ask(clusterIp), 'a')
    await give([])
    assert.equal(await ask(clusterIp), 'ECONNREFUSED')
  }).finally(() => [a, b].map(({ server }) => server.close()))
})

test('SVC-08 an open connection outlives the last endpoint of its Service in userspace, which refuses new ones', async () => {
  const server = net.createServer((socket) => socket.on('data', (data) => socket.write(`${data}!`)))
  server.listen({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  await withMode(async ({ give }) => {
    await give([ruleWith({ clusterEndpoints: [{ ip: '127.0.0.1', port: (server.address() as net.AddressInfo).port, isLocal: true }] })])
    const open = net.connect({ host: clusterIp, port })
    const say = async (text: string) => {
      open.write(text)
      return String((await once(open, 'data'))[0])
    }
    assert.equal(await say('a'), 'a!')
    await give([ruleWith({ clusterEndpoints: [] })])
    assert.equal(await ask(clusterIp), 'ECONNREFUSED')
    assert.equal(await say('b'), 'b!')
    open.destroy()
  }).finally(() => server.close())
})

test('SVC-08 userspace sends a connection to the next endpoint when one does not answer', async () => {
  const [dead, alive] = await Promise.all([endpoint('dead'), endpoint('alive')])
  dead.server.close()
  await once(dead.server, 'close')
  await withMode(async ({ give }) => {
    await give([ruleWith({ clusterEndpoints: [dead, alive] })])
    assert.deepEqual(await Promise.all([ask(clusterIp), ask(clusterIp)]), ['alive', 'alive'])
  }).finally(() => alive.server.close())
})

test('SVC-08 userspace keeps a client with its endpoint, and serves node ports, load balancers within their ranges, and local endpoints', async () => {
  const [near, far] = await Promise.all([endpoint('near'), endpoint('far', false)])
  const clusterEndpoints = [near, far]
  await withMode(async ({ give }) => {
    await give([ruleWith({ clusterEndpoints, affinitySeconds: 60 })])
    const first = await ask(clusterIp)
    assert.deepEqual(await Promise.all(Array.from({ length: 4 }, () => ask(clusterIp))), [first, first, first, first])
    await give([ruleWith({ clusterEndpoints, internalPolicyLocal: true })])
    assert.deepEqual(await Promise.all([ask(clusterIp), ask(clusterIp)]), ['near', 'near'])
    const balancer = address(20)
    const external = { externalIps: [balancer], loadBalancerIps: [balancer], sourceRanges: ['127.0.0.2/32'], externalPolicyLocal: true }
    await give([ruleWith({ clusterEndpoints, nodePort: 28_081, ...external })])
    assert.deepEqual(await Promise.all([ask(address(33), 28_081), ask(address(34), 28_081)]), ['near', 'near'])
    assert.equal(await ask(balancer, port, '127.0.0.2'), 'near')
    assert.equal(await ask(balancer, port, '127.0.0.3'), 'ECONNRESET')
  }).finally(() => [near, far].map(({ server }) => server.close()))
})

test('SVC-08 userspace forwards datagrams, and ends the flows to an endpoint that is gone', async () => {
  const echo = async (name: string) => {
    const socket = createSocket('udp4')
    socket.on('message', (data, { port, address }) => socket.send(`${name} ${data}`, port, address))
    socket.bind({ address: '127.0.0.1', port: 0 })
    await once(socket, 'listening')
    return { socket, ip: '127.0.0.1', port: socket.address().port, isLocal: true }
  }
  const [a, b] = await Promise.all([echo('a'), echo('b')])
  const client = createSocket('udp4')
  const say = async (text: string) => {
    client.send(text, port, clusterIp)
    const [data] = await once(client, 'message')
    return String(data)
  }
  await withMode(async ({ give }) => {
    const udp = (clusterEndpoints: ServiceRule['clusterEndpoints']) => ruleWith({ protocol: 'udp', clusterEndpoints })
    await give([udp([a])])
    assert.deepEqual([await say('1'), await say('2')], ['a 1', 'a 2'])
    await give([udp([b])])
    assert.equal(await say('3'), 'b 3')
  }).finally(() => [a.socket, b.socket, client].map((socket) => socket.close()))
})

test('SVC-08 userspace without the right to change routes names the command, and an address that is not local is reported once', async () => {
  await withMode(
    async ({ give, warnings }) => {
      const foreign = ruleWith({ clusterIp: '198.51.100.7', clusterEndpoints: [{ ip: '127.0.0.1', port: 1, isLocal: true }] })
      for (let i = 0; i < 2; i++) await give([foreign])
      assert.equal(warnings.length, 2, warnings.join('\n'))
      assert.match(
        warnings[0] ?? '',
        /"run":"ip -4 route replace local 10\.96\.0\.0\/16 dev lo proto 109","reason":"RTNETLINK answers: Operation not permitted"/,
      )
      assert.match(warnings[1] ?? '', /An address of a Service is not served.*tcp 198\.51\.100\.7 28080.*EADDRNOTAVAIL/)
      // The Service is gone and comes back: that is a new report.
      await give([])
      await give([foreign])
      assert.equal(warnings.length, 3, warnings.join('\n'))
    },
    { mayRoute: false },
  )
})

test('SVC-08 userspace tries routes and addresses again after a back-off, until they are served', async () => {
  const clock = new VirtualClock()
  const backend = await endpoint('a')
  const other = net.createServer().listen({ host: clusterIp, port })
  await once(other, 'listening')
  await withMode(
    async ({ give, waitForRetry, allowRoutes, commands, warnings }) => {
      await give([ruleWith({ clusterEndpoints: [backend] })])
      await waitForRetry(clock)
      assert.deepEqual([commands.length, warnings.length], [2, 2], warnings.join('\n'))
      allowRoutes()
      other.close()
      await once(other, 'close')
      await waitForRetry(clock)
      assert.equal(await ask(clusterIp), 'a')
      assert.equal(commands.length, 3)
      await clock.advance(60_000)
      await give([])
      assert.equal(commands.length, 3)
    },
    { mayRoute: false, clock },
  ).finally(() => backend.server.close())
})

test('SVC-08 userspace listens once where two Services want the same address, and not for SCTP or a Service without endpoints', () => {
  const clusterEndpoints = [{ ip: '127.0.0.1', port: 1, isLocal: true }]
  const rules = [
    ruleWith({ clusterEndpoints }),
    ruleWith({ service: 'default/web2', clusterEndpoints }),
    ruleWith({ protocol: 'sctp', port: 9, clusterEndpoints }),
    ruleWith({ service: 'default/none', port: 10, internalPolicyLocal: true, clusterEndpoints: [{ ...clusterEndpoints[0], isLocal: false } as never] }),
    ruleWith({ service: 'default/idle', port: 11 }),
    ruleWith({ service: 'default/taken', port: 11, clusterEndpoints }),
  ]
  assert.deepEqual([...wantedListeners({ family: 'IPv4', rules, clusterCidrs: [], serviceCidrs: [] }).keys()], [`tcp ${clusterIp} ${port}`])
})
