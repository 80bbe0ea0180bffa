/**
 * What one kubelet costs while its pods just run: `skiff kubelet` as a process of its own, over a containerd of its own, first without pods and
 * then with as many as a node takes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createKubeletHost } from '#kubelet/core/host'
import { freePort } from '#main/localCluster/freePort'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from '../../test/e2e/kubeletContainerd.ts'
import { inParallel } from '../cluster/bareCluster.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { type ApiServerAlone, withApiServer } from '../tools/apiServerAlone.ts'
import { costAtRest } from '../tools/costAtRest.ts'
import { createLoadClient } from '../tools/load.ts'
import { skiff } from '../tools/localCluster.ts'
import { podManifest, podsPath, removeByApi, watchPods } from '../tools/realPods.ts'
import { rounded } from '../tools/statistics.ts'

const pods = 110
const nodeName = 'bench-kubelet'
const registerWithinMs = 30_000
const missing = await missingPrerequisite()

export const kubelet: Scenario = {
  name: 'kubelet',
  about: `one kubelet as a process of its own, without pods and with ${pods}`,
  skipped: () => missing,
  run: async (context) => {
    const containerd = await startContainerd()
    try {
      const flags = ['--disable-admission-plugins=ServiceAccount']
      return await withApiServer(context.dir, 'kubelet', flags, (server) =>
        withKubelet(server, containerd, context, (child) => measure(server, child, context)),
      )
    } finally {
      await containerd.stop()
      await (await createKubeletHost()).cgroups.remove(containerd.cgroupRoot)
    }
  },
}

async function withKubelet<T>(
  server: ApiServerAlone,
  containerd: TestContainerd,
  context: ScenarioContext,
  run: (child: ChildProcess) => Promise<T>,
): Promise<T> {
  const dir = path.join(context.dir, 'kubelet-process')
  mkdirSync(dir, { mode: 0o700 })
  const child = spawn(process.execPath, [skiff, ...(await kubeletArgs(server, containerd, dir))], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (piece) => {
    if (said.length < 10_000) said += piece
  })
  try {
    return await run(child)
  } catch (error) {
    throw new Error(`${(error as Error).message}; the kubelet said: ${said}`, { cause: error })
  } finally {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit')
    rmSync(dir, { recursive: true, force: true })
  }
}

async function kubeletArgs({ address }: ApiServerAlone, containerd: TestContainerd, dir: string): Promise<string[]> {
  const base64 = (text: string | Buffer | undefined) => Buffer.from(text ?? '').toString('base64')
  const cluster = { server: `https://${address.host}:${address.port}`, 'certificate-authority-data': base64(address.ca) }
  const user = { 'client-certificate-data': base64(address.cert), 'client-key-data': base64(address.key) }
  const kubeconfig = {
    'current-context': 'bench',
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
  }
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    // As many starts at once as upstream's clients allow would take a minute: this is about what comes after.
    kubeAPIQPS: 500,
    kubeAPIBurst: 1000,
    maxPods: pods,
    address: '127.0.0.1',
    port: await freePort(),
    healthzPort: 0,
    containerRuntimeEndpoint: `unix://${containerd.socket}`,
    cgroupRoot: containerd.cgroupRoot,
    podLogsDir: path.join(containerd.directory, 'logs'),
    evictionHard: { 'memory.available': '1Mi' },
    imageGCHighThresholdPercent: 100,
  }
  const write = (name: string, content: object) => {
    const file = path.join(dir, name)
    writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
    return file
  }
  return [
    'kubelet',
    `--config=${write('kubelet.json', configuration)}`,
    `--kubeconfig=${write('kubeconfig.json', kubeconfig)}`,
    `--cert-dir=${path.join(dir, 'pki')}`,
    `--root-dir=${path.join(containerd.directory, 'kubelet')}`,
    `--hostname-override=${nodeName}`,
    '--node-ip=127.0.0.1',
  ]
}

async function measure({ address }: ApiServerAlone, child: ChildProcess, { signal, progress }: ScenarioContext): Promise<Measurement[]> {
  const client = await createLoadClient(address)
  try {
    await registered(async () => (await client.ask('GET', '/api/v1/nodes')).body.includes(`"${nodeName}"`))
    const pid = child.pid ?? 0
    progress('without pods')
    const empty = await costAtRest(pid, signal)
    const watch = await watchPods(client)
    const name = (index: number) => `pod-${index}`
    await inParallel(pods, async (index) => {
      await client.ask(
        'POST',
        podsPath,
        podManifest(name(index), { image: busybox, command: ['sleep', '3600'] }, { nodeName, automountServiceAccountToken: false }),
      )
      await watch.running(name(index))
    })
    progress(`with ${pods} pods`)
    const full = await costAtRest(pid, signal)
    await inParallel(pods, (index) => removeByApi(client, watch, name(index)))
    return [
      { what: 'without pods: memory (PSS)', unit: 'MB', values: [empty.pssMB], note: `resident ${rounded(empty.rssMB)} MB` },
      { what: 'without pods: CPU of one core', unit: '%', values: [empty.cpuPercent] },
      { what: `with ${pods} pods: memory (PSS)`, unit: 'MB', values: [full.pssMB], target: { atMost: 60 }, note: `resident ${rounded(full.rssMB)} MB` },
      { what: `with ${pods} pods: CPU of one core`, unit: '%', values: [full.cpuPercent], target: { atMost: 3 } },
    ]
  } finally {
    client.close()
  }
}

async function registered(isThere: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + registerWithinMs; performance.now() < deadline; await sleep(100)) if (await isThere()) return
  throw new Error('the node did not register')
}
