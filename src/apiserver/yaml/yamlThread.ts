/** Reads long YAML bodies in a thread of their own (L3): YAML takes about a second per megabyte, during which no other request would be answered. */
import { badRequest, internalError } from '#api/machinery/status'
import { JobThread, startWorker } from './jobThread.ts'
import type { YamlOutcome } from './worker.ts'

/** Shorter bodies are parsed on the main thread, in some twenty milliseconds. */
const longBytes = 32 * 1024

export class YamlThread {
  readonly #thread = new JobThread<string, YamlOutcome>(() => startWorker(import.meta.url, { source: './worker.ts', bundle: './yamlWorker.mjs' }))

  /** Whether the thread should parse a body, unless it is JSON. */
  wants(bytes: Buffer): boolean {
    return bytes.length > longBytes
  }

  /** The JSON of a YAML text. @throws StatusError BadRequest for invalid YAML */
  async toJson(bytes: Buffer): Promise<Buffer> {
    const outcome = await this.#thread.run(bytes.toString('utf8')).catch((error: unknown) => {
      throw internalError(error)
    })
    if ('json' in outcome) return Buffer.from(outcome.json)
    throw badRequest(outcome.fault)
  }
}
