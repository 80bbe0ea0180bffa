/**
 * Runs jobs in a thread of their own (L3), so that the main thread keeps answering. The thread lives as long as there are jobs; one at a time, so that it takes no
 * more than one processor.
 */
import { parentPort, Worker } from 'node:worker_threads'

interface Waiting<Outcome> {
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

interface Message<Content> {
  readonly id: number
  readonly content: Content
}

export class JobThread<Job, Outcome> {
  readonly #start: () => Worker
  #worker: Worker | undefined
  #lastId = 0
  readonly #waiting = new Map<number, Waiting<Outcome>>()

  /** @param start makes the thread, which calls {@link serveJobs} */
  constructor(start: () => Worker) {
    this.#start = start
  }

  /** Rejects when the thread ends by an error. */
  run(job: Job): Promise<Outcome> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#worker ??= this.#listenTo(this.#start())
      this.#worker.postMessage({ id, content: job } satisfies Message<Job>)
    })
  }

  #listenTo(worker: Worker): Worker {
    worker.on('message', (message: Message<Outcome>) => this.#finish(worker, message))
    worker.on('error', (error: Error) => this.#fail(worker, error))
    worker.on('exit', () => this.#fail(worker, new Error('the thread ended before its work')))
    return worker
  }

  #finish(worker: Worker, { id, content }: Message<Outcome>): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    waiting?.resolve(content)
    if (this.#waiting.size > 0 || this.#worker !== worker) return
    this.#worker = undefined
    void worker.terminate()
  }

  /** Rejects all waiting calls with the error that ended the thread; the next call starts a new one. */
  #fail(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

/** In the thread: answers each job with what `work` makes of it. An error of `work` ends the thread. */
export function serveJobs<Job, Outcome>(work: (job: Job) => Outcome): void {
  parentPort?.on('message', ({ id, content }: Message<Job>) => parentPort?.postMessage({ id, content: work(content) } satisfies Message<Outcome>))
}

/**
 * A build puts the worker next to the bundle. Sources run through tsx, whose loader Node 20 does not load into threads automatically.
 * @param base the URL of the file that `source` is relative to
 */
export function startWorker(base: string, { source, bundle }: { readonly source: string; readonly bundle: string }): Worker {
  if (!base.endsWith('.ts')) return new Worker(new URL(bundle, base))
  const [loader, file] = [import.meta.resolve('tsx/esm/api'), new URL(source, base).href].map((url) => JSON.stringify(url))
  return new Worker(`import(${loader}).then(({ register }) => { register(); return import(${file}) })`, { eval: true, execArgv: [] })
}
