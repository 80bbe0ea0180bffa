/** Gives every request its audit id (L3): the client's own, or a new one; the answer has it in the Audit-Id header. */
import { type Random, randomUid } from '#base/random'
import type { Stage } from '../core/stage.ts'

export function auditInitStage(random: Random): Stage {
  return {
    name: 'auditInit',
    handle(request, next) {
      const given = request.headers['audit-id']
      request.auditId = typeof given === 'string' && given !== '' ? given : randomUid(random)
      if (request.responseHeaders) request.responseHeaders['audit-id'] = request.auditId
      return next(request)
    },
  }
}
