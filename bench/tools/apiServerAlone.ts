/**
 * `skiff apiserver` to measure: one process with its own store on disk, its own authorities and certificates, RBAC, and no other component. What
 * it costs is the API server's cost alone; a whole cluster is ./localCluster.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { connectHttp2, type ServerAddress } from './http2Connection.ts'
import { skiff } from './localCluster.ts'

export interface ApiServerAlone {
  readonly serverPid: number
  /** With the certificate of its administrator. */
  readonly address: ServerAddress
}

/** Runs `measure` on a fresh server with these flags more; the server and its files are gone afterwards. `command` is the bin/skiff of the build to run. */
export async function withApiServer<T>(
  parent: string,
  name: string,
  flags: readonly string[],
  measure: (server: ApiServerAlone) => Promise<T>,
  command: string = skiff,
): Promise<T> {
  const dataDir = path.join(parent, name)
  const args = [`--data-dir=${dataDir}`, '--secure-port=0', '--authorization-mode=Node,RBAC', '--v=0', ...flags]
  const child = spawn(process.execPath, [command, 'apiserver', ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    const address = addressOf(dataDir, await portOf(child))
    await ready(address)
    return await measure({ serverPid: child.pid ?? 0, address })
  } finally {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit')
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Known once it serves. What it says later is read too, and dropped. */
function portOf(child: ChildProcess): Promise<number> {
  let said: string | undefined = ''
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', (piece) => {
      if (said === undefined) return
      said += piece
      const port = /Serving securely.*127\.0\.0\.1:(\d+)/.exec(said)?.[1]
      if (port === undefined) return
      said = undefined
      resolve(Number(port))
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the API server ended with ${code}: ${said ?? ''}`)))
  })
}

/** Its port is open before its system objects are there. */
async function ready(address: ServerAddress): Promise<void> {
  const connection = await connectHttp2(address)
  try {
    for (let tries = 0; tries < 600; tries++) {
      const { status } = await connection.request({ method: 'GET', path: '/readyz', keep: false })
      if (status === 200) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error('the API server did not become ready within 30 s')
  } finally {
    connection.close()
  }
}

function addressOf(dataDir: string, port: number): ServerAddress {
  const read = (file: string) => readFileSync(path.join(dataDir, 'pki', file), 'utf8')
  return { host: '127.0.0.1', port, ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key') }
}
