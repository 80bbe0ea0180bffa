/** `skiff kubelet` without an API server: it runs the pods of a directory and of a URL on a containerd of its own, and serves their status. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { connectCri } from '#grpc/criClient'
import { createKubeletHost } from '#kubelet/core/host'
import { freePort } from '#main/localCluster/freePort'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from './kubeletContainerd.ts'
import { eventually, skiffBin } from './support/localCluster.ts'

const isBuilt = fs.existsSync(path.resolve(import.meta.dirname, '../../dist/skiff.mjs'))
const skip = (isBuilt ? await missingPrerequisite() : 'needs a build: make build') ?? false
const withinMs = 60_000

let containerd: TestContainerd
let kubelet: ChildProcess
let manifests: http.Server
let port: number
let log = ''
const at = (name: string) => path.join(containerd.directory, name)

const manifest = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: busybox, imagePullPolicy: 'Never', command: ['sleep', '3600'] }] },
})

/** A request without both values of the header gets no manifest. */
function serveManifest(pod: object): http.Server {
  return http.createServer((request, response) => {
    response.statusCode = request.headers['x-who'] === 'node, n1' ? 200 : 403
    response.end(JSON.stringify(pod))
  })
}

before(async () => {
  if (skip) return
  containerd = await startContainerd()
  manifests = serveManifest(manifest('from-url')).listen(0, '127.0.0.1')
  await once(manifests, 'listening')
  port = await freePort()
  fs.mkdirSync(at('manifests'))
  fs.writeFileSync(at('manifests/a.json'), JSON.stringify(manifest('from-file')))
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    cgroupRoot: containerd.cgroupRoot,
    // The host's packet filter is not the test's to change.
    makeIPTablesUtilChains: false,
    podLogsDir: at('logs'),
    logging: { format: 'json' },
    evictionHard: { 'memory.available': '1Mi' },
    authentication: { webhook: { enabled: false }, anonymous: { enabled: true } },
    authorization: { mode: 'AlwaysAllow' },
  }
  fs.writeFileSync(at('kubelet.json'), JSON.stringify(configuration))
  const args = [
    `--config=${at('kubelet.json')}`,
    `--container-runtime-endpoint=unix://${containerd.socket}`,
    `--cert-dir=${at('pki')}`,
    `--root-dir=${at('kubelet')}`,
    '--hostname-override=n1',
    '--node-ip=127.0.0.1',
    '--address=127.0.0.1',
    `--port=${port}`,
    '--healthz-port=0',
    `--pod-manifest-path=${at('manifests')}`,
    `--manifest-url=http://127.0.0.1:${(manifests.address() as AddressInfo).port}/`,
    '--manifest-url-header=X-Who:node,X-Who:n1',
  ]
  kubelet = spawn(process.execPath, [skiffBin, 'kubelet', ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  kubelet.stderr?.on('data', (chunk) => {
    log += chunk
  })
})

after(async () => {
  if (skip) return
  kubelet.kill('SIGTERM')
  if (kubelet.exitCode === null) await once(kubelet, 'exit')
  manifests.close()
  const host = await createKubeletHost()
  await containerd.stop()
  await host.cgroups.remove(containerd.cgroupRoot)
})

function running(): Promise<Pod[]> {
  return new Promise((resolve, reject) => {
    const request = https.get(`https://127.0.0.1:${port}/pods`, { agent: false, rejectUnauthorized: false }, (response) => {
      json(response).then((list) => resolve((list as { items: Pod[] }).items.filter(({ status }) => status.phase === 'Running')), reject)
    })
    request.on('error', reject)
  })
}

const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name).sort()
const nowRunning = (...wanted: string[]) =>
  eventually(
    `${wanted.join()} run: ${log}`,
    withinMs,
    () => running().catch(() => []),
    (pods) => names(pods).join() === wanted.join(),
  )

test('KUB-16 without an API server the pods of a directory and of a URL run, and /pods lists them', { skip, timeout: 120_000 }, async () => {
  const pods = await nowRunning('from-file-n1', 'from-url-n1')
  assert.ok(pods.every(({ status }) => status.containerStatuses?.[0]?.ready === true && status.podIP !== undefined))
  assert.ok(log.split('\n').every((line) => line === '' || typeof JSON.parse(line) === 'object'))
})

test('KUB-16 without an API server a pod ends with its file, and its sandbox is removed', { skip, timeout: 120_000 }, async () => {
  fs.rmSync(at('manifests/a.json'))
  await nowRunning('from-url-n1')
  const cri = connectCri(containerd.socket)
  try {
    const sandboxes = () => cri.call('RuntimeService', 'ListPodSandbox', {}, { timeoutMs: 5000 }) as Promise<{ items: readonly unknown[] }>
    await eventually('one sandbox is left', withinMs, sandboxes, ({ items }) => items.length === 1)
  } finally {
    cri.close()
  }
})
