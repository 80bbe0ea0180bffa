/** What every route mode must do, on a kernel that the test plays. The same modes against a kernel: test/e2e/routeModes.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createWakeUp } from '#base/wakeUp'
import type { Exec, ExecOptions, ExecResult } from '#host/exec'
import type { Route } from '../podNetwork.ts'
import { routeChanges } from './hostGateway.ts'
import { routeModes } from './index.ts'
import type { RouteMode, WantedRoutes } from './routeMode.ts'
import { macOf, vxlan } from './vxlan.ts'

interface KernelRoute {
  readonly gateway: string
  readonly dev: string
  readonly proto: string
}

/** Routing tables, neighbours, forwarding entries and links, as ip(8) and bridge(8) show and change them. */
class Kernel implements Exec {
  readonly routes = { '-4': new Map<string, KernelRoute>(), '-6': new Map<string, KernelRoute>() }
  readonly links = new Map<string, string>()
  readonly #neighbours = new Map<string, string>()
  readonly #forwarding = new Map<string, string>()
  changes = 0
  failing = false
  hasIpv6 = true

  async run(command: string, args: readonly string[], { input }: ExecOptions = {}): Promise<ExecResult> {
    const answer = (code: number, shown: unknown = []) => ({ code, stdout: JSON.stringify(shown), stderr: code === 0 ? '' : 'refused', timedOut: false })
    const family = args[0] === '-6' ? '-6' : '-4'
    if (this.failing || (family === '-6' && !this.hasIpv6)) return answer(2)
    if (args[0] === 'link') return answer(this.#unlink(args[2] ?? '') ? 0 : 1)
    if (args.includes('-json')) return this.#show(args, family, answer)
    this.changes++
    for (const line of String(input).trimEnd().split('\n')) this.#change(command, line, family)
    return answer(0)
  }

  #show<T>(args: readonly string[], family: '-4' | '-6', answer: (code: number, shown?: unknown) => T): T {
    const last = args.at(-1) ?? ''
    if (args.includes('link')) return this.links.has(last) ? answer(0, [{ ifname: last, address: this.links.get(last) }]) : answer(1)
    const after = (word: string) => (args.includes(word) ? args[args.indexOf(word) + 1] : undefined)
    if (args.includes('neighbour')) {
      const ofDevice = [...this.#neighbours].filter(([key]) => key.startsWith(`${after('dev')} `))
      return answer(
        0,
        ofDevice.map(([key, lladdr]) => ({ dst: key.split(' ')[1], lladdr })),
      )
    }
    const shown = [...this.routes[family]].filter(([, { proto, dev }]) => proto === after('proto') && [undefined, dev].includes(after('dev')))
    return answer(
      0,
      shown.map(([dst, { gateway }]) => ({ dst, gateway })),
    )
  }

  #change(command: string, line: string, family: '-4' | '-6'): void {
    const [object, action, first = '', ...rest] = line.split(' ')
    const after = (word: string) => (rest.includes(word) ? (rest[rest.indexOf(word) + 1] ?? '') : '')
    if (command === 'bridge') this.#forwarding.set(first, after('dst'))
    else if (object === 'link' && action === 'add') this.links.set(first, '')
    else if (object === 'link' && action === 'set') this.links.set(first, after('address'))
    else if (object === 'link') this.#unlink(first)
    else if (object === 'neighbour' && action === 'replace') this.#neighbours.set(`${after('dev')} ${first}`, after('lladdr'))
    else if (object === 'neighbour') this.#neighbours.delete(`${after('dev')} ${first}`)
    else if (object === 'route' && action === 'del') this.routes[family].delete(first)
    else if (object === 'route') this.routes[family].set(first, { gateway: after('via'), dev: after('dev'), proto: after('proto') })
  }

  /** A link takes its routes and neighbours with it. */
  #unlink(device: string): boolean {
    for (const routes of Object.values(this.routes)) for (const [cidr, { dev }] of routes) if (dev === device) routes.delete(cidr)
    for (const key of this.#neighbours.keys()) if (key.startsWith(`${device} `)) this.#neighbours.delete(key)
    return this.links.delete(device)
  }

  spawn(): never {
    assert.fail('nothing is spawned')
  }

