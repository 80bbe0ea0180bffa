/** Recognizes requests that are queued but never refused (L3). */
import type { ServerRequest } from '../core/request.ts'

/**
 * Components in this process (scheduler, kubelets of simulated nodes) wait in their queue however long it is: there is no connection to
 * protect, a refusal would cost more than the work, and they would all be back in a second.
 */
export function isOwnComponent({ inProcessUser }: ServerRequest): boolean {
  return inProcessUser?.name.startsWith('system:') ?? false
}
