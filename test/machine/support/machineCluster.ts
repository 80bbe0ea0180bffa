/** A cluster with real nodes on the emulated machine, which is 10 to 20 times slower than the host: everything waits by minutes. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { eventually, LocalCluster, skiffBin } from '../../e2e/support/localCluster.ts'
import { writeWebImage } from '../../e2e/support/webImage.ts'

export const slowMs = 300_000
export const image = 'web-app:1.0'

/** Starts it in `directory`, with an image of busybox on each node. */
export async function startOnMachine(name: string, directory: string, flags: readonly string[]): Promise<LocalCluster> {
  fs.mkdirSync(directory, { recursive: true })
  const cluster = LocalCluster.at(name, directory)
  await command(cluster, 'up', name, ...flags)
  await command(cluster, 'image', 'load', '--name', name, ...(await writeWebImage(directory, ['1.0'])))
  return cluster
}

/** The command line's output; fails with its error. */
export async function command(cluster: LocalCluster, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.run(process.execPath, [skiffBin, ...words], slowMs)
  assert.equal(code, 0, stderr)
  return stdout
}

type Fields = Readonly<Record<string, unknown>>
interface PodOptions {
  readonly script?: string
  readonly resources?: Fields
  readonly securityContext?: Fields
  readonly spec?: Fields
}

/** A pod with one container; the shell's script ends it. */
export function podOf(name: string, { script = 'trap "exit 0" TERM; sleep 100000 & wait', resources, securityContext, spec }: PodOptions = {}): object {
  const container = { name: 'main', image, imagePullPolicy: 'Never', command: ['sh', '-c', script], resources, securityContext }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers: [container], ...spec },
  }
}

export async function create(cluster: LocalCluster, ...objects: object[]): Promise<void> {
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), ['create', '-f', '-'])
}

export async function untilReady(cluster: LocalCluster, ...pods: string[]): Promise<void> {
  await cluster.must(['wait', '--for=condition=Ready', '--timeout=240s', ...pods.map((pod) => `pod/${pod}`)], slowMs)
}

/** A field of a pod, once it is there and matches. */
export function untilField(cluster: LocalCluster, pod: string, jsonPath: string, pattern: RegExp): Promise<string> {
  return eventually(
    `${jsonPath} of ${pod} is ${pattern}`,
    slowMs,
    () => cluster.must(['get', 'pod', pod, '-o', `jsonpath=${jsonPath}`], slowMs),
    (text) => pattern.test(text),
  )
}

/** The directory of a pod's cgroup, below which its containers have theirs. */
export async function cgroupOf(cluster: LocalCluster, pod: string): Promise<string> {
  const uid = await cluster.must(['get', 'pod', pod, '-o', 'jsonpath={.metadata.uid}'], slowMs)
  const found = fs.readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' }).find((directory) => path.basename(directory) === `pod${uid}`)
  assert.ok(found, `no cgroup of pod ${uid}`)
  return path.join('/sys/fs/cgroup', found)
}
