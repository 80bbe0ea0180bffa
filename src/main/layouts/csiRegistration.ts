/** Shows a driver to this node's kubelet while a program runs (L5). Upstream: kubernetes-csi/node-driver-registrar. */
import path from 'node:path'
import type { AbortScope } from '#base/abortScope'
import type { Logger } from '#base/log'
import { serveRegistration } from '#csi/server/registration'

export interface DriverPlace {
  readonly name: string
  /** The driver's socket, as the kubelet sees it. */
  readonly endpoint: string
  /** The kubelet's plugins_registry. */
  readonly registry: string
}

/** The scope ends when the kubelet refuses the driver: it registers again after a restart. At the end of the block the kubelet forgets the driver. */
export async function registerWithKubelet({ name, endpoint, registry }: DriverPlace, log: Logger, scope: AbortScope): Promise<AsyncDisposable> {
  const onStatus = (error: string) => {
    if (error === '') log.info('Registered with the kubelet', { driver: name })
    else scope.abort(new Error(`the kubelet refuses the driver: ${error}`))
  }
  const server = await serveRegistration(path.join(registry, `${name}-reg.sock`), { name, endpoint, versions: ['1.0.0'] }, onStatus)
  return { [Symbol.asyncDispose]: async () => server.close() }
}
