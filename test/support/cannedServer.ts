/**
 * A server over TLS in a process of its own, such as an issuer of tokens or a webhook: it gives the answers that the test has set, by path, or by path and
 * the token in the request's body.
 */
import path from 'node:path'
import type { Certificate } from './openssl.ts'
import { forkSource } from './sourceProgram.ts'

export interface CannedAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
  readonly delayMs?: number
}

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export type ToServer =
  | { readonly type: 'serve'; readonly tls: Certificate }
  | { readonly type: 'answers'; readonly answers: Readonly<Record<string, CannedAnswer>> }
  | { readonly type: 'received' }
export type FromServer =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'answers' }
  | { readonly type: 'received'; readonly received: readonly Received[] }

export interface CannedServer {
  readonly url: string
  /** From now on these, by `/path` or `/path token`; everything else is not found. */
  answer(answers: Readonly<Record<string, CannedAnswer>>): Promise<void>
  /** What it was asked since the last call. */
  received(): Promise<readonly Received[]>
  close(): Promise<void>
}

/** @param tls its certificate must be good for IP:127.0.0.1 */
export async function startCannedServer(tls: Certificate): Promise<CannedServer> {
  const child = forkSource(path.join(import.meta.dirname, 'cannedServerProcess.ts'))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const ask = <T extends FromServer['type']>(message: ToServer, type: T) =>
    new Promise<Extract<FromServer, { type: T }>>((resolve, reject) => {
      const died = () => reject(new Error('the server process ended'))
      child.once('exit', died)
      const take = (answer: FromServer) => {
        if (answer.type !== type) return
        child.off('message', take)
        child.off('exit', died)
        resolve(answer as Extract<FromServer, { type: T }>)
      }
      child.on('message', take)
      child.send(message)
    })
  const { port } = await ask({ type: 'serve', tls }, 'listening')
  return {
    url: `https://127.0.0.1:${port}`,
    async answer(answers) {
      await ask({ type: 'answers', answers }, 'answers')
    },
    received: async () => (await ask({ type: 'received' }, 'received')).received,
    async close() {
      child.disconnect()
      await exited
    },
  }
}
