/** Programs of Skiff in the namespaces of the cluster's node, as a process of that node would run. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { type LocalCluster, skiffBin } from '../../e2e/support/localCluster.ts'

export class NodePrograms {
  readonly #cluster: LocalCluster
  readonly #running: ChildProcess[] = []

  constructor(cluster: LocalCluster) {
    this.#cluster = cluster
  }

  async start(word: string, flags: readonly string[]): Promise<void> {
    const namespaces = ['-t', String(await this.#initPid()), '-m', '-p']
    this.#running.push(spawn('nsenter', [...namespaces, '--', process.execPath, skiffBin, word, ...flags], { stdio: ['ignore', 'ignore', 'inherit'] }))
  }

  /** @param directory an absolute path as the node has it */
  async makeDirectory(directory: string): Promise<void> {
    fs.mkdirSync(`/proc/${await this.#initPid()}/root${directory}`, { recursive: true })
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#running.map(stop))
  }

  async #initPid(): Promise<number> {
    const { stdout } = await this.#cluster.skiff(['status', this.#cluster.name, '-o', 'json'])
    const { pids } = JSON.parse(stdout) as { pids: { role: string; pid: number }[] }
    const pid = pids.find(({ role }) => role === 'init')?.pid
    assert.ok(pid, 'the node runs')
    return pid
  }
}

/** In the node's process namespace a program is the child of nsenter, which ends with it. */
async function stop(running: ChildProcess): Promise<void> {
  const { pid, exitCode } = running
  if (exitCode !== null) return
  const ended = once(running, 'exit')
  for (const child of fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)) process.kill(Number(child))
  await ended
}
