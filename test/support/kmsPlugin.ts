/** Starts ./kmsPluginProcess.ts, and tells it what to do. */
import { once } from 'node:events'
import path from 'node:path'
import { forkSource } from './sourceProgram.ts'

export interface KmsPlugin {
  /** Changes the plugin's reported state; resolves with how often it was called. */
  tell(change: { readonly keyId?: string; readonly healthz?: string }): Promise<{ readonly Encrypt: number; readonly Decrypt: number }>
  close(): Promise<void>
}

export async function startKmsPlugin(socket: string, keyId = '1'): Promise<KmsPlugin> {
  const child = forkSource(path.join(import.meta.dirname, 'kmsPluginProcess.ts'), [socket, keyId])
  const exited = once(child, 'exit')
  const [started] = (await once(child, 'message')) as [{ listening: boolean; error?: string }]
  if (!started.listening) throw new Error(`the plugin does not listen: ${started.error}`)
  return {
    async tell(change) {
      child.send(change)
      const [{ counts }] = (await once(child, 'message')) as [{ counts: { Encrypt: number; Decrypt: number } }]
      return counts
    },
    async close() {
      child.disconnect()
      await exited
    },
  }
}
