/**
 * Every route mode against the real kernel: two namespaces stand for nodes on one bridge, each with a pod behind it, and a third for a machine that is no
 * node. Needs root; removes what it made.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { noLog } from '../../src/base/log.ts'
import { createWakeUp } from '../../src/base/wakeUp.ts'
import { createExec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import type { Route } from '../../src/network/podNetwork.ts'
import { routeModes } from '../../src/network/routes/index.ts'
import type { WantedRoutes } from '../../src/network/routes/routeMode.ts'
import { vxlan } from '../../src/network/routes/vxlan.ts'
import { realClock } from '../../src/testing/realClock.ts'
import { until } from '../support/until.ts'

const obstacle = process.getuid?.() !== 0 ? 'needs root' : false
const link = `skr-${process.pid}`
const nodes = [1, 2, 3].map((i) => `${link}-${i}`)
const execs = nodes.map((name) => createExec(inNetworkNamespace(name)))

/** Nodes 1 and 2 hold the pods' addresses on their loopback interface; node 1 is also the link of all. */
before(() => {
  if (obstacle) return
  for (const name of nodes) execFileSync('ip', ['netns', 'add', name])
  const [first = ''] = nodes
  const run = (name: string, lines: string[]) => execFileSync('ip', ['-n', name, '-batch', '-'], { input: `${lines.join('\n')}\n` })
  run(first, ['link add br0 type bridge', 'link set br0 up', 'addr add 10.88.0.11/24 dev br0', 'addr add fd00::11/64 dev br0 nodad'])
  nodes.forEach((name, i) => {
    if (i > 0) {
      run(first, [`link add v${i} type veth peer name eth0 netns ${name}`, `link set v${i} master br0 up`])
      run(name, [`addr add 10.88.0.1${i + 1}/24 dev eth0`, `addr add fd00::1${i + 1}/64 dev eth0 nodad`, 'link set eth0 up'])
    }
    run(name, ['link set lo up', `addr add 10.244.${i + 1}.1/32 dev lo`, `addr add fd01:0:0:${i + 1}::1/128 dev lo`])
  })
})

after(() => {
  if (!obstacle) for (const name of nodes) execFileSync('ip', ['netns', 'del', name])
})

const ownRanges = (i: number): Route[] => [
  { cidr: `10.244.${i + 1}.0/24`, via: `10.88.0.1${i + 1}` },
  { cidr: `fd01:0:0:${i + 1}::/64`, via: `fd00::1${i + 1}` },
]
/** The routes of a node to the others. */
const routesOf = (self: number): Route[] => [0, 1, 2].filter((i) => i !== self).flatMap(ownRanges)

/** Nothing listens: a refusal is the other node's answer. */
const clientProgram = `
const [host, localAddress] = process.argv.slice(1)
const s = require('net').connect({ host, port: 9, localAddress, timeout: 1000 })
const say = (text) => { console.log(text); process.exit(0) }
s.on('timeout', () => say('timeout')); s.on('error', (e) => say(e.code))
`

async function reaches(from: number, to: number): Promise<[boolean, boolean]> {
  const answers = async (target: string, source: string) =>
    (await execs[from]?.run(process.execPath, ['-e', clientProgram, target, source]))?.stdout.trim() === 'ECONNREFUSED'
  return [await answers(`10.244.${to + 1}.1`, `10.244.${from + 1}.1`), await answers(`fd01:0:0:${to + 1}::1`, `fd01:0:0:${from + 1}::1`)]
}

for (const mode of routeModes) {
  test(`NET-05 ${mode.name} leads packets of both families between the pods of nodes, and cleaning up removes its routes`, { skip: obstacle }, async () => {
    assert.deepEqual(await reaches(1, 2), [false, false])
    const stop = new AbortController()
    const running = execs.map((exec, i) => {
      const changes = createWakeUp()
      changes.ring()
      const next: WantedRoutes['next'] = async (signal) => {
        await changes.wait(signal)
        signal.throwIfAborted()
      }
      return mode.run({ clock: realClock, log: noLog, exec }, { next, newest: () => routesOf(i), own: () => ownRanges(i) }, stop.signal)
    })
    await until('the nodes reach each other', async () => (await reaches(1, 2)).every(Boolean) && (await reaches(0, 2)).every(Boolean))
    stop.abort()
    await Promise.all(running)
    assert.deepEqual(await reaches(1, 2), [true, true])
    for (const exec of execs) await mode.cleanUp(exec)
    assert.deepEqual(await reaches(1, 2), [false, false])
  })
}

/** A router that knows no range of pods lies between two nodes. */
test('NET-05 vxlan leads packets between the pods of nodes on two links', { skip: obstacle }, async () => {
  const places = ['router', 'left', 'right'].map((name) => `${link}-${name}`)
  const [router = '', ...ends] = places
  const batch = (name: string, lines: string[]) => execFileSync('ip', ['-n', name, '-batch', '-'], { input: `${lines.join('\n')}\n` })
  for (const name of places) execFileSync('ip', ['netns', 'add', name])
  try {
    execFileSync('nsenter', [`--net=/run/netns/${router}`, 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward'])
    const ranges = ends.map((_, i): Route => ({ cidr: `10.244.${i + 1}.0/24`, via: `10.88.${i + 1}.10` }))
    ends.forEach((name, i) => {
      batch(router, [`link add v${i} type veth peer name eth0 netns ${name}`, `addr add 10.88.${i + 1}.1/24 dev v${i}`, `link set v${i} up`])
      const own = [`addr add 10.88.${i + 1}.10/24 dev eth0`, 'link set eth0 up', `route add default via 10.88.${i + 1}.1`]
      batch(name, ['link set lo up', ...own, `addr add 10.244.${i + 1}.1/32 dev lo`])
    })
    const stop = new AbortController()
    const endExecs = ends.map((name) => createExec(inNetworkNamespace(name)))
    const running = endExecs.map((exec, i) => {
      const changes = createWakeUp()
      changes.ring()
      const next: WantedRoutes['next'] = async (signal) => {
        await changes.wait(signal)
        signal.throwIfAborted()
      }
      const wanted = { next, newest: () => ranges.filter((_, other) => other !== i), own: () => ranges.slice(i, i + 1) }
      return vxlan.run({ clock: realClock, log: noLog, exec }, wanted, stop.signal)
    })
    const answer = async () => (await endExecs[0]?.run(process.execPath, ['-e', clientProgram, '10.244.2.1', '10.244.1.1']))?.stdout.trim()
    await until('the pods reach each other', async () => (await answer()) === 'ECONNREFUSED')
    stop.abort()
    await Promise.all(running)
  } finally {
    for (const name of places) execFileSync('ip', ['netns', 'del', name])
  }
})
