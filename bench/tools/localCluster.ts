/** Clusters to measure: made by the built command line in a folder of their own, and removed without a trace. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { ServerAddress } from './http2Connection.ts'

export const skiff = path.resolve(import.meta.dirname, '../../bin/skiff')
const execute = promisify(execFile)

export interface LocalCluster {
  readonly name: string
  /** SKIFF_HOME. */
  readonly home: string
  readonly dir: string
  readonly kubeconfig: string
  readonly serverPid: number
  readonly address: ServerAddress
  /** How long "skiff up" took. */
  readonly upMs: number
}

export async function runSkiff(home: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(process.execPath, [skiff, ...args], { env: { ...process.env, SKIFF_HOME: home }, maxBuffer: 1 << 24 })
  return stdout
}

/** Runs `measure` on a fresh cluster made with these flags of "skiff up". */
export async function withCluster<T>(parent: string, name: string, flags: readonly string[], measure: (cluster: LocalCluster) => Promise<T>): Promise<T> {
  const home = path.join(parent, name)
  const kubeconfig = path.join(parent, `${name}.kubeconfig`)
  try {
    const started = performance.now()
    await runSkiff(home, 'up', name, '--quiet', '--kubeconfig', kubeconfig, ...flags)
    const upMs = performance.now() - started
    const status = JSON.parse(await runSkiff(home, 'status', name, '-o', 'json')) as { directory: string; pids: { role: string; pid: number }[] }
    const serverPid = status.pids.find(({ role }) => role === 'server')?.pid
    if (!serverPid) throw new Error('the status names no server')
    return await measure({ name, home, dir: status.directory, kubeconfig, serverPid, address: addressOf(status.directory), upMs })
  } finally {
    await runSkiff(home, 'delete', name, '--quiet').catch((error: Error) => console.error(`deleting cluster ${name}: ${error.message}`))
  }
}

/** Where a cluster's API is, and the administrator's credentials. */
export function addressOf(clusterDir: string): ServerAddress {
  const { port } = JSON.parse(readFileSync(path.join(clusterDir, 'cluster.json'), 'utf8')) as { port: number }
  const read = (file: string) => readFileSync(path.join(clusterDir, 'pki', file), 'utf8')
  return { host: '127.0.0.1', port, ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key') }
}
