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

/** Two routing tables, as ip(8) shows and changes them. */
class Kernel implements Exec {
  readonly routes = { '-4': new Map<string, string>(), '-6': new Map<string, string>() }
  changes = 0
  failing = false
  hasIpv6 = true

  async run(command: string, args: readonly string[], { input }: ExecOptions = {}): Promise<ExecResult> {
    assert.equal(command, 'ip')
    const family = args[0] === '-6' ? '-6' : '-4'
    const answer = (code: number, stdout = '') => ({ code, stdout, stderr: code === 0 ? '' : 'refused', timedOut: false })
    if (this.failing || (family === '-6' && !this.hasIpv6)) return answer(2)
    const routes = this.routes[family]
    if (args.includes('-json')) return answer(0, JSON.stringify([...routes].map(([dst, gateway]) => ({ dst, gateway }))))
    this.changes++
    for (const line of String(input).trimEnd().split('\n')) {
      const [, action, cidr = '', , gateway = ''] = line.split(' ')
      if (action === 'del') routes.delete(cidr)
      else routes.set(cidr, gateway)
    }
    return answer(0)
  }

  spawn(): never {
    assert.fail('nothing is spawned')
  }

  all(): [string, string][] {
    return [...this.routes['-4'], ...this.routes['-6']]
  }
}

async function withMode(
  mode: RouteMode,
  work: (kernel: Kernel, clock: VirtualClock, want: (routes: Route[]) => Promise<void>) => Promise<void>,
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
  const running = mode.run({ clock, log: noLog, exec: kernel }, { next, newest: () => routes }, stop.signal)
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

test('NET-05 only changed routes are sent to the kernel', () => {
  const other = { cidr: '10.244.2.0/24', via: '10.88.0.12' }
  assert.deepEqual(routeChanges([four, other], [four, other]), [])
  assert.deepEqual(routeChanges([four, other], [{ ...four, via: '10.88.0.99' }]), [
    'route del 10.244.2.0/24 proto 107',
    'route replace 10.244.1.0/24 via 10.88.0.99 proto 107',
  ])
})
