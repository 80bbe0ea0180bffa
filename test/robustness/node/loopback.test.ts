/** What listens on a node's 127.0.0.1 is not for its neighbors (CVE-2020-8558), tried between two network namespaces of the test's own. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { loopbackRules } from '#main/vnode/files'

const isPossible = process.getuid?.() === 0 && ['ip', 'nft'].every((program) => spawnSync(program, ['-V']).error === undefined)
const skip = isPossible ? false : 'needs root, ip and nft'
const [node, neighbor] = [`skiff-lo-${process.pid}-n`, `skiff-lo-${process.pid}-a`]
const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe' })
const ip = (namespace: string, words: string) => run('ip', '-n', namespace, ...words.split(' '))
const routesLocalnet = (namespace: string) => run('ip', 'netns', 'exec', namespace, 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet')

before(() => {
  if (skip) return
  for (const name of [node, neighbor]) run('ip', 'netns', 'add', name)
  run('ip', 'link', 'add', 'eth0', 'netns', node, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', neighbor)
  ip(node, 'link set lo up')
  for (const [name, address] of [
    [node, '10.254.9.1/24'],
    [neighbor, '10.254.9.2/24'],
  ] as const) {
    ip(name, `addr add ${address} dev eth0`)
    ip(name, 'link set eth0 up')
    routesLocalnet(name)
  }
  // The neighbor's own loopback is down: its packets to 127.0.0.1 go to the node.
  ip(neighbor, 'route add 127.0.0.1/32 via 10.254.9.1 dev eth0 src 10.254.9.2')
})
after(() => {
  if (!skip) for (const name of [node, neighbor]) spawnSync('ip', ['netns', 'del', name])
})

const connect = `const s = require('net').connect({ port: +process.argv[1], host: '127.0.0.1', localAddress: process.argv[2] || undefined, timeout: 1500 })
s.on('connect', () => { console.log('reached'); process.exit() })
for (const end of ['timeout', 'error']) s.on(end, () => { console.log('not reached'); process.exit() })`

/** Whether the namespace reaches the port on 127.0.0.1. */
function reach(namespace: string, port: string, from = ''): string {
  return execFileSync('ip', ['netns', 'exec', namespace, process.execPath, '-e', connect, port, from], { encoding: 'utf8' }).trim()
}

test('a neighbor does not reach a port on the loopback address of a node whose kernel routes such addresses', { skip }, async () => {
  const listen = "require('net').createServer((s) => s.end()).listen(0, '127.0.0.1', function () { console.log(this.address().port) })"
  const server = spawn('ip', ['netns', 'exec', node, process.execPath, '-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await once(server.stdout, 'data')
    const port = String(line).trim()
    // Without the rules the attack works, so that this test cannot pass for another reason.
    assert.equal(reach(neighbor, port, '10.254.9.2'), 'reached')
    execFileSync('ip', ['netns', 'exec', node, 'nft', '-f', '-'], { input: loopbackRules })
    assert.equal(reach(neighbor, port, '10.254.9.2'), 'not reached')
    assert.equal(reach(node, port), 'reached')
  } finally {
    server.kill('SIGKILL')
  }
})
