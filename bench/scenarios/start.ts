/** How long a start takes: the server process from its launch to the first 200 of /readyz, on an empty and on a used store; and "skiff up" as a whole. */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import https from 'node:https'
import path from 'node:path'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import type { ServerAddress } from '../tools/http2Connection.ts'
import { addressOf, type LocalCluster, runSkiff, skiff, withCluster } from '../tools/localCluster.ts'

const repeats = 10
const probeEveryMs = 3
const deadlineMs = 20_000
const target = { atMost: 600 }

export const start: Scenario = {
  name: 'start',
  about: 'the server process, launch to ready',
  run: (context) => withCluster(context.dir, 'start', ['--runtime', 'simulated', '--nodes', '1'], (cluster) => measure(cluster, context)),
}

async function measure(cluster: LocalCluster, { progress, signal }: ScenarioContext): Promise<Measurement[]> {
  await runSkiff(cluster.home, 'stop', cluster.name, '--quiet')
  const cold: number[] = []
  const warm: number[] = []
  for (let repeat = 0; repeat < repeats; repeat++) {
    signal.throwIfAborted()
    rmSync(path.join(cluster.dir, 'store'), { recursive: true, force: true })
    cold.push(await startOnce(cluster.dir))
    warm.push(await startOnce(cluster.dir))
    progress(`start ${repeat + 1} of ${repeats}`)
  }
  return [
    { what: 'empty store, launch to /readyz 200', unit: 'ms', values: cold, target },
    { what: 'used store, launch to /readyz 200', unit: 'ms', values: warm, target },
    { what: '"skiff up" from nothing, with certificates and a ready simulated node', unit: 'ms', values: [cluster.upMs] },
  ]
}

async function startOnce(clusterDir: string): Promise<number> {
  const address = addressOf(clusterDir)
  const started = performance.now()
  const server = spawn(process.execPath, [skiff, 'server', '--cluster-dir', clusterDir], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  try {
    while (!(await isReady(address))) {
      if (server.exitCode !== null || performance.now() - started > deadlineMs) throw new Error('the server did not become ready')
      await new Promise((resolve) => setTimeout(resolve, probeEveryMs))
    }
    return performance.now() - started
  } finally {
    // Not a part of what is measured, and a store must not mind.
    server.kill('SIGKILL')
    await ended
  }
}

function isReady({ host, port, ca, cert, key }: ServerAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const request = https.get({ host, port, ca, cert, key, path: '/readyz', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.once('error', () => resolve(false))
  })
}
