/**
 * Starts a program as a child of a node's process 1 (L5), which reaps it. nsenter has to fork to enter a pid namespace; were it the parent, then stopping the
 * program would stop nsenter too, for good, and nothing would reap the program when it ends. So nsenter starts a shell, which starts the program and ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { orAborted } from '#base/orAborted'
import { readTextIfExists } from '#host/files'
import { childrenOf, commandOf, isRunning, type ProcessRef, signalIfThere, startTimeOf, waitForEnd } from '#host/processes'
import { enterVnode } from '../vnode/vnode.ts'
import { ForeignProcess } from './foreignProcess.ts'

/** Its standard input is descriptor 3, which ends when we do; its output goes to descriptor 4. The shell prints the pid that it has in the node. */
const launch = '"$@" <&3 >&4 2>&4 3<&- 4>&- & echo $!'
const launchTimeoutMs = 5000
const killedWithinMs = 2000

/** A running program of a node. Its standard input closes when this process ends. */
export class VnodeChild extends ForeignProcess {
  readonly #control: Socket

  constructor(ref: ProcessRef, control: Socket) {
    super(ref)
    this.#control = control
  }

  /** Closes its standard input; kills it when it has not ended after `graceMs`. @throws Error when even that does not end it, as in a frozen cgroup */
  async end(ended: Promise<unknown>, graceMs: number, clock: Clock): Promise<void> {
    this.#control.end()
    const late = clock.timer(graceMs, () => void killIfRunning(this.ref))
    try {
      await within(clock, graceMs + killedWithinMs, ended, () => new Error(`process ${this.pid} of the node does not end, not even by SIGKILL`))
    } finally {
      late.cancel()
    }
  }
}

interface Launch {
  /** Open for appending. */
  readonly log: number
  readonly clock: Clock
  /** Words that run a program inside the node. */
  readonly enter?: readonly string[]
}

/** @throws Error when the node does not run, the program cannot be started, or the node does not answer in time */
export async function startInVnode(init: ProcessRef, words: readonly string[], { log, clock, enter = enterVnode(init) }: Launch): Promise<VnodeChild> {
  const [program = '', ...rest] = [...enter, 'sh', '-c', launch, 'sh', ...words]
  const launcher = spawn(program, rest, { stdio: ['ignore', 'pipe', log, 'pipe', log], cwd: '/' })
  const control = launcher.stdio[3] as Socket
  control.on('error', () => {})
  control.resume()
  const late = () => new Error(`the node did not start ${words[0]} within ${launchTimeoutMs / 1000} s`)
  try {
    const launched = Promise.all([text(launcher.stdout as NodeJS.ReadableStream), once(launcher, 'exit')])
    const [printed, [code, signal]] = await within(clock, launchTimeoutMs, launched, late)
    const pidInNode = /^\d+$/m.exec(printed)?.[0]
    if (code !== 0 || pidInNode === undefined) throw new Error(`the launcher in the node ended with ${signal ?? `code ${code}`}`)
    const child = new VnodeChild(await childNumbered(init, pidInNode), control)
    void child.follow(clock)
    return child
  } catch (error) {
    control.destroy()
    await abandon(launcher)
    throw error
  }
}

/** Kills a launcher with the shell that it started in the node, which holds the other end of the pipe, and waits for neither. */
async function abandon(launcher: ChildProcess): Promise<void> {
  launcher.stdout?.destroy()
  if (launcher.pid === undefined || launcher.exitCode !== null || launcher.signalCode !== null) return
  for (const pid of await childrenOf(launcher.pid)) signalIfThere(pid, 'SIGKILL')
  launcher.kill('SIGKILL')
  launcher.unref()
}

/** @throws what `late` makes when `work` takes longer than `ms` */
async function within<T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  using limit = deadlineScope({ clock, ms, reason: late })
  return await orAborted(work, limit.signal)
}

/** The child of a node's process 1 that has this pid in the node. One that has ended already is no error: its pid is 0, which never runs. */
async function childNumbered(init: ProcessRef, pidInNode: string): Promise<ProcessRef> {
  for (const pid of await childrenOf(init.pid)) {
    const status = (await readTextIfExists(`/proc/${pid}/status`).catch(() => undefined)) ?? ''
    const startTime = /^NSpid:.*\s(\d+)$/m.exec(status)?.[1] === pidInNode ? await startTimeOf(pid) : undefined
    if (startTime !== undefined) return { pid, startTime }
  }
  return { pid: 0, startTime: '' }
}

/** Ends the children of a node's process 1 that an earlier server started and that run `word`: at first they end by themselves. */
export async function endFormer(init: ProcessRef, word: string, graceMs: number, clock: Clock): Promise<void> {
  for (const pid of await childrenOf(init.pid)) {
    if (!(await commandOf(pid)).includes(word)) continue
    const startTime = await startTimeOf(pid)
    if (startTime === undefined) continue
    const ref = { pid, startTime }
    if (await waitForEnd(ref, graceMs, clock)) continue
    await killIfRunning(ref)
    await waitForEnd(ref, killedWithinMs, clock)
  }
}

async function killIfRunning(ref: ProcessRef): Promise<void> {
  if (await isRunning(ref)) signalIfThere(ref.pid, 'SIGKILL')
}