  /** Each range with the node that its packets are sent to. */
  all(): [string, string | undefined][] {
    const nodeOf = ({ gateway, dev }: KernelRoute) => (dev ? this.#forwarding.get(this.#neighbours.get(`${dev} ${gateway}`) ?? '') : gateway)
    return [...this.routes['-4'], ...this.routes['-6']].map(([cidr, route]) => [cidr, nodeOf(route)])
  }
}

async function withMode(
  mode: RouteMode,
  work: (kernel: Kernel, clock: VirtualClock, want: (routes: Route[]) => Promise<void>) => Promise<void>,
  own: readonly Route[] = ownRanges,
): Promise<Kernel> {
  const kernel = new Kernel()
  const clock = new VirtualClock()
  const changes = createWakeUp()
  let routes: Route[] = []
  const next: WantedRoutes['next'] = async (signal, atMostMs) => {
    const timer = atMostMs === undefined ? undefined : clock.timer(atMostMs, changes.ring)
    await changes.wait(signal)
    timer?.cancel()
    signal.throwIfAborted()
  }
  const stop = new AbortController()
  const running = mode.run({ clock, log: noLog, exec: kernel }, { next, newest: () => routes, own: () => own }, stop.signal)
  const want = async (wanted: Route[]) => {
    routes = wanted
    changes.ring()
    await clock.advance(0)
  }
  try {
    await work(kernel, clock, want)
  } finally {
    stop.abort()
    await clock.advance(0)
    await running
  }
  return kernel
}

const ownRanges: readonly Route[] = [
  { cidr: '10.244.0.0/24', via: '10.88.0.10' },
  { cidr: 'fd01::/64', via: 'fd00::10' },
]
const four: Route = { cidr: '10.244.1.0/24', via: '10.88.0.11' }
const six: Route = { cidr: 'fd01:0:0:1::/64', via: 'fd00::11' }

for (const mode of routeModes) {
  test(`NET-05 ${mode.name} sets the routes of both families and leaves them in place when it is stopped`, async () => {
    const kernel = await withMode(mode, async (_kernel, _clock, want) => want([four, six]))
    assert.deepEqual(kernel.all(), [
      [four.cidr, four.via],
      [six.cidr, six.via],
    ])
    await mode.cleanUp(kernel)
    assert.deepEqual(kernel.all(), [])
  })

  test(`NET-05 ${mode.name} sets a lost route again within ten seconds, and changes nothing while all is as wanted`, async () => {
    await withMode(mode, async (kernel, clock, want) => {
      await want([four])
      kernel.routes['-4'].clear()
      await clock.advance(10_000)
      assert.deepEqual(kernel.all(), [[four.cidr, four.via]])
      const { changes } = kernel
      await clock.advance(60_000)
      assert.equal(kernel.changes, changes)
    })
  })

  test(`NET-05 ${mode.name} tries again every second while the kernel refuses`, async () => {
    await withMode(mode, async (kernel, clock, want) => {
      kernel.failing = true
      await want([four])
      kernel.failing = false
      await clock.advance(999)
      assert.deepEqual(kernel.all(), [])
      await clock.advance(1)
      assert.deepEqual(kernel.all(), [[four.cidr, four.via]])
    })
  })

  test(`NET-05 ${mode.name} sets the routes of IPv4 on a kernel without IPv6`, async () => {
    await withMode(mode, async (kernel, _clock, want) => {
      kernel.hasIpv6 = false
      await want([four])
      assert.deepEqual(kernel.all(), [[four.cidr, four.via]])
      await mode.cleanUp(kernel)
      assert.deepEqual(kernel.all(), [])
    })
  })
}

test('NET-05 vxlan makes the device again when the node has another address, and sends to the new address of a node', async () => {
  const kernel = await withMode(vxlan, async (kernel, _clock, want) => {
    await want([four])
    assert.equal(kernel.links.get('skiff-vxlan'), macOf('10.88.0.10'))
    kernel.links.set('skiff-vxlan', macOf('10.88.0.99'))
    await want([{ ...four, via: '10.88.0.77' }])
  })
  assert.equal(kernel.links.get('skiff-vxlan'), macOf('10.88.0.10'))
  assert.deepEqual(kernel.all(), [[four.cidr, '10.88.0.77']])
})

test('NET-05 vxlan makes no device on a node without ranges of pods', async () => {
  const kernel = await withMode(vxlan, async (_kernel, _clock, want) => want([]), [])
  assert.deepEqual([kernel.links.size, kernel.changes], [0, 0])
})

test('NET-05 only changed routes are sent to the kernel', () => {
  const other = { cidr: '10.244.2.0/24', via: '10.88.0.12' }
  assert.deepEqual(routeChanges([four, other], [four, other]), [])
  assert.deepEqual(routeChanges([four, other], [{ ...four, via: '10.88.0.99' }]), [
    'route del 10.244.2.0/24 proto 107',
    'route replace 10.244.1.0/24 via 10.88.0.99 proto 107',
  ])
})
