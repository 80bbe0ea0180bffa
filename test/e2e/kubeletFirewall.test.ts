/**
 * The rules of a kubelet on a machine of its own, in network namespaces: a neighbor sends packets for 127.0.0.1 to the machine, which has route_localnet
 * on (CVE-2020-8558). Needs root and nft; cleans up after itself.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { noLog } from '../../src/base/log.ts'
import { createExec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { nftObstacle } from '../../src/host/nftables.ts'
import { createLoopbackFirewall } from '../../src/main/component/kubelet/loopbackFirewall.ts'
import { realClock } from '../../src/testing/realClock.ts'
import { until } from '../support/until.ts'

const obstacle = process.getuid?.() !== 0 ? 'needs root' : (await nftObstacle(createExec(), 'ip')) !== undefined ? 'nft does not work here' : false
const options = { skip: obstacle, timeout: 60_000 }
const machine = `skiff-fw-${process.pid}`
const neighbor = `${machine}-n`
const exec = createExec(inNetworkNamespace(machine))
let server: ReturnType<typeof spawn> | undefined

const serverProgram = `require('net').createServer((s) => s.end('open')).listen(8080, '127.0.0.1', () => console.log('ready'))`
const clientProgram = `
const s = require('net').connect({ host: '127.0.0.1', port: 8080, timeout: 1000 })
s.on('data', (d) => { console.log(String(d)); process.exit(0) })
s.on('timeout', () => { console.log('timeout'); process.exit(0) }); s.on('error', (e) => { console.log(e.code); process.exit(0) })
`
const ask = async (namespace: string) => (await createExec(inNetworkNamespace(namespace)).run(process.execPath, ['-e', clientProgram])).stdout.trim()
const hasTable = async () => (await exec.run('nft', ['list', 'tables'])).stdout.includes('skiff-kubelet')

before(async () => {
  if (obstacle) return
  for (const name of [machine, neighbor]) execFileSync('ip', ['netns', 'add', name])
  const link = [`link add m0 type veth peer name n0 netns ${neighbor}`, 'addr add 10.9.0.1/24 dev m0', 'link set m0 up', 'link set lo up']
  // The neighbor has no loopback of its own: packets for 127.0.0.1 go to the machine.
  const route = ['addr add 10.9.0.2/24 dev n0', 'link set n0 up', 'route add 127.0.0.1/32 via 10.9.0.1 src 10.9.0.2']
  execFileSync('ip', ['-n', machine, '-batch', '-'], { input: `${link.join('\n')}\n` })
  execFileSync('ip', [
    'netns',
    'exec',
    neighbor,
    'sh',
    '-c',
    'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet; ip route del local 127.0.0.1 table local; true',
  ])
  execFileSync('ip', ['-n', neighbor, '-batch', '-'], { input: `${route.join('\n')}\n` })
  await exec.run('sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet'])
  server = spawn('nsenter', [`--net=/run/netns/${machine}`, process.execPath, '-e', serverProgram], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(server.stdout as NodeJS.ReadableStream, 'data')
})
after(() => {
  if (obstacle) return
  server?.kill('SIGKILL')
  for (const name of [machine, neighbor]) execFileSync('ip', ['netns', 'del', name])
})

test('CVE-2020-8558 a neighbor does not reach 127.0.0.1 of a machine while its kubelet runs, the machine itself does', options, async () => {
  assert.equal(await ask(neighbor), 'open', 'the attack works without the rules')
  const stop = new AbortController()
  const running = createLoopbackFirewall({ exec, clock: realClock, log: noLog }).run(stop.signal)
  await until('the table is there', hasTable)
  assert.deepEqual([await ask(neighbor), await ask(machine)], ['timeout', 'open'])
  stop.abort()
  await running
  assert.equal(await hasTable(), false)
})
