/** `skiff apiserver` as a process, for end-to-end tests: started with kube-apiserver's flags, and ended by the test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { kubectlVersion, skiffBin } from './localCluster.ts'

/** Why it cannot be started and talked to here; false when it can. */
export const obstacleToApiServer: string | false = !fs.existsSync(path.resolve(import.meta.dirname, '../../../dist/skiff.mjs'))
  ? 'needs a build: make build'
  : kubectlVersion()
    ? false
    : 'needs kubectl'

export interface ApiServerProcess {
  readonly port: number
  /** Ends it, and waits for that: its exit code, null when a signal did it. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
}

/** Resolves once it serves, on a free port. @throws Error with what it said when it ends before */
export async function startApiServer(flags: readonly string[]): Promise<ApiServerProcess> {
  const child = spawn(process.execPath, [skiffBin, 'apiserver', '--secure-port=0', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] })
  const port = await portOf(child)
  return {
    port,
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal)
        await once(child, 'exit')
      }
      return child.exitCode
    },
  }
}

/** Later output is read and dropped, so that the pipe does not fill. */
function portOf(child: ChildProcess): Promise<number> {
  let text = ''
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', (chunk) => {
      if (text.length < 100_000) text += chunk
      const found = /Serving securely.*127\.0\.0\.1:(\d+)/.exec(text)
      if (found) resolve(Number(found[1]))
    })
    child.once('exit', () => reject(new Error(`the server ended: ${text}`)))
  })
}
