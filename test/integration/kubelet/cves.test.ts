/** Holes that Kubernetes' kubelet had in its HTTP ports (docs/cves.md), on real sockets. */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { kubeletConfig } from '#kubelet/core/config'
import type { KubeletView } from '#kubelet/core/kubeletView'
import { createReadOnlyServer } from '#kubelet/server/kubeletServer'
import { createHealthPort } from '#main/component/kubelet/healthPort'
import { freePort } from '#main/localCluster/freePort'
import { createPrometheusMetrics } from '#main/prometheus'

function ask(port: number, method: string, path: string): Promise<{ readonly code: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk) => (body += chunk))
      response.on('end', () => resolve({ code: response.statusCode ?? 0, body }))
    })
    request.on('error', reject).end()
  })
}

async function withReadOnlyPort(use: (port: number, checkpoints: string[]) => Promise<void>): Promise<void> {
  const checkpoints: string[] = []
  const runtime = { name: 'test', listContainers: async () => [], checkpointContainer: async (_id: string, place: string) => void checkpoints.push(place) }
  const config = kubeletConfig({ nodeName: 'n1' })
  const parts = { config, runtime, pods: () => [], pod: () => undefined, podStatus: () => undefined, context: () => undefined, probeMetrics: () => [] }
  const view = { ...parts, latestLoopEntryMs: () => undefined } as unknown as KubeletView
  const metrics = createPrometheusMetrics()
  const deps = { view, clock: new VirtualClock(0), log: noLog, metrics, metricFamilies: () => metrics.families() }
  const server = createReadOnlyServer(deps, { address: '127.0.0.1', port: 0 })
  const stop = new AbortController()
  const running = server.run(stop.signal)
  try {
    await use(await server.listening, checkpoints)
  } finally {
    stop.abort()
    await running
  }
}

test('KUB-17 CVE-2019-11248 the port of the health checks serves nothing else, profiles least of all', async () => {
  const port = await freePort()
  const stop = new AbortController()
  const running = createHealthPort('127.0.0.1', port, () => undefined).run(stop.signal)
  try {
    assert.deepEqual(await ask(port, 'GET', '/healthz'), { code: 200, body: 'ok' })
    for (const path of [
      '/debug/pprof',
      '/debug/pprof/',
      '/debug/pprof/profile?seconds=1',
      '/debug/pprof/heap',
      '/debug/flags/v',
      '/metrics',
      '/pods',
      '/configz',
      '/healthz/../pods',
      '/',
    ])
      assert.equal((await ask(port, 'GET', path)).code, 404, path)
  } finally {
    stop.abort()
    await running
  }
})

test('KUB-24 CVE-2025-0426 the read-only port makes no checkpoints', async () => {
  await withReadOnlyPort(async (port, checkpoints) => {
    for (const method of ['POST', 'GET', 'PUT'])
      for (const path of ['/checkpoint/a/b/c', '/checkpoint/a/b/c/', '//checkpoint/a/b/c', '/pods/../checkpoint/a/b/c']) {
        const { code } = await ask(port, method, path)
        assert.ok(code === 404 || code === 405 || code === 400, `${method} ${path}: ${code}`)
      }
    for (const path of ['/run/a/b/c', '/exec/a/b/c', '/attach/a/b/c', '/portForward/a/b', '/containerLogs/a/b/c', '/logs/', '/debug/pprof/heap'])
      assert.equal((await ask(port, 'POST', path)).code, 405, path)
    assert.deepEqual(checkpoints, [])
  })
})

test('KUB-17 CVE-2020-8551 paths and methods of a client’s choice make no series of metrics', { timeout: 60_000 }, async () => {
  await withReadOnlyPort(async (port) => {
    const lines = async () => (await ask(port, 'GET', '/metrics')).body.split('\n').length
    const round = async (from: number) => {
      for (let index = from; index < from + 200; index++) {
        for (const path of [`/path-${index}`, `/pods/${index}`, `/stats/${index}/a`, `/metrics/${index}`, `/logs/${index}`, `/healthz/${index}`])
          await ask(port, 'GET', path)
        await ask(port, ['PROPFIND', 'REPORT', 'MKCOL', 'LOCK', 'SEARCH'][index % 5] ?? 'GET', '/pods')
      }
    }
    await lines()
    await round(0)
    const before = await lines()
    await round(10_000)
    assert.ok((await lines()) - before <= 5, `${before} lines became ${await lines()}`)
  })
})
