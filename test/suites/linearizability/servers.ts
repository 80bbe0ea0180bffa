/** API servers over the members, which are killed and started again on their ports. */
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiServerProcess, startApiServer } from '../../e2e/support/apiServerProcess.ts'
import type { Server } from './clients.ts'

export interface KilledServer extends Server {
  kill(): Promise<void>
  /** Resolves when it serves again; it is started as often as needed, as a supervisor does. */
  restart(): Promise<void>
}

export async function startServer(directory: string, name: string, urls: readonly string[]): Promise<KilledServer> {
  const own = [`--data-dir=${path.join(directory, name)}`, `--cert-dir=${directory}/pki`, `--etcd-servers=${urls.join(',')}`]
  const flags = [...own, '--etcd-compaction-interval=5s', '--v=0']
  let running: ApiServerProcess = await startApiServer(flags)
  const { port } = running
  const file = (part: string) => fs.readFileSync(path.join(directory, 'pki', part), 'utf8')
  const start = async () => {
    for (;;) {
      try {
        return await startApiServer([...flags, `--secure-port=${port}`])
      } catch {
        await sleep(200)
      }
    }
  }
  return {
    ...{ port, ca: file('ca.crt'), cert: file('admin.crt'), key: file('admin.key') },
    kill: async () => void (await running.end('SIGKILL')),
    restart: async () => {
      running = await start()
    },
  }
}
