/**
 * Reads long YAML bodies in a thread of their own (L3): YAML takes about a second per megabyte, during which no other request would be
 * answered. The thread lives as long as there are bodies to read; one at a time, so that it takes no more than one processor.
 */
import { Worker } from 'node:worker_threads'
import { badRequest, internalError } from '#api/machinery/status'
import type { YamlJob, YamlOutcome } from './worker.ts'

/** Shorter bodies are parsed on the main thread, in some twenty milliseconds. */
const longBytes = 32 * 1024

interface Waiting {
  resolve(json: Buffer): void
  reject(error: Error): void
}

export class YamlThread {
  #worker: Worker | undefined
  #lastId = 0
  readonly #waiting = new Map<number, Waiting>()

  /** Whether the thread should parse a body, unless it is JSON. */
  wants(bytes: Buffer): boolean {
    return bytes.length > longBytes
  }

  /** The JSON of a YAML text. @throws StatusError BadRequest for invalid YAML */
  toJson(bytes: Buffer): Promise<Buffer> {
    const job: YamlJob = { id: ++this.#lastId, text: bytes.toString('utf8') }
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject })
      this.#worker ??= this.#start()
      this.#worker.postMessage(job)
    })
  }

  #start(): Worker {
    const worker = startWorker()
    worker.on('message', (outcome: YamlOutcome) => this.#finish(worker, outcome))
    worker.on('error', (error) => this.#fail(worker, error))
    worker.on('exit', () => this.#fail(worker, new Error('the thread that reads YAML ended')))
    return worker
  }

  #finish(worker: Worker, outcome: YamlOutcome): void {
    const waiting = this.#waiting.get(outcome.id)
    this.#waiting.delete(outcome.id)
    if ('json' in outcome) waiting?.resolve(Buffer.from(outcome.json))
    else waiting?.reject(badRequest(outcome.fault))
    if (this.#waiting.size === 0 && this.#worker === worker) {
      this.#worker = undefined
      void worker.terminate()
    }
  }

  /** Rejects all waiting calls with the error that ended the thread; the next call starts a new one. */
  #fail(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    for (const { reject } of this.#waiting.values()) reject(internalError(error))
    this.#waiting.clear()
  }
}

/** A build puts the worker next to the bundle. Sources run through tsx, whose loader Node 20 does not load into threads automatically. */
function startWorker(): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./yamlWorker.mjs', import.meta.url))
  const [loader, source] = [import.meta.resolve('tsx/esm/api'), new URL('./worker.ts', import.meta.url).href].map((url) => JSON.stringify(url))
  return new Worker(`import(${loader}).then(({ register }) => { register(); return import(${source}) })`, { eval: true, execArgv: [] })
}
