/**
 * The sections of the reference documents' script for debugging, against a cluster over an etcd on port 2379 whose certificates are below
 * /etc/kubernetes/pki: each prints data. The files exist in a mount namespace of the script alone.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const run = promisify(execFile)
const etcdPort = 2379
const name = 'e2e-debug'

const sections: Readonly<Record<string, string>> = {
  'Component Health': 'kubectl get componentstatus',
  'Node Status': 'kubectl get nodes -o wide; kubectl top nodes',
  'System Pods': 'kubectl get pods -n kube-system -o wide',
  'API Server Metrics': 'kubectl get --raw /metrics | grep apiserver_request_duration_seconds_count | head -20',
  'etcd Health': `ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:${etcdPort} --cert=/etc/kubernetes/pki/etcd/peer.crt --key=/etc/kubernetes/pki/etcd/peer.key --cacert=/etc/kubernetes/pki/etcd/ca.crt endpoint health`,
  'Scheduler Metrics': 'kubectl get --raw /metrics | grep scheduler_scheduling_duration_seconds',
  'Recent Events': "kubectl get events --all-namespaces --sort-by='.lastTimestamp' | tail -20",
  'Resource Usage': 'kubectl top pods --all-namespaces | head -20',
}

/** A line that each section must print. */
const expected: Readonly<Record<string, RegExp>> = {
  'Component Health': /^etcd-0 +Healthy/m,
  'Node Status': /^e2e-debug-sim-1 +\d+m +\d+%/m,
  'System Pods': /^web-\S+ +1\/1 +Running/m,
  'API Server Metrics': /^apiserver_request_duration_seconds_count\{.*\} \d+$/m,
  'etcd Health': /is healthy: successfully committed proposal/,
  'Scheduler Metrics': /^scheduler_scheduling_duration_seconds\{.*quantile="0\.99"\} [\d.]+$/m,
  'Recent Events': /^kube-system .*Successfully assigned kube-system\/web-/m,
  'Resource Usage': /^kube-system +web-\S+ +\d+m +\d+Mi/m,
}

function obstacle(): string | false {
  const before = obstacleToEtcd() || obstacleToCluster(false)
  if (before) return before
  if (process.getuid?.() !== 0) return 'needs root'
  try {
    execFileSync('sh', ['-c', 'command -v unshare && command -v etcdctl'], { stdio: 'ignore' })
  } catch {
    return 'needs unshare and etcdctl'
  }
  return false
}

const skip = obstacle()
let cluster: LocalCluster
let forwarder: net.Server | undefined

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [
    '--etcd',
    '1',
    '--runtime',
    'simulated',
    '--simulated-nodes',
    '1',
    '--kube-apiserver-arg',
    'reference-metrics=true',
  ])
})
after(async () => {
  if (skip) return
  forwarder?.close()
  await cluster.delete()
})

/** Resolves with false when another program listens there. */
function listenAs(port: number, target: number): Promise<boolean> {
  forwarder = net.createServer((socket) => {
    const onward = net.connect(target, '127.0.0.1')
    socket.pipe(onward).pipe(socket)
    for (const end of [socket, onward]) end.on('error', () => socket.destroy())
  })
  return new Promise((resolve) => {
    forwarder?.once('error', () => resolve(false))
    forwarder?.listen(port, '127.0.0.1', () => resolve(true))
  })
}

test('OBS-11 each section of the reference documents’ debug script prints data', { skip, timeout: 240_000 }, async (t) => {
  const { etcd } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as { etcd: readonly { readonly url: string }[] }
  if (!(await listenAs(etcdPort, Number(new URL(etcd[0]?.url ?? '').port)))) return t.skip(`port ${etcdPort} is taken`)
  await cluster.kubectl(['create', 'deployment', 'web', '--image=web:1.0', '-n', 'kube-system'])
  const used = async () => (await cluster.kubectl(['top', 'pods', '-A'])).stdout
  await eventually('kubectl top shows the pod', 120_000, used, (text) => expected['Resource Usage']?.test(text) ?? false)
  const pki = path.join(cluster.dir, 'home/clusters', name, 'pki/etcd')
  const upper = path.join(cluster.dir, 'etc')
  fs.mkdirSync(upper)
  const asRoot = [
    `mount -t tmpfs none ${upper} && mkdir ${upper}/up ${upper}/work`,
    `mount -t overlay overlay -o lowerdir=/etc,upperdir=${upper}/up,workdir=${upper}/work /etc`,
    'mkdir -p /etc/kubernetes/pki/etcd && cd /etc/kubernetes/pki/etcd',
    `cp ${pki}/ca.crt ca.crt && cp ${pki}/apiserver-etcd-client.crt peer.crt && cp ${pki}/apiserver-etcd-client.key peer.key`,
  ]
  const script = Object.entries(sections).map(([title, command]) => `echo "=== ${title} ==="\n${command}`)
  const { stdout } = await run('unshare', ['-m', 'bash', '-c', ['set -e', ...asRoot, 'set +e; exec 2>&1', ...script].join('\n')], { env: cluster.env })
  const printed = new Map(
    stdout
      .split('=== ')
      .slice(1)
      .map((part) => part.split(/ ===\n([\s\S]*)/) as [string, string]),
  )
  for (const [title, line] of Object.entries(expected)) assert.match(printed.get(title) ?? '', line, title)
})
