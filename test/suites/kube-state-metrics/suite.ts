/** kube-state-metrics over a simulated cluster. `run` builds it into WORK/bin; its telemetry says how its lists and watches went. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { objects, samples } from './objects.ts'

const execute = promisify(execFile)
const { KUBECONFIG = '', WORK = '' } = process.env
const program = path.join(WORK, 'bin/kube-state-metrics')
const withinMs = 60_000

async function kubectl(args: readonly string[], input?: string): Promise<void> {
  const running = execute('kubectl', args)
  if (input !== undefined) running.child.stdin?.end(input)
  await running
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

interface Sample {
  readonly family: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

async function scrape(port: number): Promise<Sample[]> {
  const text = await fetch(`http://127.0.0.1:${port}/metrics`).then(
    (response) => response.text(),
    () => '',
  )
  return text.split('\n').flatMap((line) => {
    const [, family, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
    if (family === undefined) return []
    return [{ family, labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, text]) => [name, text])), value: Number(value) }]
  })
}

/** Asks until nothing is missing. */
async function until(what: string, missing: () => Promise<readonly string[]>): Promise<void> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const left = await missing()
    if (left.length === 0) {
      console.log(`ok ${what}`)
      return
    }
    if (Date.now() > deadline) assert.fail(`${what}: missing ${left.join('; ')}`)
    await sleep(200)
  }
}

const matches = (all: readonly Sample[], family: string, labels: Readonly<Record<string, string>>, value?: number) =>
  all.some(
    (one) => one.family === family && (value === undefined || one.value === value) && Object.entries(labels).every(([name, text]) => one.labels[name] === text),
  )

/** The resources that it watches by default, as its help lists them. */
async function defaultResources(): Promise<string[]> {
  const { stdout } = await execute(program, ['--help'])
  const [, list = ''] = /--resources .*Defaults to "([^"]+)"/.exec(stdout) ?? []
  const resources = list.split(',').filter(Boolean)
  assert.ok(resources.length >= 25, `the help lists the default resources: ${stdout.slice(0, 2000)}`)
  return resources
}

const resources = await defaultResources()
await kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
const [port, telemetryPort] = [await freePort(), await freePort()]
const addresses = ['--host=127.0.0.1', `--port=${port}`, '--telemetry-host=127.0.0.1', `--telemetry-port=${telemetryPort}`]
const server = spawn(program, [`--kubeconfig=${KUBECONFIG}`, ...addresses], { stdio: ['ignore', 'inherit', 'inherit'] })
try {
  const counted = async (family: string, result: string) => (await scrape(telemetryPort)).filter((one) => one.family === family && one.labels.result === result)
  // Its client reads the first state by a watch, too (WatchList); a server without such watches would count as many lists.
  await until(`all ${resources.length} default resources are watched`, async () => {
    const watched = await counted('kube_state_metrics_watch_total', 'success')
    return watched.length >= resources.length ? [] : [`${watched.length} watches`]
  })
  await until('the main families have the values of the objects', async () => {
    const all = await scrape(port)
    return samples.filter(([family, labels, value]) => !matches(all, family, labels, value)).map(([family, labels]) => `${family} ${JSON.stringify(labels)}`)
  })
  await kubectl(['scale', 'deployment/web', '--replicas=3'])
  await kubectl(['delete', 'configmap', 'settings'])
  await until('watches deliver changes', async () => {
    const all = await scrape(port)
    const isScaled = matches(all, 'kube_deployment_status_replicas_available', { deployment: 'web' }, 3)
    return [...(isScaled ? [] : ['three replicas']), ...(matches(all, 'kube_configmap_info', { configmap: 'settings' }) ? ['the deletion'] : [])]
  })
  for (const what of ['list', 'watch']) {
    const failed = (await counted(`kube_state_metrics_${what}_total`, 'error')).filter(({ value }) => value > 0)
    assert.deepEqual(failed, [], `${what} errors`)
    console.log(`ok no ${what} failed`)
  }
} finally {
  server.kill()
  await once(server, 'exit')
}
