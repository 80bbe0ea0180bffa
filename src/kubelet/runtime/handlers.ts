/** What a pod's RuntimeClass means to the runtime (L3). Upstream: kubelet/runtimeclass, kubelet_getters.go HandlerSupportsUserNamespaces (v1.36). */
import { runtimeClasses } from '#client/builtIn'
import type { RuntimeHandler } from '#grpc/criTypes'
import type { KubeletContext } from '../context.ts'
import type { FrozenPod } from '../pods/containers.ts'

/** The name that the runtime knows; empty: the usual handler. @throws when there is no such class */
export async function handlerName({ client }: Pick<KubeletContext, 'client'>, { spec: { runtimeClassName } }: FrozenPod): Promise<string> {
  return runtimeClassName ? (await client.of(runtimeClasses).get({ name: runtimeClassName })).handler : ''
}

/** What the handler can do; undefined from runtimes that do not tell of it. */
export async function findHandler({ runtime }: Pick<KubeletContext, 'runtime'>, name: string): Promise<RuntimeHandler | undefined> {
  return (await runtime.status()).handlers.find((handler) => handler.name === name)
}
