/** A program of the suite in the background, with its log. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'

const { WORK = '' } = process.env
const shown = { lines: 40, characters: 300 }

export class Program {
  readonly name: string
  readonly #child: ChildProcess
  readonly #log: string

  /** @param name of the program's log @param program its path, or its name in WORK/bin */
  constructor(name: string, program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.name = name
    this.#log = path.join(WORK, `${name}.log`)
    const log = fs.openSync(this.#log, 'w')
    this.#child = spawn(path.resolve(WORK, 'bin', program), args, { cwd: WORK, env: { ...process.env, ...env }, stdio: ['ignore', log, log] })
    this.#child.on('error', (error) => fs.appendFileSync(this.#log, `${error}\n`))
    fs.closeSync(log)
  }

  get log(): string {
    return fs.readFileSync(this.#log, 'utf8')
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** The last lines of its log, and how it ended. */
  report(): string {
    const state = this.hasEnded ? `ended with ${this.#child.exitCode ?? this.#child.signalCode}` : 'runs'
    const lines = this.log.split('\n').slice(-shown.lines)
    return `${this.name} ${state}\n${lines.map((line) => line.slice(0, shown.characters)).join('\n')}`
  }

  async stop(): Promise<void> {
    if (this.hasEnded || this.#child.pid === undefined) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

/** Runs the suite's steps while the programs run; shows the end of each log when a step fails. */
export async function whileRunning(programs: readonly Program[], run: () => Promise<void>): Promise<void> {
  try {
    await run()
    const ended = programs.filter((program) => program.hasEnded)
    if (ended.length > 0) throw new Error(`${ended.map(({ name }) => name).join(', ')} ended before the suite`)
  } catch (error) {
    for (const program of programs) console.error(program.report())
    throw error
  } finally {
    await Promise.all(programs.map((program) => program.stop()))
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
