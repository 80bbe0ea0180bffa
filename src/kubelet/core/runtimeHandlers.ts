/** What a pod's RuntimeClass means to the runtime (L3). Upstream: kubelet/runtimeclass, kubelet_getters.go HandlerSupportsUserNamespaces (v1.36). */
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { runtimeClasses } from '#client/builtIn'
import type { RuntimeHandler } from '#grpc/criTypes'
import type { FrozenPod } from './containers.ts'
import type { KubeletContext } from './context.ts'

/** The name that the runtime knows; empty: the usual handler. @throws when there is no such class, in upstream's words */
export async function handlerName({ client }: Pick<KubeletContext, 'client'>, { spec: { runtimeClassName } }: FrozenPod): Promise<string> {
  if (!runtimeClassName) return ''
  try {
    return (await client.of(runtimeClasses).get({ name: runtimeClassName })).handler
  } catch (error) {
    if (isStatus(error, 'NotFound')) throw new Error(`runtimeclass.node.k8s.io "${runtimeClassName}" not found`, { cause: error })
    const reason = messageOf(error)
    throw new Error(`failed to lookup RuntimeClass ${runtimeClassName}: ${reason}`, { cause: error })
  }
}

/** The handler's features; undefined from runtimes that do not report them. */
export async function findHandler({ runtime }: Pick<KubeletContext, 'runtime'>, name: string): Promise<RuntimeHandler | undefined> {
  return (await runtime.status()).handlers.find((handler) => handler.name === name)
}
