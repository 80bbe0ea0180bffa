/** Starts ./nodePluginProcess.ts, reads the calls that it receives, and sets its answers. */
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { forkSource } from './sourceProgram.ts'

export interface NodePluginOptions {
  readonly kind: 'device' | 'dra'
  /** The resource, or the driver. */
  readonly name: string
  /** Where it serves. */
  readonly socket: string
  /** The kubelet's socket, or where a driver's own registration socket goes. */
  readonly registry: string
  readonly devices: readonly { readonly id: string; readonly node?: number }[]
  readonly version?: 'v1' | 'v1beta1'
}

export interface NodePluginOrder {
  readonly unhealthy?: readonly string[]
  /** A method that fails. */
  readonly refuse?: string
}

export interface NodePlugin {
  /** Every call so far. */
  readonly calls: { readonly method: string; readonly request: Readonly<Record<string, unknown>> }[]
  tell(order: NodePluginOrder): void
  close(): Promise<void>
}

export async function startNodePlugin(options: NodePluginOptions): Promise<NodePlugin> {
  const child = forkSource(path.join(import.meta.dirname, 'nodePluginProcess.ts'), [JSON.stringify(options)])
  const exited = once(child, 'exit')
  const calls: { method: string; request: Record<string, unknown> }[] = []
  await new Promise<void>((resolve, reject) => {
    child.on('message', (message: { method: string; request: Record<string, unknown> }) => {
      if (message.method === 'started') resolve()
      else if (message.method === 'failed') reject(new Error(`the plugin does not start: ${message.request.error}`))
      else calls.push(message)
    })
    void exited.then(() => reject(new Error('the plugin ended')))
  })
  return {
    calls,
    tell: (order) => void child.send(order),
    close: async () => {
      child.disconnect()
      await exited
      // As drivers do when they end in order: their sockets go with them.
      await rm(options.socket, { force: true })
      if (options.kind === 'dra') await rm(options.registry, { force: true })
    },
  }
}
