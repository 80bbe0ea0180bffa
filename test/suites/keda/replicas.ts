/** Follows how many replicas the Deployments have, by one watch. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { until } from '../support/kubectl.ts'

const line = String.raw`{.metadata.name} {.status.readyReplicas}{"\n"}`
/** The HorizontalPodAutoscaler looks every 15 seconds; a schedule waits for the next minutes. */
const withinMs = 240_000

export class Replicas {
  readonly #watch: ChildProcess
  #text = ''

  constructor() {
    this.#watch = spawn('kubectl', ['get', 'deployments', '--watch', '-o', `jsonpath=${line}`], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#watch.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text
    })
  }

  /** The numbers of ready replicas that the Deployment has had, without repetitions. */
  historyOf(name: string): number[] {
    const numbers = this.#text
      .split('\n')
      .filter((one) => one.startsWith(`${name} `))
      .map((one) => Number(one.slice(name.length + 1)))
    return numbers.filter((number, index) => number !== numbers[index - 1])
  }

  async until(name: string, ready: number): Promise<void> {
    await until(
      `${name} has ${ready} ready replicas`,
      async () => this.historyOf(name),
      (history) => history.at(-1) === ready,
      withinMs,
    )
  }

  async stop(): Promise<void> {
    if (this.#watch.exitCode !== null) return
    const ended = once(this.#watch, 'exit')
    this.#watch.kill()
    await ended
  }
}
