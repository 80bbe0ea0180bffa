/**
 * Deletes bootstrap tokens whose time is over (L3). Upstream: pkg/controller/bootstrap/tokencleaner.go (v1.36).
 */
import { isStatus } from '#api/machinery/status'
import { secrets } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { isBootstrapToken, tokenExpiryMs } from './bootstrapToken.ts'

export const tokenCleaner: ControllerDescriptor = {
  name: 'token-cleaner-controller',
  aliases: ['tokencleaner'],
  serviceAccount: 'token-cleaner',
  disabledByDefault: true,
  create: createTokenCleaner,
}

function createTokenCleaner(context: ControllerContext) {
  const informer = context.informers.of(secrets)
  const reconciler = createReconciler(context, {
    name: tokenCleaner.name,
    queueName: 'token_cleaner',
    workers: 1,
    async reconcile(key, signal) {
      const secret = informer.store.get(key)
      const expiresMs = secret && isBootstrapToken(secret) ? tokenExpiryMs(secret) : undefined
      if (!secret || expiresMs === undefined) return undefined
      const waitMs = expiresMs - context.clock.now()
      if (waitMs > 0) return { requeueAfterMs: waitMs }
      const { namespace, name = '', uid } = secret.metadata
      try {
        await context.client.of(secrets).delete({ namespace, name }, { preconditions: { uid }, signal })
      } catch (error) {
        if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
      }
      return undefined
    },
  })
  reconciler.watch(informer, enqueueSelf(reconciler.queue, isBootstrapToken))
  return reconciler
}
