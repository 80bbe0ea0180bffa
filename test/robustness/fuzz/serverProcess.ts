/** Starts the fuzzed server, watches how much memory it takes, and stops it: an earlier exit is a crash. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import { sourceProgram } from '../../support/sourceProgram.ts'

export interface ServerProcess {
  readonly port: number
  readonly ca: string
  readonly client: { readonly cert: string; readonly key: string }
  readonly token: string
  /** The most memory that was ever resident, in bytes. */
  peakBytes(): number
  /** What it logged as errors. */
  errors(): string
  /** Fails when the server does not exit cleanly. */
  stop(): Promise<void>
  /** For tests that failed: at once. */
  kill(): void
}

/** `heapMegabytes`: beyond, the process dies. */
export async function startServerProcess(heapMegabytes: number, { requestTimeoutMs = 60_000, idleTimeoutMs = 60_000 } = {}): Promise<ServerProcess> {
  const file = join(import.meta.dirname, 'fuzzServer.ts')
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMegabytes}`, ...sourceProgram(file), String(requestTimeoutMs), String(idleTimeoutMs)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (errors.length < 100_000) errors += text
  })
  const first = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), exited.then(() => assert.fail(`the server did not start: ${errors}`))])
  const ready = JSON.parse(first[0] as string) as Pick<ServerProcess, 'port' | 'ca' | 'client' | 'token'>
  return {
    ...ready,
    peakBytes: () => Number(/VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024,
    errors: () => errors,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      child.stdin.end()
      const [code, signal] = await exited
      assert.deepEqual([code, signal], [0, null], `the server died: ${errors.slice(-4_000)}`)
    },
  }
}
