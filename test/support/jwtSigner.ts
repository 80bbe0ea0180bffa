/** Starts ./jwtSignerProcess.ts, and tells it what to do. */
import { once } from 'node:events'
import path from 'node:path'
import { forkSource } from './sourceProgram.ts'

export interface SignerState {
  readonly signsWith: string
  readonly keys: readonly { readonly id: string; readonly hidden?: boolean }[]
  readonly maxSeconds?: number
  readonly refreshSeconds?: number
  readonly dataSeconds?: number
  /** In place of the right one. */
  readonly header?: object | null
  readonly fails?: boolean
}

export interface JwtSigner {
  /** Answers how often it was called. */
  tell(change: Partial<SignerState>): Promise<{ readonly Sign: number; readonly FetchKeys: number }>
  close(): Promise<void>
}

export async function startJwtSigner(socket: string, state: SignerState): Promise<JwtSigner> {
  const child = forkSource(path.join(import.meta.dirname, 'jwtSignerProcess.ts'), [socket, JSON.stringify(state)])
  const exited = once(child, 'exit')
  const [started] = (await once(child, 'message')) as [{ listening: boolean; error?: string }]
  if (!started.listening) throw new Error(`the signer does not listen: ${started.error}`)
  return {
    async tell(change) {
      child.send(change)
      const [{ counts }] = (await once(child, 'message')) as [{ counts: { Sign: number; FetchKeys: number } }]
      return counts
    },
    async close() {
      child.disconnect()
      await exited
    },
  }
}
